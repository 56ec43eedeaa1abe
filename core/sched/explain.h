#pragma once
// Why an ask does not start, as a typed reason with numbers, from the same tests that decide. And
// O4: what could not start even if the pool were empty.
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/model/reason.h"
#include "core/model/view.h"
#include "core/sched/ask.h"

namespace gpuq::sched {

/// Why a job waits, and when time alone may change that.
struct WaitVerdict {
  Reason reason;
  Time until = kNever;
};

/// A group of waiting jobs whose first one found no way to start.
struct FailedGroup {
  WaitKey head;
  WaitVerdict verdict;
};

/// What passes remember. O4 verdicts by (share, class); they depend on policy and nodes alone, so
/// they are kept while StateView::topology_version() stays the same. Owned by whoever calls
/// make_plan, one per state.
struct PlanCache {
  std::uint64_t topology_version = 0;
  std::map<std::pair<ShareId, ClassId>, Reason> never_fits;  ///< kNone: could start some day.
  /// Groups that failed in a pass without decisions, good while
  /// StateView::holdings_version() stays the same and until their verdict's time.
  std::uint64_t holdings_version = 0;
  std::map<std::pair<ShareId, GroupKey>, FailedGroup> failed;
  /// The heads that held capacity then (O5), by queue: with others the groups are tried again.
  std::map<QueueId, std::vector<std::pair<ShareId, JobId>>> holding;
};

/// O4 for one ask: kNone, or the MISCONFIGURATION with the bound that it exceeds.
Reason why_never(const StateView& view, const Ask& ask);

/// O4 for a job with all its units: kNone when one of them could ever fit, else the first one's.
const Reason& why_never_cached(const StateView& view, const Job& job, PlanCache& cache);

/// Q9: the first acceptable unit that could ever fit; the first one when none does.
Ask leading_ask(const StateView& view, const Job& job);

/// Why `ask`, which could start some day, does not start now (docs/SCHEDULING.md, precedence).
Reason why_waiting(const StateView& view, const Ask& ask);

}  // namespace gpuq::sched
