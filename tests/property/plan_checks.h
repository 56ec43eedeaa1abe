#pragma once
// What must hold of every plan and of every state at rest, whatever the case (docs/SCHEDULING.md,
// "Invariants"). Each check gives the first fault as a sentence, empty when there is none.
#include <map>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/state/state.h"

namespace gpuq::property {

/// Plans on copies of `state` and checks the plan: the same from every copy (invariant 8), the
/// ledger given back unchanged, each decision allowed where it stands and each prefix a sound state
/// (invariants 1 to 4, P1, P2, P6), nothing left to decide afterwards (P8, O3).
std::string check_plan(const State& state, Time now, const EngineConfig& config);

/// A state with nothing left to do at `now` (invariant 9), nor before the next wakeup: every
/// waiting job has a reason (invariant 5). With `plain` (jobs of one GPU, nothing else binds) no
/// owner's job waits beside a borrower that could be stopped.
std::string check_rest(const State& state, Time now, bool plain);

/// What must hold over time: terminal states never change, a preemption record ends once (6, 7),
/// and what keeps a job from RUNNABLE goes away for its own reason only (J2, J3).
class History {
 public:
  std::string see(const State& state);

 private:
  std::map<JobId, Job> ended_;
  std::map<PreemptionId, Preemption> closed_;
  std::map<JobId, Job> pending_;  ///< As last seen.
};

}  // namespace gpuq::property
