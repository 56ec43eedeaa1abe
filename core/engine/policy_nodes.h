#pragma once
// A policy against the nodes that are known: which environment owns which, and what they can hold.
#include <vector>

#include "core/engine/policy_change.h"

namespace gpuq {

/// Adds an error for every pair of environments whose selectors match one node (Q8), and warnings
/// for units that no node has, limits beyond the nodes, caps beyond the limit and capacity that no
/// share owns. `doc` names every kind and has passed check_policy. Paths lead into `doc`.
void check_policy_nodes(const PolicyDoc& doc, const std::vector<Node>& nodes,
                        std::vector<PolicyIssue>& issues);

/// Whether `node` has every label that `environment` selects by.
bool selects(const EnvDef& environment, const Node& node);

}  // namespace gpuq
