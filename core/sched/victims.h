#pragma once
// The search for victims (P1-P6, P11): whom to stop so that one ask fits. Works on the scratch
// ledger between a mark and a rollback; decides nothing that the caller does not carry out.
#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/view.h"
#include "core/sched/ask.h"
#include "core/sched/quota.h"

namespace gpuq::sched {

/// P3's means, in order.
enum class Means : std::uint8_t {
  kReclaim,  ///< (i) other shares' borrowing jobs, for an owner's job.
  kInShare,  ///< (ii) own jobs of lower priority.
  kMixed,    ///< (iii) own ones until an owner's job, then reclaim, then further own ones.
};

struct Victim {
  HoldingKey key;  ///< An attempt to stop, or a booking to void.
  JobId job;
  PreemptRule rule = PreemptRule::kCrossShare;
};

struct VictimSet {
  std::vector<Victim> victims;  ///< In order of choice, thinned (P6).
  Right right = Right::kNone;   ///< What the ask is with them gone.
  /// With kIgnored: when the first candidate that min_runtime protects is old enough.
  Time first_old_enough = kNever;
};

/// P11: min_runtime is respected by decisions, and ignored to learn whether it alone forbids one.
enum class MinRuntime : std::uint8_t { kRespected, kIgnored };

/// Finds the set of `means` by which `ask` fits in kAfter: quota and every instance on usable
/// nodes. Nothing when no set does, or when the means does not apply (P1: not an owner's job; P2:
/// in-share preemption is off). The ledger is unchanged on return. `now` measures lost work (P5)
/// and age (P11).
std::optional<VictimSet> find_victims(const StateView& view, Ledger& ledger, const Ask& ask,
                                      Means means, Time now,
                                      MinRuntime protection = MinRuntime::kRespected);

}  // namespace gpuq::sched
