#pragma once
// The planner: a read-only view and a time go in, a plan comes out (docs/SCHEDULING.md, O1-O8). It
// logs nothing, reads no clock, calls nobody. Thread: the engine's, because it borrows the ledger.
#include "core/model/plan.h"
#include "core/model/view.h"
#include "core/sched/explain.h"

namespace gpuq {

using sched::PlanCache;

/// One pass over every enabled environment: bookings that are ready start or are voided, then
/// owners' jobs (A) and borrowing jobs (B) until nothing more can start (O3). The state is
/// unchanged on return. `cache` belongs to this state and is only a memory: an empty one gives the
/// same plan.
Plan make_plan(const StateView& view, Time now, PlanCache& cache);

}  // namespace gpuq
