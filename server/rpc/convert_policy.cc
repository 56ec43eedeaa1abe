#include "server/rpc/convert_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/text.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

constexpr std::int64_t kMaxCapacityMilli = 1'000'000'000'000;
constexpr std::int64_t kMaxGrace = 86'400'000;
constexpr std::int64_t kMaxWait = 31'536'000'000;

// Collects findings below one path.
class Findings {
 public:
  Findings(std::vector<PolicyIssue>& issues, std::string path)
      : issues_(issues), path_(std::move(path)) {}
  void add(const std::string& field, std::string fault) {
    if (fault.empty()) return;
    issues_.push_back({true, path_ + (field.empty() ? "" : "." + field), std::move(fault)});
  }
  [[nodiscard]] Findings below(const std::string& field) const {
    return {issues_, path_ + "." + field};
  }

 private:
  std::vector<PolicyIssue>& issues_;
  std::string path_;
};

bool read_state(v1::AdminState state, Findings& findings) {
  if (state == v1::ADMIN_STATE_DISABLED) return false;
  if (state != v1::ADMIN_STATE_ENABLED && state != v1::ADMIN_STATE_UNSPECIFIED) {
    findings.add("state",
                 fmt::format("state is {}: use ENABLED or DISABLED", static_cast<int>(state)));
  }
  return true;
}

template <typename Map>
void refuse_labels(const Map& labels, Findings& findings) {
  if (!labels.empty()) {
    findings.add("labels", "labels of policy objects are not kept by this release: leave them out");
  }
}

