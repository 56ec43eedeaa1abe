#pragma once
// The agent's configuration: file, then command line over it. config/gpuq-agent.yaml explains every
// key.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/devices/fake.h"
#include "agent/devices/nvml.h"
#include "agent/types.h"
#include "core/base/result.h"

namespace gpuq::agent {

struct AgentConfig {
  std::string server;     ///< host:port.
  std::string node_name;  ///< Empty: the host's name.
  std::string address;    ///< Empty: found from the way to the server.
  std::string state_dir;
  std::string checkpoint_root;
  std::map<std::string, std::string> labels;
  std::int64_t cpus = 0;        ///< 0: found.
  std::int64_t memory_mib = 0;  ///< 0: found.
  bool allow_root = false;
  enum class Devices { kAuto, kNone, kFake } devices = Devices::kAuto;
  std::vector<FakeGroup> fake;
  std::string nvml_lib = kNvmlLibrary;
  std::string shim_path;
  std::int64_t output_cap_bytes = std::int64_t{1} << 30;
  std::int64_t upload_bytes = std::int64_t{16} << 20;
  std::int64_t min_free_bytes = std::int64_t{64} << 20;
  std::int64_t umask = 022;
  std::string log_level = "info";
  std::string log_format = "text";
};

/// Defaults, without any file.
AgentConfig default_agent_config();
/// Reads `path` over `config`. The error names file, line and key.
Result<void> load_agent_config(const std::string& path, AgentConfig& config);
/// "auto", "none", "fake:4xA10G".
Result<void> set_devices(const std::string& text, AgentConfig& config);
/// What can only be checked when file and command line are together; fills what is still empty.
Result<void> complete_agent_config(AgentConfig& config);

/// The devices that the configuration says. An automatic search that finds no driver gives none and
/// says so in the log.
Result<std::vector<Device>> find_devices(const AgentConfig& config);

}  // namespace gpuq::agent
