// The outgoing side of convert_policy.h: stored policy as messages, the engine's answer to Apply.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/model/policy_document.h"
#include "server/rpc/convert_policy.h"
#include "server/rpc/message_hash.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

v1::AdminState admin_state(bool enabled) {
  return enabled ? v1::ADMIN_STATE_ENABLED : v1::ADMIN_STATE_DISABLED;
}

// Equal content, equal version: what optimistic locking needs, with nothing to store.
template <typename Message>
void set_version(Message& message) {
  message.set_version(static_cast<std::int64_t>(stable_hash(message) >> 1) | 1);
}

template <typename Limits>
void write_limits(const std::vector<CapacityLimit>& from, Limits& to) {
  for (const CapacityLimit& limit : from) {
    v1::CapacityLimit& out = *to.Add();
    out.set_capacity_unit(limit.unit);
    out.set_max_capacity_milli(limit.max_capacity.milli);
  }
}

v1::CapacityUnit write(const Unit& unit) {
  v1::CapacityUnit out;
  out.set_name(unit.def.name);
  out.set_gpu_model(unit.def.gpu_model);
  out.set_gpus(unit.def.gpus);
  out.set_cpus(unit.def.cpus);
  out.set_memory_mib(unit.def.memory_mib);
  set_version(out);
  return out;
}

v1::ServiceEnvironment write(const Environment& environment) {
  v1::ServiceEnvironment out;
  out.set_service_environment_name(environment.def.name);
  out.set_state(admin_state(environment.def.enabled));
  for (const auto& [key, value] : environment.def.node_labels) {
    (*out.mutable_node_selector())[key] = value;
  }
  write_limits(environment.def.capacity_limits, *out.mutable_capacity_limits());
  out.set_status(v1::OBJECT_STATUS_VALID);
  set_version(out);
  return out;
}

v1::IdleResourceAssignmentStrategy write(IdleOrder order) {
  switch (order) {
    case IdleOrder::kFifo:
      return v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_FIFO;
    case IdleOrder::kLeastBorrowed:
      return v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_LEAST_BORROWED;
    case IdleOrder::kDecayedUsage:
      return v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_DECAYED_USAGE;
  }
  return v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_UNSPECIFIED;
}

v1::SchedulingPolicy write(const SchedulingPolicy& policy) {
  v1::SchedulingPolicy out;
  out.set_name(policy.def.name);
  v1::QuotaSharePolicy& quota = *out.mutable_quota_share_policy();
  quota.set_idle_resource_assignment_strategy(write(policy.def.idle_order));
  if (policy.def.half_life != kDefaultHalfLife) {
    quota.set_half_life_ms(policy.def.half_life.count());
  }
  set_version(out);
  return out;
}

v1::JobQueue write(const Queue& queue) {
  v1::JobQueue out;
  out.set_job_queue_name(queue.def.name);
  out.set_state(admin_state(queue.def.enabled));
  out.set_priority(queue.def.priority);
  out.set_scheduling_policy(queue.def.scheduling_policy);
  std::int32_t order = 1;
  for (const std::string& environment : queue.def.service_environments) {
    auto& entry = *out.add_service_environment_order();
    entry.set_order(order++);
    entry.set_service_environment(environment);
  }
  for (const TimeLimitAction& limit : queue.def.time_limit_actions) {
    auto& entry = *out.add_job_state_time_limit_actions();
    entry.set_reason(limit.reason);
    entry.set_max_time_seconds(
        std::chrono::duration_cast<std::chrono::seconds>(limit.max_time).count());
    entry.set_action(v1::JOB_STATE_TIME_LIMIT_ACTIONS_ACTION_TERMINATE);
  }
  out.set_status(queue.deleting ? v1::OBJECT_STATUS_DELETING : v1::OBJECT_STATUS_VALID);
  set_version(out);
  return out;
}

