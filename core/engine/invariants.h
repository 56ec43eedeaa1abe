#pragma once
// The invariants of docs/SCHEDULING.md that need a moment, not only a state: checked by tests and
// the simulator at every start. Aborts on a breach.
#include "core/model/plan.h"
#include "core/state/state.h"

namespace gpuq {

/// Invariants 1 to 4 for a start that is about to be applied to `state`.
void check_start(const State& state, const Decision& decision);

}  // namespace gpuq
