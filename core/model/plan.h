#pragma once
// Plan: what one pass decided, as plain data in order. Every prefix is valid by itself. Made by
// core/sched, carried out by core/engine. Same state and time, same plan, byte for byte.
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/job.h"
#include "core/model/reason.h"
#include "core/model/waiting.h"

namespace gpuq {

enum class DecisionKind : std::uint8_t {
  kStart = 1,          ///< `uses` has concrete devices, all free.
  kBook = 2,           ///< Reserve `uses`, stop `evictions`, wait for `awaits` (P7).
  kVoidBooking = 3,    ///< The booking of `job` ends without a start; `rule` says why.
  kShrinkBooking = 4,  ///< The booking of `job` keeps only `uses` (takeover, P7).
};

/// The quota numbers that a decision rests on, taken before it is applied.
struct DecisionNumbers {
  Amount held;
  Amount cap;
  Amount ceiling;
  Amount free;
  Amount reserved;
  Amount lendable;
  bool operator==(const DecisionNumbers&) const = default;
};

struct Eviction {
  AttemptId attempt;
  JobId job;
  PreemptRule rule = PreemptRule::kCrossShare;
  bool operator==(const Eviction&) const = default;
};

struct Decision {
  DecisionKind kind = DecisionKind::kStart;
  JobId job;
  ShareId share;
  UnitId unit;
  Amount demand;
  bool borrows = false;   ///< The start or booking goes above the share's cap.
  const char* rule = "";  ///< Static text: the rule id(s) it follows, e.g. "Q5", "P3(i)".
  DecisionNumbers numbers;
  std::vector<InstanceUse> uses;
  std::vector<Eviction> evictions;
  std::vector<AttemptId> awaits;  ///< Every live attempt the booking waits for, ascending.
  JobId handed_to;  ///< For void and shrink: the job that takes the capacity; 0 = nobody.
  bool operator==(const Decision& other) const;
};

/// The reason of a group of waiting jobs in one share; jobs behind the group's first
/// get BEHIND_IN_SHARE where the code is one of quota or placement. With `job` set it is that job's
/// alone: it lost a part of its booking (P7) and stands in no group.
struct GroupReason {
  ShareId share;
  GroupKey group;
  Reason reason;
  JobId job;
  bool operator==(const GroupReason&) const = default;
};

struct Plan {
  std::vector<Decision> decisions;
  std::vector<GroupReason> reasons;
  Time next_wakeup = kNever;  ///< Until then time alone changes nothing: no pass is needed.
  std::uint64_t state_version = 0;
  bool operator==(const Plan&) const = default;
  [[nodiscard]] bool empty() const { return decisions.empty(); }
};

/// Stable one-line-per-decision text, for tests and logs.
std::string to_text(const Plan& plan);

}  // namespace gpuq
