#include "core/model/policy_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/base/text.h"
#include "core/model/policy_document.h"
#include "core/model/reason.h"

namespace gpuq {

namespace {

constexpr Amount kMaxCapacity = Amount::units(1'000'000'000);
constexpr std::int32_t kMaxGpus = 1024;
constexpr std::int32_t kMaxCpus = 100'000;
constexpr std::int64_t kMaxMemoryMib = 1'000'000'000;
constexpr std::int32_t kMaxQueuePriority = 1000;
constexpr std::int32_t kMaxBorrowLimit = 1'000'000;
constexpr Duration kMaxGrace = std::chrono::hours(24);
constexpr Duration kMaxWait = std::chrono::hours(24 * 3650);

template <typename Def>
const std::vector<Def>& list_of(const std::optional<std::vector<Def>>& kind) {
  static const std::vector<Def> kNothing;
  return kind ? *kind : kNothing;
}

bool same_gpus(const UnitDef& a, const UnitDef& b) {
  return a.gpus > 0 && b.gpus > 0 &&
         (a.gpu_model.empty() || b.gpu_model.empty() || a.gpu_model == b.gpu_model);
}

class PolicyChecker {
 public:
  PolicyChecker(const PolicyDoc& doc, std::int32_t max_shares, std::int32_t max_units)
      : doc_(doc), max_shares_(max_shares), max_units_(max_units) {
    for (const UnitDef& unit : list_of(doc.units)) units_.emplace(unit.name, &unit);
    for (const EnvDef& env : list_of(doc.environments)) environments_.emplace(env.name, &env);
    for (const auto& policy : list_of(doc.policies)) policies_.insert(policy.name);
  }

  std::vector<PolicyIssue> run() {
    each(list_of(doc_.units), "capacity_units", &PolicyChecker::check_unit);
    each(list_of(doc_.environments), "service_environments", &PolicyChecker::check_environment);
    each(list_of(doc_.policies), "scheduling_policies", &PolicyChecker::check_scheduling_policy);
    each(list_of(doc_.queues), "job_queues", &PolicyChecker::check_queue);
    return std::move(issues_);
  }

 private:
  template <typename Def>
  void each(const std::vector<Def>& defs, const std::string& kind,
            void (PolicyChecker::*check)(const Def&, const std::string&)) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < defs.size(); ++i) {
      const std::string path = fmt::format("{}[{}]", kind, i);
      check_name(defs[i].name, path, names);
      (this->*check)(defs[i], path);
    }
  }

  void check_name(const std::string& name, const std::string& path, std::set<std::string>& seen) {
    if (!is_object_name(name)) {
      error(path + ".name",
            fmt::format("name {} is not valid: 1 to 128 of the characters A-Z a-z 0-9 . _ -",
                        quote(name)));
    } else if (name == kRetiredName) {
      error(path + ".name", fmt::format("name {} is gpuq's own: use another", name));
    } else if (!seen.insert(name).second) {
      error(path + ".name", fmt::format("name {} is given twice", quote(name)));
    }
  }

  void check_unit(const UnitDef& unit, const std::string& path) {
    range(unit.gpus, 0, kMaxGpus, path + ".gpus");
    range(unit.cpus, 0, kMaxCpus, path + ".cpus");
    range(unit.memory_mib, 0, kMaxMemoryMib, path + ".memory");
    if (unit.gpus == 0 && unit.cpus == 0 && unit.memory_mib == 0) {
      error(path, fmt::format("unit {} has no shape: give gpus, cpus or memory", unit.name));
    }
    if (!unit.gpu_model.empty() && unit.gpus == 0) {
      error(path + ".gpu_model", fmt::format("unit {} names a gpu_model, but no gpus", unit.name));
    }
    if (unit.gpu_model.size() > 128 || !is_valid_utf8(unit.gpu_model) ||
        has_control_characters(unit.gpu_model)) {
      error(path + ".gpu_model", fmt::format("gpu_model {} is not valid: at most 128 bytes of text",
                                             quote(unit.gpu_model)));
    }
  }

  void check_environment(const EnvDef& env, const std::string& path) {
    check_labels(env, path);
    if (env.capacity_limits.empty()) {
      error(path, fmt::format("service environment {} offers no unit: list its capacity_limits",
                              env.name));
    }
    check_limits(env.capacity_limits, path + ".capacity_limits");
    for (std::size_t i = 0; i < env.capacity_limits.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        check_pair(env, unit_of(env.capacity_limits[k]), unit_of(env.capacity_limits[i]), path);
      }
    }
  }

  void check_labels(const EnvDef& env, const std::string& path) {
    for (const auto& [key, value] : env.node_labels) {
      const bool bad_key = key.empty() || key.size() > 128 || has_control_characters(key) ||
                           key.starts_with(kReservedLabelPrefix);
      if (bad_key || value.size() > 256 || has_control_characters(value)) {
        error(path + ".nodes", fmt::format("label {}={} is not valid: keys of 1 to 128 bytes not "
                                           "starting with {}, values up to 256",
                                           quote(key), quote(value), kReservedLabelPrefix));
      }
    }
  }

