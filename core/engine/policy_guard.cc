#include "core/engine/policy_guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/engine/policy_target.h"
#include "core/model/policy_document.h"

namespace gpuq {

namespace {

bool offers(const EnvDef& environment, const std::string& unit) {
  return std::ranges::find(environment.capacity_limits, unit, &CapacityLimit::unit) !=
         environment.capacity_limits.end();
}

std::string place(const char* kind, std::size_t index) {
  return fmt::format("{}[{}]", kind, index);
}

template <typename Def>
std::string place_of(const std::vector<Def>& defs, const std::string& name, const char* kind) {
  const Def* def = find_named(defs, name);
  return def != nullptr ? place(kind, static_cast<std::size_t>(def - defs.data())) : kind;
}

class DeletionGuard {
 public:
  DeletionGuard(const ApplyPolicyCommand& command, std::vector<PolicyIssue>& issues)
      : command_(command), issues_(issues) {}

  void deletion(const std::string& path, const std::string& what, bool must_be_disabled) {
    if (!command_.prune && !command_.partial) {
      error(path, fmt::format("{} is not in the document and would be deleted: add --prune to "
                              "delete it, or add it to the document",
                              what));
    }
    if (must_be_disabled) {
      error(path, fmt::format("{} is ENABLED and can not be deleted: apply it with state DISABLED "
                              "first",
                              what));
    }
  }

 private:
  void error(std::string path, std::string message) {
    issues_.push_back({true, std::move(path), std::move(message)});
  }

