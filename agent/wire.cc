#include "agent/wire.h"

#include <algorithm>
#include <utility>

namespace gpuq::agent {
namespace {

v1::Fence to_wire(const Fence& fence) {
  v1::Fence out;
  out.set_store_id(fence.store_id);
  out.set_epoch(fence.epoch);
  out.set_attempt_id(fence.attempt_id);
  return out;
}

Fence from_wire(const v1::Fence& fence) {
  return {fence.store_id(), fence.epoch(), fence.attempt_id()};
}

std::vector<Fence> from_wire(const google::protobuf::RepeatedPtrField<v1::Fence>& fences) {
  std::vector<Fence> out;
  for (const auto& fence : fences) out.push_back(from_wire(fence));
  return out;
}

v1::InstanceState to_wire(InstanceState state) {
  switch (state) {
    case InstanceState::kStarting:
      return v1::INSTANCE_STATE_STARTING;
    case InstanceState::kPrepared:
      return v1::INSTANCE_STATE_PREPARED;
    case InstanceState::kRunning:
      return v1::INSTANCE_STATE_RUNNING;
    case InstanceState::kExited:
      return v1::INSTANCE_STATE_EXITED;
    case InstanceState::kStartFailed:
      return v1::INSTANCE_STATE_START_FAILED;
    case InstanceState::kRefused:
      return v1::INSTANCE_STATE_REFUSED;
    case InstanceState::kLost:
      return v1::INSTANCE_STATE_LOST;
  }
  return v1::INSTANCE_STATE_UNSPECIFIED;
}

constexpr std::pair<StopReason, v1::AgentStopReason> kReasons[] = {
    {StopReason::kNone, v1::AGENT_STOP_REASON_UNSPECIFIED},
    {StopReason::kPreempted, v1::AGENT_STOP_REASON_PREEMPTED},
    {StopReason::kTimeout, v1::AGENT_STOP_REASON_TIMEOUT},
    {StopReason::kTerminated, v1::AGENT_STOP_REASON_TERMINATED},
    {StopReason::kNodeDrain, v1::AGENT_STOP_REASON_NODE_DRAIN},
    {StopReason::kOrphan, v1::AGENT_STOP_REASON_ORPHAN},
    {StopReason::kGangFailed, v1::AGENT_STOP_REASON_GANG_FAILED},
};

v1::AgentStopReason to_wire(StopReason reason) {
  for (const auto& [own, wire] : kReasons) {
    if (own == reason) return wire;
  }
  return v1::AGENT_STOP_REASON_UNSPECIFIED;
}

// A reason of a later release is still a stop.
StopReason from_wire(v1::AgentStopReason reason) {
  for (const auto& [own, wire] : kReasons) {
    if (wire == reason && own != StopReason::kNone) return own;
  }
  return StopReason::kTerminated;
}

v1::AgentDevice to_wire(const Device& device) {
  v1::AgentDevice out;
  out.set_uuid(device.uuid);
  out.set_index(device.index);
  out.set_model(device.model);
  out.set_product_name(device.product_name);
  out.set_memory_mib(device.memory_mib);
  out.set_pci_address(device.pci_address);
  out.set_numa_node(device.numa_node);
  for (const auto& peer : device.link_peers) out.add_link_peers(peer);
  out.set_usable(device.usable);
  out.set_unusable_reason(device.unusable_reason);
  return out;
}

v1::Hello to_wire(const Hello& hello) {
  v1::Hello out;
  out.set_node_name(hello.node_name);
  out.set_agent_version(hello.agent_version);
  for (const auto& capability : hello.capabilities) out.add_capabilities(capability);
  out.set_boot_id(hello.boot_id);
  out.set_state_dir_id(hello.state_dir_id);
  out.mutable_labels()->insert(hello.labels.begin(), hello.labels.end());
  out.set_cpus(hello.cpus);
  out.set_memory_mib(hello.memory_mib);
  for (const auto& device : hello.devices) *out.add_devices() = to_wire(device);
  if (hello.highest_fence) *out.mutable_highest_fence() = to_wire(*hello.highest_fence);
  for (const auto& status : hello.attempts) *out.add_attempts() = to_wire(status);
  out.set_confinement(hello.confinement);
  out.set_run_user(hello.run_user);
  out.set_address(hello.address);
  out.set_trouble(hello.trouble);
  return out;
}

StartOrder from_wire(const v1::Start& start) {
  StartOrder out;
  out.fence = from_wire(start.fence());
  out.instance = start.instance();
  out.instances = start.has_instances() ? start.instances() : 1;
  out.job_id = start.job_id();
  out.job_name = start.job_name();
  out.attempt_number = start.attempt_number();
  out.queue = start.queue();
  out.share = start.quota_share_name();
  out.preemption_count = start.preemption_count();
  for (const auto& grant : start.devices()) {
    out.devices.push_back({grant.uuid(), grant.has_milli() ? grant.milli() : 1000});
  }
  out.cpu_milli = start.cpu_milli();
  out.memory_mib = start.memory_mib();
  out.command.assign(start.command().begin(), start.command().end());
  out.environment = {start.environment().begin(), start.environment().end()};
  out.working_directory = start.working_directory();
  out.user = start.user();
  out.grace_ms = start.has_grace_ms() ? start.grace_ms() : 30'000;
  out.timeout_ms = start.timeout_ms();
  out.run_immediately = start.run_immediately();
  if (start.has_gang()) {
    out.gang = GangInfo{start.gang().master_address(), start.gang().master_port(),
                        start.gang().node_rank()};
  }
  out.log_cap_bytes = start.log_cap_bytes();
  out.checkpoint_directory = start.checkpoint_directory();
  return out;
}

Welcome from_wire(const v1::Welcome& welcome) {
  Welcome out;
  out.server = from_wire(welcome.server());
  if (welcome.has_heartbeat_interval_ms()) {
    out.heartbeat_interval_ms =
        std::clamp<std::int64_t>(welcome.heartbeat_interval_ms(), 100, 60'000);
  }
  out.adopt = from_wire(welcome.adopt());
  out.stop = from_wire(welcome.stop());
  out.forget = from_wire(welcome.forget());
  out.server_version = welcome.server_version();
  return out;
}

StopOrder from_wire(const v1::Stop& stop) {
  StopOrder out{from_wire(stop.fence()), from_wire(stop.reason()), std::nullopt};
  if (stop.has_grace_ms()) out.grace_ms = stop.grace_ms();
  return out;
}

}  // namespace

v1::InstanceStatus to_wire(const InstanceStatus& status) {
  v1::InstanceStatus out;
  *out.mutable_fence() = to_wire(status.fence);
  out.set_instance(status.instance);
  out.set_state(to_wire(status.state));
  if (is_final(status.state) && status.state != InstanceState::kRefused) {
    auto& exit = *out.mutable_exit();
    if (status.exit_code) exit.set_exit_code(*status.exit_code);
    if (status.term_signal) exit.set_signal(*status.term_signal);
    exit.set_signal_sent_before_exit(status.signal_sent_before_exit);
    exit.set_killed_after_grace(status.killed_after_grace);
  }
  out.set_stop_reason(to_wire(status.stop_reason));
  out.set_status_reason(status.status_reason);
  out.set_starting_at_ms(status.starting_at_ms);
  out.set_running_at_ms(status.running_at_ms);
  out.set_stop_at_ms(status.stop_at_ms);
  out.set_ended_at_ms(status.ended_at_ms);
  out.set_ran_for_ms(status.ran_for_ms);
  out.set_job_id(status.job_id);
  out.set_pid(status.pid);
  for (const auto& uuid : status.device_uuids) out.add_device_uuids(uuid);
  return out;
}

v1::AgentMessage to_wire(const ToServer& message) {
  v1::AgentMessage out;
  if (const auto* hello = std::get_if<Hello>(&message)) {
    *out.mutable_hello() = to_wire(*hello);
  } else if (const auto* heartbeat = std::get_if<Heartbeat>(&message)) {
    out.mutable_heartbeat()->set_sequence(heartbeat->sequence);
  } else if (const auto* report = std::get_if<AttemptReport>(&message)) {
    out.mutable_report()->set_report_id(report->report_id);
    *out.mutable_report()->mutable_status() = to_wire(report->status);
  } else if (const auto* health = std::get_if<NodeHealth>(&message)) {
    out.mutable_node_health()->set_trouble(health->trouble);
  }
  return out;
}

Result<FromServer> from_wire(const v1::ServerMessage& message) {
  switch (message.message_case()) {
    case v1::ServerMessage::kWelcome:
      return FromServer(from_wire(message.welcome()));
    case v1::ServerMessage::kRefused:
      return FromServer(Refused{message.refused().reason()});
    case v1::ServerMessage::kHeartbeatAck:
      return FromServer(HeartbeatAck{message.heartbeat_ack().sequence()});
    case v1::ServerMessage::kStart:
      return FromServer(from_wire(message.start()));
    case v1::ServerMessage::kGo:
      return FromServer(GoOrder{from_wire(message.go().fence())});
    case v1::ServerMessage::kStop:
      return FromServer(from_wire(message.stop()));
    case v1::ServerMessage::kForget:
      return FromServer(ForgetOrder{from_wire(message.forget().fence())});
    case v1::ServerMessage::kAckReport:
      return FromServer(AckReport{message.ack_report().report_id()});
    case v1::ServerMessage::MESSAGE_NOT_SET:
      break;
  }
  return Error{ErrorCode::kInvalidArgument, "the server sent a message of an unknown kind"};
}

}  // namespace gpuq::agent
