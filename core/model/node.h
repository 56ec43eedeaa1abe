#pragma once
// A node and its devices, as registered by its agent. Three independent properties (N3): link,
// admin, health; docs/TERMS.md has the table of their effects. Values; owned by the state.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"

namespace gpuq {

enum class NodeLink : std::uint8_t { kUp = 1, kUnreachable = 2, kDown = 3 };
enum class NodeAdmin : std::uint8_t { kOpen = 1, kCordoned = 2, kDraining = 3 };

const char* to_string(NodeLink link);    ///< "UP", "UNREACHABLE", "DOWN"
const char* to_string(NodeAdmin admin);  ///< "OPEN", "CORDONED", "DRAINING"

/// One GPU. Its position in Node::devices is its DeviceIndex and never changes.
struct Device {
  std::string uuid;
  std::string model;  ///< As units name it, e.g. "A10G".
  std::int64_t memory_mib = 0;
  std::string pci_address;
  bool usable = true;    ///< False: unhealthy or vanished; keeps its attempt, gets nothing new.
  bool charged = false;  ///< Charged to the node (P9): left P until an agent has verified it.
  /// Whether a unit or need of `wanted` may use it; "" = any.
  [[nodiscard]] bool is_model(const std::string& wanted) const {
    return wanted.empty() || model == wanted;
  }
  bool operator==(const Device&) const = default;
};

struct Node {
  NodeId id;
  std::string name;
  std::map<std::string, std::string> labels;
  std::int32_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::vector<Device> devices;
  NodeLink link = NodeLink::kUp;
  NodeAdmin admin = NodeAdmin::kOpen;
  bool healthy = true;
  std::string health_reason;  ///< Why it is not; one sentence.
  EnvId env;                  ///< 0: no environment selects it.
  std::string boot_id;
  std::string state_dir_id;  ///< A changed one means: the agent forgot what it ran.
  std::string agent_version;
  std::string address;  ///< Host that gangs use as MASTER_ADDR.
  bool operator==(const Node&) const = default;

  /// UP, OPEN, healthy and of some environment: may get something new.
  [[nodiscard]] bool accepts_new() const {
    return link == NodeLink::kUp && admin == NodeAdmin::kOpen && healthy && env.valid();
  }
};

}  // namespace gpuq
