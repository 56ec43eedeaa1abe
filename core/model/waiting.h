#pragma once
// The waiting jobs of one share, grouped by class and, where it matters, by user, so that a pass
// looks at groups and never at every job. Kept by the state, read by the planner. Values.
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/model/job.h"
#include "core/model/reason.h"

namespace gpuq {

/// O1: priority high first, then created_at, then submit sequence. In a share that orders by users
/// this holds among the jobs of one user only: see core/model/turn.h.
struct WaitKey {
  std::int32_t negated_priority = 0;
  Time created_at{};
  JobId id;
  auto operator<=>(const WaitKey&) const = default;
};

inline WaitKey wait_key(const Job& job) { return {-job.priority, job.created_at, job.id}; }

/// Waiting jobs that are tried as one (O7).
struct GroupKey {
  ClassId cls;
  std::string user;  ///< Only in a share that orders by it (O10).
  auto operator<=>(const GroupKey&) const = default;
};

struct WaitGroup {
  std::set<WaitKey> jobs;  ///< RUNNABLE, without a booking.
  /// Members of an array that have no record stand in `jobs` as their first one: how many they are.
  /// Their ids follow each other.
  std::map<WaitKey, std::int32_t> spans;
  Reason reason;  ///< Of the first job, from the last pass that looked.

  /// How many jobs stand at `key`, which is in `jobs`.
  [[nodiscard]] std::int32_t span(const WaitKey& key) const {
    if (spans.empty()) return 1;
    const auto found = spans.find(key);
    return found == spans.end() ? 1 : found->second;
  }
};

struct WaitingShare {
  std::map<GroupKey, WaitGroup> groups;  ///< No empty ones.
  std::set<WaitKey> booked;              ///< RUNNABLE with a booking.
  std::int64_t count = 0;                ///< Jobs in groups and booked.
};

}  // namespace gpuq
