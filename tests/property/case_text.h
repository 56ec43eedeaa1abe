#pragma once
// A case as a scenario file, so that what a random run found can be read, replayed and kept.
#include <string>

#include "core/sim/scenario.h"

namespace gpuq::property {

std::string to_yaml(const sim::Scenario& scenario);

}  // namespace gpuq::property