  /// Two units of one environment: Q8.
  void check_pair(const EnvDef& env, const UnitDef* a, const UnitDef* b, const std::string& path) {
    if (a == nullptr || b == nullptr || a == b) return;
    const std::string place = path + ".capacity_limits." + b->name;
    if (same_gpus(*a, *b)) {
      const std::string& model = a->gpu_model.empty() ? b->gpu_model : a->gpu_model;
      error(place,
            fmt::format("units {} and {} of environment {} count the same GPUs ({}): keep one",
                        a->name, b->name, env.name, model.empty() ? "any model" : model));
    } else if (a->cpus > 0 && b->cpus > 0 && (a->gpus == 0 || b->gpus == 0)) {
      warn(place, fmt::format("units {} and {} of environment {} count the same CPUs: whether both "
                              "fit is decided node by node",
                              a->name, b->name, env.name));
    }
  }

  void check_limits(const std::vector<CapacityLimit>& limits, const std::string& path) {
    std::set<std::string> seen;
    for (const CapacityLimit& limit : limits) {
      const std::string place = path + "." + limit.unit;
      if (unit_of(limit) == nullptr) {
        error(place, fmt::format("there is no capacity unit {}: define it under capacity_units",
                                 quote(limit.unit)));
      } else if (!seen.insert(limit.unit).second) {
        error(place, fmt::format("unit {} is given twice", limit.unit));
      }
      if (limit.max_capacity < kZero || limit.max_capacity > kMaxCapacity) {
        error(place, fmt::format("{} is out of range: write 0 to {}", to_string(limit.max_capacity),
                                 to_string(kMaxCapacity)));
      }
    }
  }

  void check_scheduling_policy(const SchedulingPolicyDef& policy, const std::string& path) {
    if (policy.kind != QueueKind::kQuota) {
      error(path,
            fmt::format("scheduling policy {} is of kind {}, which this version does not run: "
                        "use quota_share",
                        policy.name, to_string(policy.kind)));
    }
    if (policy.idle_order < IdleOrder::kFifo || policy.idle_order > IdleOrder::kDecayedUsage) {
      error(path + ".quota_share.idle_resource_assignment",
            "write FIFO, LEAST_BORROWED or DECAYED_USAGE");
    }
    if (policy.half_life < kMinHalfLife || policy.half_life > kMaxHalfLife) {
      error(path + ".quota_share.half_life", fmt::format("{} ms is out of range: 1 minute to 365 "
                                                         "days",
                                                         policy.half_life.count()));
    }
  }

  void check_queue(const QueueDef& queue, const std::string& path) {
    range(queue.priority, 0, kMaxQueuePriority, path + ".priority");
    const EnvDef* env = check_queue_environment(queue, path);
    if (!policies_.contains(queue.scheduling_policy)) {
      error(path + ".scheduling_policy",
            queue.scheduling_policy.empty()
                ? fmt::format("queue {} needs a scheduling_policy", queue.name)
                : fmt::format("there is no scheduling policy {}: define it under "
                              "scheduling_policies",
                              quote(queue.scheduling_policy)));
    }
    for (std::size_t i = 0; i < queue.time_limit_actions.size(); ++i) {
      check_time_limit(queue.time_limit_actions[i],
                       fmt::format("{}.time_limit_actions[{}]", path, i));
    }
    check_shares(queue, env, path);
  }

  const EnvDef* check_queue_environment(const QueueDef& queue, const std::string& path) {
    const std::string place = path + ".service_environments";
    if (queue.service_environments.size() != 1) {
      error(place, fmt::format("queue {} names {} service environments: a quota queue has exactly "
                               "one",
                               queue.name, queue.service_environments.size()));
      return nullptr;
    }
    const std::string& name = queue.service_environments.front();
    const auto found = environments_.find(name);
    if (found == environments_.end()) {
      error(place + "[0]", fmt::format("there is no service environment {}: define it under "
                                       "service_environments",
                                       quote(name)));
      return nullptr;
    }
    const auto [server, fresh] = served_by_.emplace(name, queue.name);
    if (!fresh && server->second != queue.name) {
      error(place + "[0]",
            fmt::format("environment {} already serves queue {}: a quota queue needs "
                        "one of its own",
                        name, server->second));
    }
    return found->second;
  }

  void check_time_limit(const TimeLimitAction& action, const std::string& path) {
    if (!is_known_reason(action.reason)) {
      error(path + ".reason", fmt::format("{} is no reason that a job can wait for, such as "
                                          "MISCONFIGURATION:NO_NODE_FITS",
                                          quote(action.reason)));
    }
    if (action.max_time < std::chrono::seconds(600) ||
        action.max_time > std::chrono::seconds(86400)) {
      error(path + ".max_time", fmt::format("{} s is out of range: 10 minutes to 24 hours",
                                            action.max_time.count() / 1000));
    }
  }

