#pragma once
// The words that server and agent exchange, free of protobuf. proto/gpuq/v1/agent.proto says who
// sends what when; the conversion is in grpc_transport.cc.
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gpuq::agent {

/// Names an attempt for all time and the server life that ordered it.
struct Fence {
  std::string store_id;
  std::uint64_t epoch = 0;
  std::int64_t attempt_id = 0;
  bool operator==(const Fence&) const = default;
};

struct InstanceKey {
  std::int64_t attempt_id = 0;
  std::uint32_t instance = 0;
  auto operator<=>(const InstanceKey&) const = default;
};

enum class InstanceState {
  kStarting,
  kPrepared,
  kRunning,
  kExited,  // this and all below are final
  kStartFailed,
  kRefused,
  kLost,
};

constexpr bool is_final(InstanceState state) { return state >= InstanceState::kExited; }
const char* to_string(InstanceState state);

enum class StopReason {
  kNone,
  kPreempted,
  kTimeout,
  kTerminated,
  kNodeDrain,
  kOrphan,
  kGangFailed,
};

/// "PREEMPTED", ...; "" for kNone.
const char* to_string(StopReason reason);
/// kNone for an unknown text.
StopReason parse_stop_reason(const std::string& text);

struct Device {
  std::string uuid;
  std::uint32_t index = 0;
  std::string model;         ///< Short name, for example "A10G".
  std::string product_name;  ///< The driver's name.
  std::int64_t memory_mib = 0;
  std::string pci_address;  ///< Empty for a fake device.
  std::int32_t numa_node = -1;
  std::vector<std::string> link_peers;
  bool usable = true;
  std::string unusable_reason;
};

struct DeviceGrant {
  std::string uuid;
  std::uint32_t milli = 1000;
};

struct GangInfo {
  std::string master_address;
  std::uint32_t master_port = 0;
  std::uint32_t node_rank = 0;
};

struct StartOrder {
  Fence fence;
  std::uint32_t instance = 0;
  std::uint32_t instances = 1;
  std::int64_t job_id = 0;
  std::string job_name;
  std::uint32_t attempt_number = 1;
  std::string queue;
  std::string share;
  std::uint32_t preemption_count = 0;
  std::vector<DeviceGrant> devices;
  std::uint32_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::string working_directory;
  std::string user;
  std::int64_t grace_ms = 30'000;
  std::int64_t timeout_ms = 0;
  bool run_immediately = false;
  std::optional<GangInfo> gang;
  std::int64_t log_cap_bytes = 0;
  std::string checkpoint_directory;

  [[nodiscard]] InstanceKey key() const { return {fence.attempt_id, instance}; }
};

struct GoOrder {
  Fence fence;
};

struct StopOrder {
  Fence fence;
  StopReason reason = StopReason::kTerminated;
  std::optional<std::int64_t> grace_ms;  ///< Nothing: that of the Start.
};

struct ForgetOrder {
  Fence fence;
};

/// What is known of one instance. Times are wall-clock milliseconds, 0 = has not happened.
struct InstanceStatus {
  Fence fence;
  std::uint32_t instance = 0;
  std::int64_t job_id = 0;
  InstanceState state = InstanceState::kStarting;
  std::optional<int> exit_code;
  std::optional<int> term_signal;
  bool signal_sent_before_exit = false;
  bool killed_after_grace = false;
  StopReason stop_reason = StopReason::kNone;
  std::string status_reason;
  std::int64_t starting_at_ms = 0;
  std::int64_t running_at_ms = 0;
  std::int64_t stop_at_ms = 0;
  std::int64_t ended_at_ms = 0;
  std::int64_t ran_for_ms = 0;
  std::int64_t pid = 0;
  std::vector<std::string> device_uuids;
};

struct Hello {
  std::string node_name;
  std::string agent_version;
  std::vector<std::string> capabilities;
  std::string boot_id;
  std::string state_dir_id;
  std::map<std::string, std::string> labels;
  std::uint32_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::vector<Device> devices;
  std::optional<Fence> highest_fence;
  std::vector<InstanceStatus> attempts;
  std::string confinement;
  std::string run_user;
  std::string address;
  std::string trouble;  ///< As NodeHealth.
};

struct Heartbeat {
  std::uint64_t sequence = 0;
};

/// Whether anything new can start here. Empty: yes.
struct NodeHealth {
  std::string trouble;
};

struct AttemptReport {
  std::uint64_t report_id = 0;
  InstanceStatus status;
};

using ToServer = std::variant<Hello, Heartbeat, AttemptReport, NodeHealth>;

struct Welcome {
  Fence server;
  std::int64_t heartbeat_interval_ms = 5'000;
  std::vector<Fence> adopt;
  std::vector<Fence> stop;
  std::vector<Fence> forget;
  std::string server_version;
};

struct Refused {
  std::string reason;
};

struct HeartbeatAck {
  std::uint64_t sequence = 0;
};

struct AckReport {
  std::uint64_t report_id = 0;
};

using FromServer = std::variant<Welcome, Refused, HeartbeatAck, StartOrder, GoOrder, StopOrder,
                                ForgetOrder, AckReport>;

}  // namespace gpuq::agent
