#pragma once
// When a job should start, in plain words: for `why` and `submit --dry-run`.
#include <cstdint>
#include <iosfwd>

#include "gpuq/v1/job.pb.h"

namespace gpuq::cli {

/// Indented lines, what it rests on included. Nothing where there was no forecast to make.
void print_forecast(std::ostream& out, const v1::JobForecast& forecast, std::int64_t now_ms);

/// The job could be placed in no state of the cluster.
bool never_fits(const v1::JobForecast& forecast);

}  // namespace gpuq::cli
