#pragma once
// F5: what a change of the policy does to jobs at once, learnt by making it in a copy of the live
// state. As a forecast: a value in, a value out.
#include <cstdint>
#include <string>
#include <vector>

#include "core/sim/forecast.h"

namespace gpuq::sim {

enum class JobFate : std::uint8_t {
  kStopped = 1,   ///< Its attempt is told to stop.
  kEnded = 2,     ///< It waits and is ended, with its share or queue.
  kStranded = 3,  ///< It waits and can never start any more.
};

struct AffectedJob {
  JobId job;
  std::string name;
  std::string share;
  JobFate fate = JobFate::kStopped;
  std::string reason;
};

struct PolicyPreview {
  std::vector<AffectedJob> jobs;  ///< Stopped ones first, then ended, then stranded; by id.
  bool cut = false;               ///< By ForecastLimits::go_on: there may be more.
  std::int64_t left_out = 0;      ///< Waiting jobs that were not looked at.
};

/// `run` is fresh. `apply` is no dry run; what it is refused for affects nobody.
PolicyPreview preview_policy(ForecastRun& run, Command apply, const ForecastLimits& limits);

}  // namespace gpuq::sim
