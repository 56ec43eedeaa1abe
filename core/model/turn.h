#pragma once
// Turn: the place of a waiting job in the order of its share, and the one place where that order is
// decided (O1, O10). Valid for one time and one state of the ledger.
#include <compare>

#include "core/model/view.h"

namespace gpuq {

/// Priority high first; in a share that is fair between its users, the user with the lowest usage;
/// then created_at, then submit sequence.
struct Turn {
  std::int32_t negated_priority = 0;
  UsageValue usage;  ///< Of the job's user; zero in shares that are not fair.
  Time created_at{};
  JobId id;
  auto operator<=>(const Turn&) const = default;
};

inline Turn turn_of(const WaitKey& key, UsageValue usage) {
  return {key.negated_priority, usage, key.created_at, key.id};
}

/// The turn of `job` as things are.
Turn turn_of(const StateView& view, const Job& job, Time now);

/// O10: whose usage counts for `job`, and of which unit: the one that it names first.
UsageKey user_key(const StateView& view, const Job& job);

/// What users are compared by: their usage, with the advance on what they hold (O9).
UsageValue counted_usage(const StateView& view, const UsageKey& user, Time now);

/// How many waiting jobs of the share come before `job`.
std::int64_t jobs_before(const StateView& view, const Job& job, Time now);

}  // namespace gpuq
