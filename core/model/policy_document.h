#pragma once
// The policy tables as a document: what an administrator would have written to get them.
#include "core/model/policy.h"

namespace gpuq {

/// Marks the environment of a built-in policy that was replaced while it had live jobs: a node
/// label that no node carries, so that it selects nothing. Its queue and shares stay, disabled,
/// until the first apply after their last job.
inline constexpr const char* kRetiredLabel = "gpuq/retired";

bool is_retired(const Environment& environment);
bool is_retired(const PolicyTables& tables, const Queue& queue);
/// A unit that only retired environments still know.
bool is_retired(const PolicyTables& tables, const Unit& unit);

/// Everything but what is retired, each kind in order of id; every kind is named. Applying it to
/// `tables` changes nothing (the built-in policy can not be applied: it has no limits).
PolicyDoc policy_document(const PolicyTables& tables);

}  // namespace gpuq
