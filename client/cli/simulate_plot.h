#pragma once
// The picture of a simulated run. Internal to client/cli.
#include <string>

#include "client/cli/simulate_output.h"

namespace gpuq::cli {

/// SVG with two charts over the run's time: units held, stacked by share, and jobs that wait. Needs
/// a run with samples.
std::string plot_svg(const SimulatedRun& run);

}  // namespace gpuq::cli
