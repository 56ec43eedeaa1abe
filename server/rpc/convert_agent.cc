#include "server/rpc/convert_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "gpuq/v1/job.pb.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

// Ports for the rendezvous of gangs, below the range that the kernel gives to outgoing connections.
constexpr std::uint32_t kFirstMasterPort = 20'000;
constexpr std::int64_t kMasterPorts = 10'000;
constexpr std::size_t kMaxNodeName = 253;

Result<Device> read_device(const v1::AgentDevice& from, std::set<std::string>& seen) {
  if (from.uuid().empty()) return invalid("a device has no uuid");
  if (!seen.insert(from.uuid()).second) {
    return invalid("device " + quote(from.uuid()) + " is listed twice");
  }
  if (auto fault = check_line("device model", from.model(), 128); !fault.empty()) {
    return invalid(std::move(fault));
  }
  Device device;
  device.uuid = from.uuid();
  device.model = from.model();
  device.memory_mib = from.memory_mib();
  device.pci_address = from.pci_address();
  device.usable = !from.has_usable() || from.usable();
  return device;
}

Result<Node> read_node(const v1::Hello& hello) {
  Node node;
  node.name = hello.node_name();
  if (node.name.empty()) return invalid("node_name is empty: give the node a name");
  if (auto fault = check_line("node_name", node.name, kMaxNodeName); !fault.empty()) {
    return invalid(std::move(fault));
  }
  if (hello.state_dir_id().empty()) return invalid("state_dir_id is empty");
  if (hello.boot_id().empty()) return invalid("boot_id is empty");
  if (hello.cpus() > 100'000)
    return invalid(fmt::format("cpus is {}: at most 100000", hello.cpus()));
  if (auto fault = check_range("memory_mib", hello.memory_mib(), 0, 1'000'000'000);
      !fault.empty()) {
    return invalid(std::move(fault));
  }
  if (static_cast<std::size_t>(hello.devices_size()) > kMaxNodeDevices) {
    return invalid(fmt::format("{} devices: at most {}", hello.devices_size(), kMaxNodeDevices));
  }
  std::set<std::string> seen;
  for (const auto& device : hello.devices()) {
    auto read = read_device(device, seen);
    if (!read) return read.error();
    node.devices.push_back(std::move(*read));
  }
  node.labels.insert(hello.labels().begin(), hello.labels().end());
  node.cpus = static_cast<std::int32_t>(hello.cpus());
  node.memory_mib = hello.memory_mib();
  node.boot_id = hello.boot_id();
  node.state_dir_id = hello.state_dir_id();
  node.agent_version = hello.agent_version();
  node.address = hello.address();
  node.health_reason = one_line(hello.trouble());
  node.healthy = node.health_reason.empty();
  return node;
}

std::string gang_address(const State& state, const Attempt& attempt) {
  const Node* master = state.find_node(attempt.instances.front().use.node);
  if (master == nullptr) return "";
  return master->address.empty() ? master->name : master->address;
}

void fill_devices(const State& state, const InstanceUse& use, v1::Start& start) {
  const Node* node = state.find_node(use.node);
  if (node == nullptr) return;
  for (const DeviceUse& device : use.devices) {
    v1::DeviceGrant& grant = *start.add_devices();
    grant.set_uuid(node->devices.at(static_cast<std::size_t>(device.device)).uuid);
    grant.set_milli(static_cast<std::uint32_t>(device.milli));
  }
}

void add_fence(const StoreIdentity& identity, AttemptId attempt,
               google::protobuf::RepeatedPtrField<v1::Fence>& list) {
  *list.Add() = to_proto(Fence{identity.store_id, identity.epoch, attempt});
}

}  // namespace

Result<ReportedInstance> to_reported(const v1::InstanceStatus& status) {
  ReportedInstance reported;
  reported.attempt = AttemptId(status.fence().attempt_id());
  if (reported.attempt.value <= 0) return invalid("an attempt status has no attempt_id");
  if (status.instance() >= static_cast<std::uint32_t>(kMaxInstances)) {
    return invalid(fmt::format("instance is {}: at most {}", status.instance(), kMaxInstances - 1));
  }
  reported.instance = static_cast<std::int32_t>(status.instance());
  reported.status_reason = status.status_reason();
  reported.signalled_before_exit = status.exit().signal_sent_before_exit();
  if (status.exit().has_exit_code()) {
    reported.exit_code = status.exit().exit_code();
  } else if (status.exit().has_signal()) {
    reported.exit_code = 128 + status.exit().signal();
  }
  switch (status.state()) {
    case v1::INSTANCE_STATE_STARTING:
      reported.state = InstanceState::kStarting;
      break;
    case v1::INSTANCE_STATE_PREPARED:
      reported.state = InstanceState::kPrepared;
      break;
    case v1::INSTANCE_STATE_RUNNING:
      reported.state = InstanceState::kRunning;
      break;
    case v1::INSTANCE_STATE_EXITED:
      reported.state = InstanceState::kExited;
      reported.exit_known = reported.exit_code >= 0;
      break;
    case v1::INSTANCE_STATE_START_FAILED:
      reported.state = InstanceState::kExited;
      reported.start_failed = true;
      break;
    case v1::INSTANCE_STATE_REFUSED:  // not the job's fault: it costs no retry
    case v1::INSTANCE_STATE_LOST:
      reported.state = InstanceState::kExited;
      reported.exit_known = false;
      break;
    default:
      return invalid(fmt::format("state of attempt {} is {}", reported.attempt.value,
                                 static_cast<int>(status.state())));
  }
  return reported;
}

StopCause agent_cause(v1::AgentStopReason reason) {
  switch (reason) {
    case v1::AGENT_STOP_REASON_PREEMPTED:
      return StopCause::kPreempted;
    case v1::AGENT_STOP_REASON_TIMEOUT:
      return StopCause::kTimeout;
    case v1::AGENT_STOP_REASON_TERMINATED:
      return StopCause::kTerminated;
    case v1::AGENT_STOP_REASON_NODE_DRAIN:
      return StopCause::kNodeDrain;
    case v1::AGENT_STOP_REASON_GANG_FAILED:
      return StopCause::kGangMember;
    default:
      return StopCause::kNone;
  }
}

v1::AgentStopReason to_proto(StopCause cause) {
  switch (cause) {
    case StopCause::kPreempted:
      return v1::AGENT_STOP_REASON_PREEMPTED;
    case StopCause::kTimeout:
      return v1::AGENT_STOP_REASON_TIMEOUT;
    case StopCause::kNodeDrain:
      return v1::AGENT_STOP_REASON_NODE_DRAIN;
    case StopCause::kGangMember:
      return v1::AGENT_STOP_REASON_GANG_FAILED;
    case StopCause::kNone:
    case StopCause::kTerminated:
      return v1::AGENT_STOP_REASON_TERMINATED;
  }
  return v1::AGENT_STOP_REASON_TERMINATED;
}

v1::Fence to_proto(const Fence& fence) {
  v1::Fence out;
  out.set_store_id(fence.store_id);
  out.set_epoch(static_cast<std::uint64_t>(fence.epoch));
  out.set_attempt_id(fence.attempt.value);
  return out;
}

Result<RegisterNodeCommand> to_register(const v1::Hello& hello, const std::string& store_id) {
  auto node = read_node(hello);
  if (!node) return node.error();
  RegisterNodeCommand command;
  command.node = std::move(*node);
  command.highest_epoch_seen = static_cast<std::int64_t>(hello.highest_fence().epoch());
  command.highest_store_id = hello.highest_fence().store_id();
  for (const v1::InstanceStatus& status : hello.attempts()) {
    if (status.fence().store_id() != store_id) continue;
    auto reported = to_reported(status);
    if (!reported) return reported.error();
    command.instances.push_back(std::move(*reported));
  }
  return command;
}

v1::Start to_start(const State& state, const StartOrder& order) {
  v1::Start start;
  *start.mutable_fence() = to_proto(order.fence);
  start.set_instance(static_cast<std::uint32_t>(order.instance));
  start.set_instances(static_cast<std::uint32_t>(order.attempt.instances.size()));
  start.set_job_id(order.job.id.value);
  start.set_job_name(order.job.name);
  start.set_attempt_number(static_cast<std::uint32_t>(order.attempt.number));
  if (const Queue* queue = state.policy().queue(order.job.queue)) start.set_queue(queue->def.name);
  if (const Share* share = state.policy().share(order.job.share)) {
    start.set_quota_share_name(share->def.name);
    if (share->def.grace) start.set_grace_ms(share->def.grace->count());
  }
  start.set_preemption_count(static_cast<std::uint32_t>(order.job.preemptions));
  const InstanceUse& use = order.attempt.instances.at(static_cast<std::size_t>(order.instance)).use;
  fill_devices(state, use, start);
  start.set_cpu_milli(static_cast<std::uint32_t>(use.cpus) * 1000);
  start.set_memory_mib(use.memory_mib);
  start.set_user(order.job.user);
  if (order.cls.grace) start.set_grace_ms(order.cls.grace->count());
  if (order.cls.timeout) start.set_timeout_ms(order.cls.timeout->count());
  start.set_run_immediately(order.run_at_once);
  if (order.array) {
    auto& environment = *start.mutable_environment();
    environment["GPUQ_ARRAY_JOB_ID"] = std::to_string(order.array->id.value);
    environment["GPUQ_ARRAY_INDEX"] = std::to_string(order.array->index(order.job.id));
    environment["GPUQ_ARRAY_SIZE"] = std::to_string(order.array->size());
  }
  if (order.attempt.instances.size() > 1) {
    v1::GangInfo& gang = *start.mutable_gang();
    gang.set_master_address(gang_address(state, order.attempt));
    gang.set_master_port(kFirstMasterPort +
                         static_cast<std::uint32_t>(order.attempt.id.value % kMasterPorts));
    gang.set_node_rank(start.instance());
  }
  return start;
}

Result<> add_spec(const std::string& bytes, v1::Start& start) {
  v1::JobSpec spec;
  if (!spec.ParseFromString(bytes)) {
    return Error{ErrorCode::kDataLoss,
                 fmt::format("the stored spec of job {} can not be read", start.job_id())};
  }
  start.mutable_command()->Swap(spec.mutable_command());
  // What to_start() has put there is no user's: names of that kind are refused in a spec.
  start.mutable_environment()->insert(spec.env().begin(), spec.env().end());
  start.set_working_directory(spec.workdir());
  return {};
}

v1::Welcome to_welcome(const v1::Hello& hello, const Reply& reply, const StoreIdentity& identity,
                       Duration heartbeat_interval, const char* server_version) {
  v1::Welcome welcome;
  *welcome.mutable_server() = to_proto(Fence{identity.store_id, identity.epoch, AttemptId()});
  welcome.set_heartbeat_interval_ms(static_cast<std::uint32_t>(heartbeat_interval.count()));
  welcome.set_server_version(server_version);
  // The lists speak of whole attempts: one is forgotten only when all its instances here are.
  std::map<AttemptId, std::size_t> reported;
  for (const auto& status : hello.attempts()) {
    if (status.fence().store_id() == identity.store_id) {
      ++reported[AttemptId(status.fence().attempt_id())];
    }
  }
  std::map<AttemptId, std::size_t> forgotten;
  for (const auto& [attempt, instance] : reply.forget) ++forgotten[attempt];
  std::set<AttemptId> stopped;
  for (const auto& [attempt, instance] : reply.fenced_off) stopped.insert(attempt);
  for (const auto& [attempt, count] : reported) {
    if (stopped.contains(attempt)) {
      add_fence(identity, attempt, *welcome.mutable_stop());
    } else if (forgotten[attempt] >= count) {
      add_fence(identity, attempt, *welcome.mutable_forget());
    } else {
      add_fence(identity, attempt, *welcome.mutable_adopt());
    }
  }
  return welcome;
}

}  // namespace gpuq::rpc
