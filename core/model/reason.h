#pragma once
// Why a job waits, as data: a code with the numbers that decided. Made by the planner, shown by
// every listing. docs/SCHEDULING.md "Why a job waits" has the precedence.
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/amount.h"
#include "core/base/ids.h"
#include "core/base/time.h"

namespace gpuq {

struct PolicyTables;

enum class ReasonCode : std::uint8_t {
  kNone = 0,  ///< Not waiting, or no pass has looked yet.
  kDependency,
  kHeldByUser,
  kRetryBackoff,
  kArrayLimit,
  kEnvironmentDisabled,
  kServiceEnvironmentMaxResource,
  kQuotaManagementLimitExceeded,
  kNoNodeFits,
  kWaitingForPreemptedCapacity,
  kHeldForHead,
  kProtectedByMinRuntime,
  kShareFull,
  kNotPreemptibleLimit,
  kNoIdleToBorrow,
  kPoolFull,
  kNodesFragmented,
  kTopology,
  kBehindInShare,
};

/// "SHARE_FULL", "MISCONFIGURATION:NO_NODE_FITS", ...; "" for kNone.
const char* to_string(ReasonCode code);
constexpr bool is_misconfiguration(ReasonCode code) {
  return code == ReasonCode::kServiceEnvironmentMaxResource ||
         code == ReasonCode::kQuotaManagementLimitExceeded || code == ReasonCode::kNoNodeFits;
}
/// The groups that turn into BEHIND_IN_SHARE for all but the first job that has them.
constexpr bool is_quota_or_placement(ReasonCode code) {
  return code >= ReasonCode::kShareFull && code <= ReasonCode::kTopology;
}

inline constexpr std::size_t kMaxJobsNamed = 10;

/// A reason with its numbers; a field that its code does not use is zero.
struct Reason {
  ReasonCode code = ReasonCode::kNone;
  std::uint8_t variant = 0;  ///< Which text, where a code has several.
  UnitId unit;
  Amount demand;
  Amount held;  ///< Of the share, as the failed test saw it.
  Amount cap;
  Amount ceiling;
  Amount free;
  Amount reserved;  ///< By other shares of strategy RESERVE.
  Amount lendable;
  Amount limit;  ///< The bound that a MISCONFIGURATION exceeds.
  std::int32_t instances_needed = 0;
  std::int32_t instances_fitting = 0;
  JobId other;  ///< The job in front, or the first victim's job; ARRAY_LIMIT: the array.
  std::int32_t victims = 0;
  std::vector<JobId> jobs;  ///< NOT_PREEMPTIBLE_LIMIT: who fills the cap; DEPENDENCY: who has to
                            ///< end. At most kMaxJobsNamed.
  std::int32_t jobs_in_all = 0;  ///< ARRAY_LIMIT: the limit.
  std::string domain;            ///< TOPOLOGY: the one with the most room.
  Time when = kNoTime;           ///< PROTECTED_BY_MIN_RUNTIME: when the first victim is old enough.
                                 ///< RETRY_BACKOFF: when the back-off ends.
  bool operator==(const Reason&) const = default;
};

/// One sentence with numbers and names, e.g. "share research is full: holds 40 of 40 a100, ...".
std::string reason_text(const Reason& reason, const PolicyTables& policy);

}  // namespace gpuq
