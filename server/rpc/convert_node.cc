#include "server/rpc/convert_node.h"

#include <algorithm>

#include "core/base/text.h"
#include "server/rpc/convert_job.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

v1::NodeLink to_proto(NodeLink link) {
  switch (link) {
    case NodeLink::kUp:
      return v1::NODE_LINK_UP;
    case NodeLink::kUnreachable:
      return v1::NODE_LINK_UNREACHABLE;
    case NodeLink::kDown:
      return v1::NODE_LINK_DOWN;
  }
  return v1::NODE_LINK_UNSPECIFIED;
}

v1::NodeAdminState to_proto(NodeAdmin admin) {
  switch (admin) {
    case NodeAdmin::kOpen:
      return v1::NODE_ADMIN_STATE_OPEN;
    case NodeAdmin::kCordoned:
      return v1::NODE_ADMIN_STATE_CORDONED;
    case NodeAdmin::kDraining:
      return v1::NODE_ADMIN_STATE_DRAINING;
  }
  return v1::NODE_ADMIN_STATE_UNSPECIFIED;
}

Result<NodeAdmin> read_admin_state(v1::NodeAdminState state) {
  switch (state) {
    case v1::NODE_ADMIN_STATE_OPEN:
      return NodeAdmin::kOpen;
    case v1::NODE_ADMIN_STATE_CORDONED:
      return NodeAdmin::kCordoned;
    case v1::NODE_ADMIN_STATE_DRAINING:
      return NodeAdmin::kDraining;
    default:
      return invalid("admin_state is " + std::to_string(static_cast<int>(state)) +
                     ": use OPEN, CORDONED or DRAINING");
  }
}

NodeUsers::NodeUsers(const State& state) : state_(state) {
  for (const AttemptId id : state.live_attempts()) {
    const Attempt& attempt = state.attempt(id);
    std::int32_t index = 0;
    for (const AttemptInstance& instance : attempt.instances) {
      users_[instance.use.node].push_back({&attempt, index++});
    }
  }
}

void NodeUsers::fill_node(const Node& node, const NodeContact& contact, bool with_attempts,
                          v1::Node& out) const {
  out.set_node_name(node.name);
  out.set_link(to_proto(node.link));
  out.set_admin_state(to_proto(node.admin));
  out.set_health(node.healthy ? v1::HEALTH_HEALTHY : v1::HEALTH_FAULTY);
  out.set_status_reason(node.health_reason);
  if (const Environment* environment = state_.policy().environment(node.env)) {
    out.set_service_environment(environment->def.name);
  }
  for (const auto& [key, value] : node.labels) (*out.mutable_labels())[key] = value;
  out.set_cpus(node.cpus);
  out.set_memory_mib(node.memory_mib);
  out.set_agent_version(node.agent_version);
  out.set_last_seen_ms(ms_or_zero(contact.last_seen));
  out.set_registered_at_ms(ms_or_zero(contact.registered_at));
  std::int32_t index = 0;
  for (const Device& device : node.devices) {
    v1::NodeDevice& shown = *out.add_devices();
    shown.set_uuid(device.uuid);
    shown.set_index(index++);
    shown.set_model(device.model);
    shown.set_memory_mib(device.memory_mib);
    shown.set_health(device.usable ? v1::HEALTH_HEALTHY : v1::HEALTH_FAULTY);
    if (device.charged) {
      shown.set_health(v1::HEALTH_SUSPECT);
      shown.set_status_reason("an attempt was not confirmed to have left it");
    }
  }
  const auto users = users_.find(node.id);
  if (users == users_.end()) return;
  std::int32_t cpus = 0;
  std::int64_t memory_mib = 0;
  for (const User& user : users->second) {
    const InstanceUse& use = user.attempt->instances[static_cast<std::size_t>(user.instance)].use;
    cpus += use.cpus;
    memory_mib += use.memory_mib;
    for (const DeviceUse& device : use.devices) {
      v1::NodeDevice& shown = *out.mutable_devices(device.device);
      shown.set_allocated_milli(shown.allocated_milli() + device.milli);
      shown.add_job_ids(user.attempt->job.value);
    }
    if (!with_attempts) continue;
    v1::NodeAttempt& attempt = *out.add_attempts();
    const Job& job = state_.job(user.attempt->job);
    attempt.set_job_id(job.id.value);
    attempt.set_attempt(user.attempt->number);
    attempt.set_instance(user.instance);
    attempt.set_job_name(job.name);
    if (const Share* share = state_.policy().share(job.share)) {
      attempt.set_quota_share_name(share->def.name);
    }
    attempt.set_state(attempt_state(*user.attempt));
  }
  out.set_cpus_allocated(cpus);
  out.set_memory_allocated_mib(memory_mib);
}

}  // namespace gpuq::rpc
