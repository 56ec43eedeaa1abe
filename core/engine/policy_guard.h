#pragma once
// What stands against a policy change in the present state: deletions that nobody confirmed,
// objects that live jobs depend on.
#include <map>
#include <string>
#include <vector>

#include "core/engine/policy_change.h"

namespace gpuq {

struct PolicyTarget;

/// Jobs by queue, and what is left of a replaced built-in policy.
struct LiveJobs {
  std::map<std::string, ShareUse> queues;  ///< Only queues with jobs.
  /// Jobs of the built-in queue, when the change replaces the built-in policy or it is retired.
  ShareUse builtin;
  [[nodiscard]] bool keeps_builtin() const { return builtin.waiting + builtin.active > 0; }
};

LiveJobs count_live_jobs(const PolicyTables& current, const std::map<ShareId, ShareUse>& uses);

/// P12 and prune: every object of `base` that `target` leaves out. Adds an error without `prune`
/// (unless the command is partial and named the deletion) and for queues, shares and environments
/// that are not DISABLED.
void guard_deletions(const PolicyTables& current, const PolicyDoc& base, const PolicyTarget& target,
                     const ApplyPolicyCommand& command, std::vector<PolicyIssue>& issues);

/// Errors for changes that would pull the ground from under live jobs: the shape of a unit, a unit
/// leaving an environment, the environment of a queue, the name of the built-in queue.
void guard_live_jobs(const PolicyTables& current, const PolicyDoc& base, const PolicyDoc& target,
                     const LiveJobs& live, std::vector<PolicyIssue>& issues);

/// "3 waiting and 1 active jobs".
std::string describe_use(const ShareUse& use);

}  // namespace gpuq
