#pragma once
// F2: when an attempt is expected to end, and what that rests on. Pure.
#include "core/sim/forecast.h"
#include "core/state/state.h"

namespace gpuq::sim {

enum class EndGround : std::uint8_t { kStated, kOverdue, kTimeout, kStopping, kNone };

struct ExpectedEnd {
  Time at = kNever;  ///< Not before `now`. Of one that is being stopped: if the stop lets it.
  EndGround ground = EndGround::kNone;
};

/// How long a new attempt of `job` runs: as stated, else as long as its timeout lets it, else
/// kForever.
Duration expected_run(const State& state, const Job& job);

/// When the live `attempt` ends by itself, as things look `now`.
ExpectedEnd expected_end(const State& state, const Attempt& attempt, Time now);

void count(EndGround ground, ForecastBasis& basis);

}  // namespace gpuq::sim