v1::QuotaShare write(const Share& share, const std::string& queue) {
  v1::QuotaShare out;
  out.set_quota_share_name(share.def.name);
  out.set_job_queue(queue);
  out.set_state(admin_state(share.def.enabled));
  write_limits(share.def.capacity_limits, *out.mutable_capacity_limits());
  auto& sharing = *out.mutable_resource_sharing_configuration();
  switch (share.def.strategy) {
    case SharingStrategy::kReserve:
      sharing.set_strategy(v1::SHARING_STRATEGY_RESERVE);
      break;
    case SharingStrategy::kLend:
      sharing.set_strategy(v1::SHARING_STRATEGY_LEND);
      break;
    case SharingStrategy::kLendAndBorrow:
      sharing.set_strategy(v1::SHARING_STRATEGY_LEND_AND_BORROW);
      sharing.set_borrow_limit(share.def.borrow_limit);
      break;
  }
  auto& preemption = *out.mutable_preemption_configuration();
  preemption.set_in_share_preemption(share.def.in_share_preemption
                                         ? v1::IN_SHARE_PREEMPTION_ENABLED
                                         : v1::IN_SHARE_PREEMPTION_DISABLED);
  preemption.set_min_runtime_ms(share.def.min_runtime.count());
  if (share.def.grace) preemption.set_grace_ms(share.def.grace->count());
  if (share.def.head_wait_limit) out.set_head_wait_limit_ms(share.def.head_wait_limit->count());
  out.set_user_order(share.def.user_order == UserOrder::kFair ? v1::USER_ORDER_FAIR
                                                              : v1::USER_ORDER_FIFO);
  out.set_status(share.deleting ? v1::OBJECT_STATUS_DELETING : v1::OBJECT_STATUS_VALID);
  set_version(out);
  return out;
}

std::string queue_name(const PolicyTables& tables, const Share& share) {
  const Queue* queue = tables.queue(share.queue);
  return queue == nullptr ? "" : queue->def.name;
}

std::string name_of(const v1::PolicyObject& object) {
  const v1::PolicyObjectRef ref = ref_of(object);
  return ref.job_queue() + "/" + ref.name();
}

// "KIND NAME: what": the engine's change lines.
v1::PolicyChange read_change(const std::string& line, bool prune) {
  v1::PolicyChange change;
  const auto space = line.find(' ');
  const auto colon = line.find(": ");
  if (space == std::string::npos || colon == std::string::npos || space > colon) {
    change.set_action(v1::POLICY_ACTION_UPDATE);
    change.mutable_ref()->set_name(line);
    return change;
  }
  v1::PolicyObjectRef& ref = *change.mutable_ref();
  ref.set_kind(kind_of_word(line.substr(0, space)));
  std::string name = line.substr(space + 1, colon - space - 1);
  if (const auto slash = name.find('/');
      ref.kind() == v1::POLICY_KIND_QUOTA_SHARE && slash != std::string::npos) {
    ref.set_job_queue(name.substr(0, slash));
    name = name.substr(slash + 1);
  }
  ref.set_name(name);
  const std::string what = line.substr(colon + 2);
  if (what.starts_with("created")) {
    change.set_action(v1::POLICY_ACTION_CREATE);
  } else if (what.find("delete") != std::string::npos) {
    change.set_action(v1::POLICY_ACTION_DELETE);
    change.set_needs_prune(!prune && what.find("prune") != std::string::npos);
  } else if (what.starts_with("disabled")) {
    change.set_action(v1::POLICY_ACTION_DISABLE);
  } else {
    change.set_action(v1::POLICY_ACTION_UPDATE);
  }
  if (const auto arrow = what.find(" -> "); arrow != std::string::npos) {
    v1::FieldChange& field = *change.add_fields();
    const auto before = what.rfind(' ', arrow - 1);
    field.set_field(before == std::string::npos ? "" : what.substr(0, before));
    field.set_old_value(what.substr(before == std::string::npos ? 0 : before + 1,
                                    arrow - (before == std::string::npos ? 0 : before + 1)));
    field.set_new_value(what.substr(arrow + 4));
  } else if (change.action() == v1::POLICY_ACTION_UPDATE) {
    change.add_fields()->set_field(what);
  }
  return change;
}

}  // namespace

