#pragma once
// The first step of a policy change: the whole policy that a command asks for, as one document.
#include <string>
#include <utility>
#include <vector>

#include "core/engine/policy_change.h"

namespace gpuq {

struct PolicyTarget {
  PolicyDoc doc;  ///< Every kind named; what the command names comes first, in its order.
  std::vector<PolicyIssue> issues;  ///< With any, `doc` is of no use.
  std::size_t units = 0;            ///< How many of each kind come from the command.
  std::size_t environments = 0;
  std::size_t policies = 0;
  std::size_t queues = 0;
  std::vector<std::size_t> shares;  ///< Likewise of each of those queues.

  /// A path into `doc` as a path into the command's document: cut where the command has no such
  /// object.
  [[nodiscard]] std::string command_path(std::string path) const;
};

/// `base` names every kind and is what the command changes. With `partial`, a queue without
/// scheduling policy and environments only carries its shares: the queue itself must exist and
/// stays as it is, and must_exist and must_not_exist speak of the shares.
PolicyTarget compose_policy(const PolicyDoc& base, const ApplyPolicyCommand& command);

}  // namespace gpuq