  const ApplyPolicyCommand& command_;
  std::vector<PolicyIssue>& issues_;
};

/// Whether a queue with live jobs stands on an environment that offers `unit`.
std::string busy_queue_of_unit(const PolicyDoc& base, const LiveJobs& live,
                               const std::string& unit) {
  for (const QueueDef& queue : *base.queues) {
    if (!live.queues.contains(queue.name) || queue.service_environments.empty()) continue;
    const EnvDef* environment = find_named(*base.environments, queue.service_environments.front());
    if (environment != nullptr && offers(*environment, unit)) return queue.name;
  }
  return "";
}

void guard_units(const PolicyTables& current, const PolicyDoc& base, const PolicyDoc& target,
                 const LiveJobs& live, std::vector<PolicyIssue>& issues) {
  for (std::size_t i = 0; i < target.units->size(); ++i) {
    const UnitDef& unit = (*target.units)[i];
    const Unit* old = current.unit(unit.name);
    if (old == nullptr || old->def == unit) continue;
    std::string queue = busy_queue_of_unit(base, live, unit.name);
    const bool of_builtin = current.builtin || is_retired(current, *old);
    if (queue.empty() && of_builtin && live.keeps_builtin()) queue = kDefaultName;
    if (queue.empty()) continue;
    issues.push_back(
        {true, place("capacity_units", i),
         fmt::format("unit {} can not change its shape while queue {} has jobs: define "
                     "a unit of another name",
                     unit.name, queue)});
  }
}

void guard_environments(const PolicyDoc& base, const PolicyDoc& target, const LiveJobs& live,
                        std::vector<PolicyIssue>& issues) {
  for (const QueueDef& old : *base.queues) {
    const auto use = live.queues.find(old.name);
    const QueueDef* queue = find_named(*target.queues, old.name);
    if (use == live.queues.end() || queue == nullptr || old.service_environments.empty()) continue;
    if (queue->service_environments != old.service_environments) {
      issues.push_back({true,
                        place_of(*target.queues, old.name, "job_queues") + ".service_environments",
                        fmt::format("queue {} has {}: it can move to another environment when they "
                                    "have ended",
                                    old.name, describe_use(use->second))});
      continue;
    }
    const std::string& name = old.service_environments.front();
    const EnvDef* before = find_named(*base.environments, name);
    const EnvDef* after = find_named(*target.environments, name);
    if (before == nullptr || after == nullptr) continue;
    for (const CapacityLimit& limit : before->capacity_limits) {
      if (offers(*after, limit.unit)) continue;
      issues.push_back(
          {true, place_of(*target.environments, name, "service_environments") + ".capacity_limits",
           fmt::format("unit {} can not leave environment {} while queue {} has jobs: "
                       "set its limit to 0 instead",
                       limit.unit, name, old.name)});
    }
  }
}

void guard_builtin_queue(const PolicyDoc& target, const LiveJobs& live,
                         std::vector<PolicyIssue>& issues) {
  if (!live.keeps_builtin() || find_named(*target.queues, kDefaultName) == nullptr) return;
  issues.push_back({true, place_of(*target.queues, kDefaultName, "job_queues") + ".name",
                    fmt::format("the built-in queue {} still has {}: use another name, or wait for "
                                "them",
                                kDefaultName, describe_use(live.builtin))});
}

/// What a queue or share that is being deleted still stands on goes with it, unasked.
bool stays_for_deletion(const PolicyTables& current, const EnvDef& environment) {
  return std::ranges::any_of(current.queues, [&](const Queue& queue) {
    return queue.deleting && std::ranges::find(queue.def.service_environments, environment.name) !=
                                 queue.def.service_environments.end();
  });
}
bool stays_for_deletion(const PolicyTables& current, const UnitDef& unit) {
  return std::ranges::any_of(current.shares, [&](const Share& share) {
    return share.deleting &&
           std::ranges::find(share.def.capacity_limits, unit.name, &CapacityLimit::unit) !=
               share.def.capacity_limits.end();
  });
}

}  // namespace

std::string describe_use(const ShareUse& use) {
  return fmt::format("{} waiting and {} active job{}", use.waiting, use.active,
                     use.waiting + use.active == 1 ? "" : "s");
}

LiveJobs count_live_jobs(const PolicyTables& current, const std::map<ShareId, ShareUse>& uses) {
  LiveJobs live;
  for (const auto& [id, use] : uses) {
    const Share* share = current.share(id);
    if (share == nullptr || use.waiting + use.active == 0) continue;
    const Queue* queue = current.queue(share->queue);
    if (queue == nullptr) continue;
    const bool builtin = current.builtin || is_retired(current, *queue);
    ShareUse& sum = builtin ? live.builtin : live.queues[queue->def.name];
    sum.waiting += use.waiting;
    sum.active += use.active;
  }
  return live;
}

void guard_deletions(const PolicyTables& current, const PolicyDoc& base, const PolicyTarget& target,
                     const ApplyPolicyCommand& command, std::vector<PolicyIssue>& issues) {
  DeletionGuard guard(command, issues);
  for (const UnitDef& old : *base.units) {
    if (find_named(*target.doc.units, old.name) != nullptr || stays_for_deletion(current, old))
      continue;
    guard.deletion("capacity_units", fmt::format("unit {}", old.name), false);
  }
  for (const SchedulingPolicyDef& old : *base.policies) {
    if (find_named(*target.doc.policies, old.name) != nullptr) continue;
    guard.deletion("scheduling_policies", fmt::format("policy {}", old.name), false);
  }
  for (const EnvDef& old : *base.environments) {
    if (find_named(*target.doc.environments, old.name) != nullptr ||
        stays_for_deletion(current, old)) {
      continue;
    }
    guard.deletion("service_environments", fmt::format("environment {}", old.name), old.enabled);
  }
  for (const QueueDef& old : *base.queues) {
    const QueueDef* queue = find_named(*target.doc.queues, old.name);
    if (queue == nullptr) {
      guard.deletion("job_queues", fmt::format("queue {}", old.name), old.enabled);
      continue;
    }
    const std::string path = place_of(*target.doc.queues, old.name, "job_queues");
    for (const ShareDef& share : old.shares) {
      if (find_named(queue->shares, share.name) != nullptr) continue;
      guard.deletion(path, fmt::format("share {}/{}", old.name, share.name), share.enabled);
    }
  }
}

void guard_live_jobs(const PolicyTables& current, const PolicyDoc& base, const PolicyDoc& target,
                     const LiveJobs& live, std::vector<PolicyIssue>& issues) {
  guard_units(current, base, target, live, issues);
  guard_environments(base, target, live, issues);
  guard_builtin_queue(target, live, issues);
}

}  // namespace gpuq
