#include "client/cli/policy_message.h"

namespace gpuq::cli {

namespace {

v1::AdminState state_of(bool enabled) {
  return enabled ? v1::ADMIN_STATE_ENABLED : v1::ADMIN_STATE_DISABLED;
}

template <typename Message>
void add_limits(const std::vector<CapacityLimit>& limits, Message& message) {
  for (const auto& limit : limits) {
    auto* one = message.add_capacity_limits();
    one->set_capacity_unit(limit.unit);
    one->set_max_capacity_milli(limit.max_capacity.milli);
  }
}

void add_unit(const UnitDef& def, v1::PolicyDocument& document) {
  auto* unit = document.add_capacity_units();
  unit->set_name(def.name);
  unit->set_gpu_model(def.gpu_model);
  unit->set_gpus(def.gpus);
  unit->set_cpus(def.cpus);
  unit->set_memory_mib(def.memory_mib);
}

void add_environment(const EnvDef& def, v1::PolicyDocument& document) {
  auto* environment = document.add_service_environments();
  environment->set_service_environment_name(def.name);
  environment->set_state(state_of(def.enabled));
  for (const auto& [key, value] : def.node_labels) {
    (*environment->mutable_node_selector())[key] = value;
  }
  add_limits(def.capacity_limits, *environment);
}

v1::IdleResourceAssignmentStrategy order_of(IdleOrder order) {
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

void add_policy(const SchedulingPolicyDef& def, v1::PolicyDocument& document) {
  auto* policy = document.add_scheduling_policies();
  policy->set_name(def.name);
  // The other kinds of queue have no message yet; the policy file does not take them either.
  if (def.kind != QueueKind::kQuota) return;
  auto* quota = policy->mutable_quota_share_policy();
  quota->set_idle_resource_assignment_strategy(order_of(def.idle_order));
  quota->set_half_life_ms(def.half_life.count());
}

void set_sharing(const ShareDef& def, v1::ResourceSharingConfiguration& sharing) {
  switch (def.strategy) {
    case SharingStrategy::kReserve:
      sharing.set_strategy(v1::SHARING_STRATEGY_RESERVE);
      break;
    case SharingStrategy::kLend:
      sharing.set_strategy(v1::SHARING_STRATEGY_LEND);
      break;
    case SharingStrategy::kLendAndBorrow:
      sharing.set_strategy(v1::SHARING_STRATEGY_LEND_AND_BORROW);
      sharing.set_borrow_limit(def.borrow_limit);
      break;
  }
}

void add_share(const std::string& queue, const ShareDef& def, v1::PolicyDocument& document) {
  auto* share = document.add_quota_shares();
  share->set_quota_share_name(def.name);
  share->set_job_queue(queue);
  share->set_state(state_of(def.enabled));
  add_limits(def.capacity_limits, *share);
  set_sharing(def, *share->mutable_resource_sharing_configuration());
  auto* preemption = share->mutable_preemption_configuration();
  preemption->set_in_share_preemption(def.in_share_preemption ? v1::IN_SHARE_PREEMPTION_ENABLED
                                                              : v1::IN_SHARE_PREEMPTION_DISABLED);
  preemption->set_min_runtime_ms(def.min_runtime.count());
  if (def.grace) preemption->set_grace_ms(def.grace->count());
  if (def.head_wait_limit) share->set_head_wait_limit_ms(def.head_wait_limit->count());
  share->set_user_order(def.user_order == UserOrder::kFair ? v1::USER_ORDER_FAIR
                                                           : v1::USER_ORDER_FIFO);
}

void add_queue(const QueueDef& def, v1::PolicyDocument& document) {
  auto* queue = document.add_job_queues();
  queue->set_job_queue_name(def.name);
  queue->set_state(state_of(def.enabled));
  queue->set_priority(def.priority);
  queue->set_scheduling_policy(def.scheduling_policy);
  std::int32_t order = 0;
  for (const auto& name : def.service_environments) {
    auto* environment = queue->add_service_environment_order();
    environment->set_order(++order);
    environment->set_service_environment(name);
  }
  for (const auto& action : def.time_limit_actions) {
    auto* limit = queue->add_job_state_time_limit_actions();
    limit->set_reason(action.reason);
    limit->set_max_time_seconds(action.max_time.count() / 1000);
    limit->set_action(v1::JOB_STATE_TIME_LIMIT_ACTIONS_ACTION_TERMINATE);
  }
  for (const auto& share : def.shares) add_share(def.name, share, document);
}

}  // namespace

v1::PolicyDocument to_message(const PolicyDoc& doc) {
  v1::PolicyDocument document;
  if (doc.units) {
    document.add_kinds(v1::POLICY_KIND_CAPACITY_UNIT);
    for (const auto& def : *doc.units) add_unit(def, document);
  }
  if (doc.environments) {
    document.add_kinds(v1::POLICY_KIND_SERVICE_ENVIRONMENT);
    for (const auto& def : *doc.environments) add_environment(def, document);
  }
  if (doc.policies) {
    document.add_kinds(v1::POLICY_KIND_SCHEDULING_POLICY);
    for (const auto& def : *doc.policies) add_policy(def, document);
  }
  if (doc.queues) {
    document.add_kinds(v1::POLICY_KIND_JOB_QUEUE);
    document.add_kinds(v1::POLICY_KIND_QUOTA_SHARE);
    for (const auto& def : *doc.queues) add_queue(def, document);
  }
  return document;
}

}  // namespace gpuq::cli
