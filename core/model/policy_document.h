#pragma once
// The policy tables as a document: what an administrator would have written to get them.
#include <algorithm>
#include <string>
#include <vector>

#include "core/model/policy.h"

namespace gpuq {

/// The definition of that name, or null.
template <typename Def>
const Def* find_named(const std::vector<Def>& defs, const std::string& name) {
  const auto it = std::ranges::find(defs, name, &Def::name);
  return it != defs.end() ? &*it : nullptr;
}

/// A built-in policy that is replaced while it has live jobs is retired: its queue and shares take
/// nothing new and go with their last job; its environment and scheduling policy get this name, its
/// environment a node label that no node carries, so that it selects nothing, and its left-over
/// units as limits of 0. All that goes with the first apply after the last job.
inline constexpr const char* kRetiredName = "default.retired";
inline constexpr const char* kRetiredLabel = "gpuq/retired";

bool is_retired(const Environment& environment);
bool is_retired(const PolicyTables& tables, const Queue& queue);
/// A unit that only retired environments still know.
bool is_retired(const PolicyTables& tables, const Unit& unit);

/// Everything but what is retired or being deleted, each kind in order of id; every kind is named.
/// Applying it to `tables` changes nothing (the built-in policy can not be applied: it has no
/// limits).
PolicyDoc policy_document(const PolicyTables& tables);

}  // namespace gpuq