  void check_shares(const QueueDef& queue, const EnvDef* env, const std::string& path) {
    if (queue.shares.empty()) {
      warn(path,
           fmt::format("queue {} has no quota share: nothing can be submitted to it", queue.name));
    }
    if (queue.shares.size() > static_cast<std::size_t>(max_shares_)) {
      error(path + ".quota_shares", fmt::format("queue {} has {} quota shares: at most {}",
                                                queue.name, queue.shares.size(), max_shares_));
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < queue.shares.size(); ++i) {
      const std::string place = fmt::format("{}.quota_shares[{}]", path, i);
      check_name(queue.shares[i].name, place, names);
      check_share(queue.shares[i], env, place);
    }
  }

  void check_share(const ShareDef& share, const EnvDef* env, const std::string& path) {
    const std::string limits = path + ".capacity_limits";
    if (share.capacity_limits.empty()) {
      error(path,
            fmt::format("share {} has no capacity_limits: name at least one unit", share.name));
    }
    if (share.capacity_limits.size() > static_cast<std::size_t>(max_units_)) {
      error(limits, fmt::format("share {} names {} units: at most {}", share.name,
                                share.capacity_limits.size(), max_units_));
    }
    check_limits(share.capacity_limits, limits);
    for (const CapacityLimit& limit : share.capacity_limits) {
      if (env == nullptr || unit_of(limit) == nullptr) continue;
      if (std::ranges::find(env->capacity_limits, limit.unit, &CapacityLimit::unit) ==
          env->capacity_limits.end()) {
        error(limits + "." + limit.unit,
              fmt::format("environment {} does not offer unit {}: add it to its capacity_limits",
                          env->name, limit.unit));
      }
    }
    check_sharing(share, path + ".resource_sharing");
    wait_range(share.min_runtime, kMaxWait, path + ".preemption.min_runtime");
    if (share.grace) wait_range(*share.grace, kMaxGrace, path + ".preemption.grace");
    if (share.user_order < UserOrder::kFifo || share.user_order > UserOrder::kFair) {
      error(path + ".user_order", "write FIFO or FAIR");
    }
    if (share.head_wait_limit) {
      wait_range(*share.head_wait_limit, kMaxWait, path + ".head_wait_limit");
    }
  }

  void check_sharing(const ShareDef& share, const std::string& path) {
    if (share.strategy < SharingStrategy::kReserve ||
        share.strategy > SharingStrategy::kLendAndBorrow) {
      error(path + ".strategy", "write RESERVE, LEND or LEND_AND_BORROW");
    }
    range(share.borrow_limit, -1, kMaxBorrowLimit, path + ".borrow_limit");
    if (share.borrow_limit != -1 && share.strategy != SharingStrategy::kLendAndBorrow) {
      error(path + ".borrow_limit",
            fmt::format("share {} has strategy {}, which never borrows: drop borrow_limit",
                        share.name, to_string(share.strategy)));
    }
  }

  void range(std::int64_t value, std::int64_t min, std::int64_t max, const std::string& path) {
    if (value < min || value > max) {
      error(path, fmt::format("{} is out of range: write {} to {}", value, min, max));
    }
  }

  void wait_range(Duration value, Duration max, const std::string& path) {
    if (value < Duration(0) || value > max) {
      error(path, fmt::format("{} ms is out of range: 0 to {} hours", value.count(),
                              max / std::chrono::hours(1)));
    }
  }

  const UnitDef* unit_of(const CapacityLimit& limit) const {
    const auto it = units_.find(limit.unit);
    return it != units_.end() ? it->second : nullptr;
  }

  void error(std::string path, std::string message) {
    issues_.push_back({true, std::move(path), std::move(message)});
  }
  void warn(std::string path, std::string message) {
    issues_.push_back({false, std::move(path), std::move(message)});
  }

  const PolicyDoc& doc_;
  std::int32_t max_shares_;
  std::int32_t max_units_;
  std::map<std::string, const UnitDef*> units_;
  std::map<std::string, const EnvDef*> environments_;
  std::set<std::string> policies_;
  std::map<std::string, std::string> served_by_;  ///< Environment -> the first queue that uses it.
  std::vector<PolicyIssue> issues_;
};

}  // namespace

std::vector<PolicyIssue> check_policy(const PolicyDoc& doc, std::int32_t max_shares,
                                      std::int32_t max_units) {
  return PolicyChecker(doc, max_shares, max_units).run();
}

bool is_known_reason(const std::string& name) {
  for (auto code = ReasonCode::kDependency; code <= ReasonCode::kBehindInShare;
       code = static_cast<ReasonCode>(static_cast<int>(code) + 1)) {
    if (name == to_string(code)) return true;
  }
  return false;
}

}  // namespace gpuq
