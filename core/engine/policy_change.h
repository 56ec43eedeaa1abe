#pragma once
// What a policy document would do to the policy tables: validation, difference, result. Pure; the
// one place where policy is checked, for Apply, its dry run, single-object calls and scenarios.
#include <map>
#include <string>
#include <vector>

#include "core/engine/command.h"
#include "core/model/policy.h"

namespace gpuq {

/// Jobs that a deletion would meet.
struct ShareUse {
  std::int64_t waiting = 0;
  std::int64_t active = 0;
};

struct PolicyLimits {
  std::int32_t max_shares_per_queue = 20;
  std::int32_t max_units_per_share = 5;
};

struct PolicyChange {
  PolicyTables tables;  ///< The result; equals the current ones where errors exist.
  std::vector<std::string>
      changes;  ///< "queue training: created", "share training/a: cap a100 8 -> 4", ...
  std::vector<PolicyIssue> issues;      ///< All errors and warnings at once.
  std::vector<ShareId> deleted_shares;  ///< Their jobs end (P12).
  [[nodiscard]] bool has_errors() const;
};

/// Computes the change of `current` by `command`. `nodes` give warnings (units no node has, caps
/// beyond the pool) and errors (selectors of two environments that match one known node; Q8).
/// `uses` tells which shares have jobs. Rules: Q8, P12 and the limits given. Ids of what stays are
/// kept. An applied document replaces the built-in default policy (docs/ARCHITECTURE.md).
PolicyChange plan_policy_change(const PolicyTables& current, const ApplyPolicyCommand& command,
                                const std::vector<Node>& nodes,
                                const std::map<ShareId, ShareUse>& uses,
                                const PolicyLimits& limits);

/// The policy before any apply: one environment, queue and share `default` over all nodes, one unit
/// per GPU model of `nodes` (lower-case model name) and `cpu`, without limits. `previous` keeps
/// ids.
PolicyTables builtin_policy(const PolicyTables& previous, const std::vector<Node>& nodes);

/// The environment whose selector matches `node`: the first by name (Q8); 0 when none does.
EnvId environment_for(const PolicyTables& policy, const Node& node);

}  // namespace gpuq
