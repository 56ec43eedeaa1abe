#pragma once
// Array jobs: one submission, many members that differ in their index. The array itself is a job
// (its number is the array's), and reserves the numbers after it for its members, one each. A
// member is a job with a record of its own only from the moment at which something sets it apart:
// a start, a booking, a user's word. Records are made in the order of the members, so one counter
// tells which have one. Plain values.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/model/job.h"

namespace gpuq {

inline constexpr std::int32_t kMaxArraySize = 100'000;
inline constexpr std::int32_t kMaxArrayIndex = 1'000'000'000;

/// What a user asks for: indexes `first`, `first + step`, ... up to `last`.
struct ArrayRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::int32_t step = 1;
  std::int32_t limit = 0;  ///< J5: members that count at one time; 0 = all.
  bool operator==(const ArrayRange&) const = default;
  /// Number of indexes; right for ranges that the engine accepts.
  [[nodiscard]] std::int32_t size() const { return (last - first) / step + 1; }
};

/// Why `range` can not be submitted.
Result<void> check_array(const ArrayRange& range);

/// "FIRST-LAST", "FIRST-LAST:STEP" or "INDEX", each with "%LIMIT" behind it if wanted; checked.
Result<ArrayRange> parse_array(std::string_view text);
/// The same way round.
std::string to_string(const ArrayRange& range);
/// The indexes alone, without the limit.
std::string index_text(const ArrayRange& range);

struct JobArray {
  JobId id;  ///< The array's own; member k (from 0) is job id + 1 + k.
  ArrayRange range;
  std::int32_t made = 0;     ///< Members 0 .. made - 1 have, or had, a record of their own.
  Time dropped_at = kNever;  ///< From then on the others have failed, with the array's reason.
  // Of members whose record is in the archive:
  std::int32_t archived_succeeded = 0;
  std::int32_t archived_failed = 0;
  std::int32_t archived_exit_code = -1;  ///< The highest final one.
  bool operator==(const JobArray&) const = default;

  [[nodiscard]] std::int32_t size() const { return range.size(); }
  [[nodiscard]] JobId member(std::int32_t position) const { return JobId(id.value + 1 + position); }
  [[nodiscard]] std::int32_t position(JobId member) const {
    return static_cast<std::int32_t>(member.value - id.value - 1);
  }
  [[nodiscard]] bool has_member(JobId job) const {
    return job.value > id.value && job.value <= id.value + size();
  }
  [[nodiscard]] std::int32_t index(JobId member) const {
    return range.first + range.step * position(member);
  }
  [[nodiscard]] std::optional<JobId> member_at_index(std::int32_t index) const;
  [[nodiscard]] bool dropped() const { return dropped_at != kNever; }
  /// Members that may still get a record by a start.
  [[nodiscard]] std::int32_t unmade() const { return dropped() ? 0 : size() - made; }
};

/// Members by state, each member once.
struct MemberCounts {
  std::array<std::int32_t, 9> by_state{};  ///< By JobState.

  [[nodiscard]] std::int32_t in(JobState state) const {
    return by_state[static_cast<std::size_t>(state)];
  }
  [[nodiscard]] std::int32_t ended() const {
    return in(JobState::kSucceeded) + in(JobState::kFailed);
  }
  /// The furthest that a member which has not ended has come; the end when all have.
  [[nodiscard]] JobState state() const;
  bool operator==(const MemberCounts&) const = default;
};

}  // namespace gpuq
