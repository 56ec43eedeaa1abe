#pragma once
// The quota tests (Q1-Q6, P11): may this ask start or be booked, as an owner's job or by borrowing?
// Pure functions of the ledger, all O(1).
#include <cstdint>

#include "core/model/ledger.h"
#include "core/model/plan.h"
#include "core/sched/ask.h"

namespace gpuq::sched {

/// What gives a job the right to its demand in one view.
enum class Right : std::uint8_t { kNone, kOwner, kBorrower };

/// Q5: held + d <= cap.
bool is_owner(const Ledger& ledger, const Ask& ask, View view);

/// P11: a not preemptible job fits the share's cap together with all that are like it.
bool within_not_preemptible_limit(const Ledger& ledger, const Ask& ask, View view);

/// Q5 with Q3, Q4 and P11: the right by which `ask` fits in `view`, or none.
Right right_in(const Ledger& ledger, const Ask& ask, View view);

/// Q6: fits in both views.
bool fits_twice(const Ledger& ledger, const Ask& ask);
/// Q6 for phase A: an owner's job in both views.
bool owns_twice(const Ledger& ledger, const Ask& ask);

DecisionNumbers numbers_of(const Ledger& ledger, const Ask& ask, View view);

}  // namespace gpuq::sched