UnitDef read_unit(const v1::CapacityUnit& from, Findings findings) {
  findings.add("name", check_name("name", from.name()));
  findings.add("gpu_model", check_line("gpu_model", from.gpu_model(), 128));
  findings.add("gpus", check_range("gpus", from.gpus(), 0, 1024));
  findings.add("cpus", check_range("cpus", from.cpus(), 0, 100'000));
  findings.add("memory", check_range("memory_mib", from.memory_mib(), 0, 1'000'000'000));
  return {from.name(), from.gpu_model(), from.gpus(), from.cpus(), from.memory_mib()};
}

template <typename Limits>
std::vector<CapacityLimit> read_limits(const Limits& from, Findings& findings) {
  std::vector<CapacityLimit> limits;
  for (const v1::CapacityLimit& limit : from) {
    const std::string field = "capacity_limits." + limit.capacity_unit();
    findings.add(field, check_name("capacity_unit", limit.capacity_unit()));
    findings.add(
        field, check_range("max_capacity_milli", limit.max_capacity_milli(), 0, kMaxCapacityMilli));
    limits.push_back({limit.capacity_unit(), Amount(limit.max_capacity_milli())});
  }
  return limits;
}

EnvDef read_environment(const v1::ServiceEnvironment& from, Findings findings) {
  EnvDef def;
  def.name = from.service_environment_name();
  findings.add("name", check_name("service_environment_name", def.name));
  def.node_labels.insert(from.node_selector().begin(), from.node_selector().end());
  def.capacity_limits = read_limits(from.capacity_limits(), findings);
  def.enabled = read_state(from.state(), findings);
  refuse_labels(from.labels(), findings);
  return def;
}

IdleOrder read_idle_order(v1::IdleResourceAssignmentStrategy from, Findings findings) {
  switch (from) {
    case v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_UNSPECIFIED:
    case v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_FIFO:
      return IdleOrder::kFifo;
    case v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_LEAST_BORROWED:
      return IdleOrder::kLeastBorrowed;
    case v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_DECAYED_USAGE:
      return IdleOrder::kDecayedUsage;
    default:
      findings.add("quota_share.idle_resource_assignment",
                   fmt::format("idle_resource_assignment_strategy {} is not known: use FIFO, "
                               "LEAST_BORROWED or DECAYED_USAGE",
                               static_cast<int>(from)));
      return IdleOrder::kFifo;
  }
}

SchedulingPolicyDef read_scheduling_policy(const v1::SchedulingPolicy& from, Findings findings) {
  SchedulingPolicyDef def;
  def.name = from.name();
  findings.add("name", check_name("name", def.name));
  if (from.kind_case() != v1::SchedulingPolicy::kQuotaSharePolicy) {
    findings.add("", "the kind of the scheduling policy is missing: give quota_share_policy");
  }
  const v1::QuotaSharePolicy& quota = from.quota_share_policy();
  def.idle_order = read_idle_order(quota.idle_resource_assignment_strategy(), findings);
  if (quota.has_half_life_ms()) def.half_life = Duration(quota.half_life_ms());
  refuse_labels(from.labels(), findings);
  return def;
}

UserOrder read_user_order(v1::UserOrder from, Findings findings) {
  switch (from) {
    case v1::USER_ORDER_UNSPECIFIED:
    case v1::USER_ORDER_FIFO:
      return UserOrder::kFifo;
    case v1::USER_ORDER_FAIR:
      return UserOrder::kFair;
    default:
      findings.add("user_order", fmt::format("user_order {} is not known: use FIFO or FAIR",
                                             static_cast<int>(from)));
      return UserOrder::kFifo;
  }
}

ShareDef read_share(const v1::QuotaShare& from, Findings findings) {
  ShareDef def;
  def.name = from.quota_share_name();
  findings.add("name", check_name("quota_share_name", def.name));
  def.capacity_limits = read_limits(from.capacity_limits(), findings);
  def.enabled = read_state(from.state(), findings);
  const auto& sharing = from.resource_sharing_configuration();
  switch (sharing.strategy()) {
    case v1::SHARING_STRATEGY_RESERVE:
      def.strategy = SharingStrategy::kReserve;
      break;
    case v1::SHARING_STRATEGY_LEND:
      def.strategy = SharingStrategy::kLend;
      break;
    case v1::SHARING_STRATEGY_LEND_AND_BORROW:
      def.strategy = SharingStrategy::kLendAndBorrow;
      break;
    default:
      findings.add("resource_sharing.strategy",
                   "strategy is missing: use RESERVE, LEND or LEND_AND_BORROW");
  }
  if (sharing.has_borrow_limit()) {
    findings.add("resource_sharing.borrow_limit",
                 check_range("borrow_limit", sharing.borrow_limit(), -1, 1'000'000));
    if (def.strategy != SharingStrategy::kLendAndBorrow) {
      findings.add("resource_sharing.borrow_limit",
                   "borrow_limit is only for strategy LEND_AND_BORROW: leave it out");
    }
    def.borrow_limit = sharing.borrow_limit();
  }
  const auto& preemption = from.preemption_configuration();
  def.in_share_preemption = preemption.in_share_preemption() == v1::IN_SHARE_PREEMPTION_ENABLED;
  findings.add("preemption.min_runtime",
               check_range("min_runtime_ms", preemption.min_runtime_ms(), 0, kMaxWait));
  def.min_runtime = Duration(preemption.min_runtime_ms());
  if (preemption.has_grace_ms()) {
    findings.add("preemption.grace", check_range("grace_ms", preemption.grace_ms(), 0, kMaxGrace));
    def.grace = Duration(preemption.grace_ms());
  }
  if (from.has_head_wait_limit_ms()) {
    findings.add("head_wait_limit",
                 check_range("head_wait_limit_ms", from.head_wait_limit_ms(), 0, kMaxWait));
    def.head_wait_limit = Duration(from.head_wait_limit_ms());
  }
  def.user_order = read_user_order(from.user_order(), findings);
  refuse_labels(from.labels(), findings);
  return def;
}

QueueDef read_queue(const v1::JobQueue& from, Findings findings) {
  QueueDef def;
  def.name = from.job_queue_name();
  findings.add("name", check_name("job_queue_name", def.name));
  findings.add("priority", check_range("priority", from.priority(), 0, 1000));
  def.priority = from.priority();
  def.scheduling_policy = from.scheduling_policy();
  def.enabled = read_state(from.state(), findings);
  std::vector<const v1::ServiceEnvironmentOrder*> orders;
  for (const auto& order : from.service_environment_order()) orders.push_back(&order);
  std::ranges::stable_sort(orders, {}, [](const auto* order) { return order->order(); });
  for (const auto* order : orders) def.service_environments.push_back(order->service_environment());
  int index = 0;
  for (const auto& limit : from.job_state_time_limit_actions()) {
    Findings below = findings.below(fmt::format("time_limit_actions[{}]", index++));
    below.add("max_time", check_range("max_time_seconds", limit.max_time_seconds(), 600, 86'400));
    if (limit.action() != v1::JOB_STATE_TIME_LIMIT_ACTIONS_ACTION_TERMINATE) {
      below.add("action", "action is missing: use TERMINATE");
    }
    def.time_limit_actions.push_back(
        {limit.reason(), std::chrono::seconds(limit.max_time_seconds())});
  }
  refuse_labels(from.labels(), findings);
  return def;
}

bool names_kind(const v1::PolicyDocument& document, v1::PolicyKind kind, int entries) {
  if (document.kinds().empty()) return entries > 0;
  return std::ranges::find(document.kinds(), static_cast<int>(kind)) != document.kinds().end();
}

void read_queues(const v1::PolicyDocument& document, PolicyDocResult& result) {
  auto& queues = result.doc.queues.emplace();
  for (const v1::JobQueue& queue : document.job_queues()) {
    queues.push_back(
        read_queue(queue, {result.issues, fmt::format("job_queues[{}]", queues.size())}));
  }
  for (const v1::QuotaShare& share : document.quota_shares()) {
    const auto queue = std::ranges::find(queues, share.job_queue(), &QueueDef::name);
    if (queue == queues.end()) {
      result.issues.push_back(
          {true, "quota_shares",
           fmt::format("share {} belongs to queue {}, which the document does "
                       "not name: add it under job_queues",
                       quote(share.quota_share_name()), quote(share.job_queue()))});
      continue;
    }
    queue->shares.push_back(read_share(
        share, {result.issues, fmt::format("job_queues[{}].quota_shares[{}]",
                                           queue - queues.begin(), queue->shares.size())}));
  }
}

}  // namespace

const char* kind_word(v1::PolicyKind kind) {
  switch (kind) {
    case v1::POLICY_KIND_CAPACITY_UNIT:
      return "unit";
    case v1::POLICY_KIND_SERVICE_ENVIRONMENT:
      return "environment";
    case v1::POLICY_KIND_SCHEDULING_POLICY:
      return "policy";
    case v1::POLICY_KIND_JOB_QUEUE:
      return "queue";
    case v1::POLICY_KIND_QUOTA_SHARE:
      return "share";
    default:
      return "";
  }
}

v1::PolicyKind kind_of_word(const std::string& word) {
  for (const auto kind : {v1::POLICY_KIND_CAPACITY_UNIT, v1::POLICY_KIND_SERVICE_ENVIRONMENT,
                          v1::POLICY_KIND_SCHEDULING_POLICY, v1::POLICY_KIND_JOB_QUEUE,
                          v1::POLICY_KIND_QUOTA_SHARE}) {
    if (word == kind_word(kind)) return kind;
  }
  return v1::POLICY_KIND_UNSPECIFIED;
}

PolicyDocResult to_policy_doc(const v1::PolicyDocument& document) {
  PolicyDocResult result;
  auto& issues = result.issues;
  for (const int kind : document.kinds()) {
    if (*kind_word(static_cast<v1::PolicyKind>(kind)) == '\0') {
      issues.push_back({true, "kinds", fmt::format("kind {} is unknown", kind)});
    }
  }
  if (names_kind(document, v1::POLICY_KIND_CAPACITY_UNIT, document.capacity_units_size())) {
    auto& units = result.doc.units.emplace();
    for (const auto& unit : document.capacity_units()) {
      units.push_back(read_unit(unit, {issues, fmt::format("capacity_units[{}]", units.size())}));
    }
  }
  if (names_kind(document, v1::POLICY_KIND_SERVICE_ENVIRONMENT,
                 document.service_environments_size())) {
    auto& environments = result.doc.environments.emplace();
    for (const auto& environment : document.service_environments()) {
      environments.push_back(read_environment(
          environment, {issues, fmt::format("service_environments[{}]", environments.size())}));
    }
  }
  if (names_kind(document, v1::POLICY_KIND_SCHEDULING_POLICY,
                 document.scheduling_policies_size())) {
    auto& policies = result.doc.policies.emplace();
    for (const auto& policy : document.scheduling_policies()) {
      policies.push_back(read_scheduling_policy(
          policy, {issues, fmt::format("scheduling_policies[{}]", policies.size())}));
    }
  }
  if (names_kind(document, v1::POLICY_KIND_JOB_QUEUE, document.job_queues_size()) ||
      document.quota_shares_size() > 0) {
    read_queues(document, result);
  }
  return result;
}

namespace {

Result<> first_issue(const std::vector<PolicyIssue>& issues) {
  if (issues.empty()) return {};
  return invalid(issues.front().message);
}

}  // namespace

Result<PolicyDoc> to_single_doc(const v1::PolicyObject& object) {
  PolicyDoc doc;
  std::vector<PolicyIssue> issues;
  const Findings findings(issues, "object");
  switch (object.object_case()) {
    case v1::PolicyObject::kCapacityUnit:
      doc.units = {read_unit(object.capacity_unit(), findings)};
      break;
    case v1::PolicyObject::kServiceEnvironment:
      doc.environments = {read_environment(object.service_environment(), findings)};
      break;
    case v1::PolicyObject::kSchedulingPolicy:
      doc.policies = {read_scheduling_policy(object.scheduling_policy(), findings)};
      break;
    case v1::PolicyObject::kJobQueue:
      doc.queues = {read_queue(object.job_queue(), findings)};
      break;
    case v1::PolicyObject::kQuotaShare: {
      if (auto fault = check_name("job_queue", object.quota_share().job_queue()); !fault.empty()) {
        return invalid(std::move(fault));
      }
      QueueDef queue;
      queue.name = object.quota_share().job_queue();
      queue.shares.push_back(read_share(object.quota_share(), findings));
      doc.queues = {std::move(queue)};
      break;
    }
    case v1::PolicyObject::OBJECT_NOT_SET:
      return invalid("object is missing: give one policy object");
  }
  if (auto fine = first_issue(issues); !fine) return fine.error();
  return doc;
}

v1::PolicyObjectRef ref_of(const v1::PolicyObject& object) {
  v1::PolicyObjectRef ref;
  switch (object.object_case()) {
    case v1::PolicyObject::kCapacityUnit:
      ref.set_kind(v1::POLICY_KIND_CAPACITY_UNIT);
      ref.set_name(object.capacity_unit().name());
      break;
    case v1::PolicyObject::kServiceEnvironment:
      ref.set_kind(v1::POLICY_KIND_SERVICE_ENVIRONMENT);
      ref.set_name(object.service_environment().service_environment_name());
      break;
    case v1::PolicyObject::kSchedulingPolicy:
      ref.set_kind(v1::POLICY_KIND_SCHEDULING_POLICY);
      ref.set_name(object.scheduling_policy().name());
      break;
    case v1::PolicyObject::kJobQueue:
      ref.set_kind(v1::POLICY_KIND_JOB_QUEUE);
      ref.set_name(object.job_queue().job_queue_name());
      break;
    case v1::PolicyObject::kQuotaShare:
      ref.set_kind(v1::POLICY_KIND_QUOTA_SHARE);
      ref.set_name(object.quota_share().quota_share_name());
      ref.set_job_queue(object.quota_share().job_queue());
      break;
    case v1::PolicyObject::OBJECT_NOT_SET:
      break;
  }
  return ref;
}

std::string describe(const v1::PolicyObjectRef& ref) {
  const std::string name =
      ref.kind() == v1::POLICY_KIND_QUOTA_SHARE ? ref.job_queue() + "/" + ref.name() : ref.name();
  return std::string(kind_word(ref.kind())) + " " + quote(name);
}

}  // namespace gpuq::rpc
