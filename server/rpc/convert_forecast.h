#pragma once
// Forecasts from the core to the wire. Pure.
#include "core/sim/forecast.h"
#include "gpuq/v1/job.pb.h"

namespace gpuq::rpc {

/// What `forecast` says of `job`, or why it says nothing.
void fill_forecast(const PolicyTables& policy, const sim::Forecast& forecast, JobId job,
                   v1::JobForecast& out);
/// Of a job that its user holds; no forecast is needed for it.
void fill_held(const State& state, const Job& job, v1::JobForecast& out);

}  // namespace gpuq::rpc