std::vector<v1::PolicyObject> list_objects(const PolicyTables& tables, v1::PolicyKind kind,
                                           const std::string& queue) {
  std::vector<v1::PolicyObject> objects;
  const auto wanted = [&](v1::PolicyKind one) { return kind == one; };
  if (wanted(v1::POLICY_KIND_CAPACITY_UNIT)) {
    for (const Unit& unit : tables.units)
      *objects.emplace_back().mutable_capacity_unit() = write(unit);
  }
  if (wanted(v1::POLICY_KIND_SERVICE_ENVIRONMENT)) {
    for (const Environment& environment : tables.environments) {
      *objects.emplace_back().mutable_service_environment() = write(environment);
    }
  }
  if (wanted(v1::POLICY_KIND_SCHEDULING_POLICY)) {
    for (const SchedulingPolicy& policy : tables.policies) {
      *objects.emplace_back().mutable_scheduling_policy() = write(policy);
    }
  }
  if (wanted(v1::POLICY_KIND_JOB_QUEUE)) {
    for (const Queue& one : tables.queues) *objects.emplace_back().mutable_job_queue() = write(one);
  }
  if (wanted(v1::POLICY_KIND_QUOTA_SHARE)) {
    for (const Share& share : tables.shares) {
      const std::string name = queue_name(tables, share);
      if (!queue.empty() && name != queue) continue;
      *objects.emplace_back().mutable_quota_share() = write(share, name);
    }
  }
  std::ranges::sort(objects, {}, name_of);
  return objects;
}

Result<v1::PolicyObject> find_object(const PolicyTables& tables, const v1::PolicyObjectRef& ref) {
  if (*kind_word(ref.kind()) == '\0') return invalid("kind is missing: say what kind of object");
  if (ref.name().empty()) return invalid("name is empty: give the object's name");
  const bool is_share = ref.kind() == v1::POLICY_KIND_QUOTA_SHARE;
  if (is_share && ref.job_queue().empty()) {
    return invalid("job_queue is empty: a share is named together with its queue");
  }
  for (v1::PolicyObject& object :
       list_objects(tables, ref.kind(), is_share ? ref.job_queue() : "")) {
    if (ref_of(object).name() == ref.name()) return std::move(object);
  }
  return Error{ErrorCode::kNotFound, "there is no " + describe(ref)};
}

v1::PolicyDocument to_proto(const PolicyTables& tables) {
  v1::PolicyDocument document;
  for (const Unit& unit : tables.units) {
    if (!is_retired(tables, unit)) *document.add_capacity_units() = write(unit);
  }
  for (const Environment& environment : tables.environments) {
    if (is_retired(environment)) continue;
    *document.add_service_environments() = write(environment);
  }
  for (const SchedulingPolicy& policy : tables.policies) {
    if (policy.def.name == kRetiredName) continue;
    *document.add_scheduling_policies() = write(policy);
  }
  for (const Queue& queue : tables.queues) {
    if (!queue.deleting && !is_retired(tables, queue)) *document.add_job_queues() = write(queue);
  }
  for (const Share& share : tables.shares) {
    const Queue* queue = tables.queue(share.queue);
    if (share.deleting || (queue != nullptr && is_retired(tables, *queue))) continue;
    *document.add_quota_shares() = write(share, queue_name(tables, share));
  }
  return document;
}

void fill_apply_response(const Reply& reply, bool dry_run, bool prune,
                         v1::ApplyPolicyResponse& out) {
  for (const std::string& line : reply.changes) *out.add_changes() = read_change(line, prune);
  bool failed = false;
  for (const PolicyIssue& issue : reply.issues) {
    v1::PolicyFinding& finding = issue.is_error ? *out.add_errors() : *out.add_warnings();
    finding.set_path(issue.path);
    finding.set_message(issue.message);
    failed = failed || issue.is_error;
  }
  out.set_applied(!failed && !dry_run);
}

}  // namespace gpuq::rpc
