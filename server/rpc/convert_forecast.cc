#include "server/rpc/convert_forecast.h"

#include <fmt/format.h>

#include <string>

#include "server/rpc/convert_job.h"

namespace gpuq::rpc {

namespace {

v1::ForecastOutcome outcome_on_wire(sim::ForecastOutcome outcome) {
  switch (outcome) {
    case sim::ForecastOutcome::kStarts:
      return v1::FORECAST_OUTCOME_STARTS;
    case sim::ForecastOutcome::kUnknown:
      return v1::FORECAST_OUTCOME_UNKNOWN;
    case sim::ForecastOutcome::kNever:
      return v1::FORECAST_OUTCOME_NEVER;
    case sim::ForecastOutcome::kLater:
      return v1::FORECAST_OUTCOME_LATER;
    case sim::ForecastOutcome::kCut:
      return v1::FORECAST_OUTCOME_CUT;
  }
  return v1::FORECAST_OUTCOME_UNSPECIFIED;
}

std::string waits_for_text(const sim::JobForecast& job) {
  if (job.waits_for_in_all == 1) {
    return fmt::format("not before job {} ends, and nobody knows when that is",
                       job.waits_for.front().value);
  }
  std::string names;
  for (const JobId id : job.waits_for) names += fmt::format(", {}", id.value);
  const auto more = job.waits_for_in_all - static_cast<std::int32_t>(job.waits_for.size());
  if (more > 0) names += fmt::format(" and {} more", more);
  return fmt::format("not before some of {} jobs end of which nobody knows when: {}",
                     job.waits_for_in_all, names.substr(2));
}

std::string forecast_sentence(const PolicyTables& policy, const sim::JobForecast& job) {
  switch (job.outcome) {
    case sim::ForecastOutcome::kStarts:
      return "";
    case sim::ForecastOutcome::kUnknown:
      return waits_for_text(job);
    case sim::ForecastOutcome::kNever:
      if (!job.end.empty()) return "it does not start: " + job.end;
      return "as things are it does not start: " + reason_text(job.reason, policy);
    case sim::ForecastOutcome::kLater:
      return fmt::format("not within {} days; a forecast looks no further",
                         std::chrono::duration_cast<std::chrono::hours>(sim::kForecastHorizon) /
                             std::chrono::hours(24));
    case sim::ForecastOutcome::kCut:
      return "later than could be worked out in time";
  }
  return "";
}

void fill_basis(const sim::ForecastBasis& basis, v1::ForecastBasis& out) {
  out.set_stated(basis.stated);
  out.set_overdue(basis.overdue);
  out.set_timed(basis.timed);
  out.set_stopping(basis.stopping);
  out.set_unknown(basis.unknown);
}

}  // namespace

void fill_forecast(const PolicyTables& policy, const sim::Forecast& forecast, JobId job,
                   v1::JobForecast& out) {
  out.set_made_at_ms(to_ms(forecast.made_at));
  out.set_looked_until_ms(ms_or_zero(forecast.looked_until));
  out.set_jobs_left_out(forecast.left_out);
  const auto found = forecast.jobs.find(job);
  if (found == forecast.jobs.end()) {
    out.set_message(forecast.left_out > 0
                        ? "too many jobs wait: forecasts take the first of each share along"
                        : "its state has just changed: ask again in a moment");
    return;
  }
  const sim::JobForecast& one = found->second;
  out.set_outcome(outcome_on_wire(one.outcome));
  out.set_message(forecast_sentence(policy, one));
  if (one.outcome == sim::ForecastOutcome::kStarts) {
    out.set_starts_at_ms(to_ms(one.at));
  } else {
    out.set_not_before_ms(ms_or_zero(one.at));
  }
  for (const JobId id : one.waits_for) out.add_waits_for_job_ids(id.value);
  out.set_waits_for_jobs(one.waits_for_in_all);
  if (one.reason.code != ReasonCode::kNone) fill_reason(policy, one.reason, *out.mutable_reason());
  const auto basis = forecast.basis.find(one.env);
  fill_basis(basis == forecast.basis.end() ? sim::ForecastBasis() : basis->second,
             *out.mutable_basis());
}

void fill_held(const State& state, const Job& job, v1::JobForecast& out) {
  Reason reason = state.reason_of(job.id);
  reason.code = ReasonCode::kHeldByUser;
  out.set_outcome(v1::FORECAST_OUTCOME_NEVER);
  out.set_message(fmt::format("not before somebody releases it: gpuq release {}", job.id.value));
  fill_reason(state.policy(), reason, *out.mutable_reason());
}

}  // namespace gpuq::rpc
