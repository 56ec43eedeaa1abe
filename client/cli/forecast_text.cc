#include "client/cli/forecast_text.h"

#include <ostream>
#include <string>

#include "client/cli/format.h"
#include "client/cli/terminal.h"

namespace gpuq::cli {

namespace {

/// Rounded to what a forecast is worth: minutes.
std::string in_about(std::int64_t ms) {
  const std::int64_t minutes = (ms + 30'000) / 60'000;
  if (minutes < 1) return "within a minute";
  if (minutes < 120) return "in about " + std::to_string(minutes) + " min";
  if (minutes < 48 * 60) {
    return "in about " + std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) +
           " min";
  }
  return "in about " + std::to_string(minutes / (24 * 60)) + " days";
}

std::string when(const v1::JobForecast& forecast, std::int64_t now_ms) {
  if (forecast.outcome() == v1::FORECAST_OUTCOME_STARTS) {
    return in_about(forecast.starts_at_ms() - now_ms) + " (" +
           format_rfc3339(forecast.starts_at_ms()) + ")";
  }
  std::string text = one_line(forecast.message());
  if (forecast.outcome() == v1::FORECAST_OUTCOME_UNSPECIFIED) return "not known: " + text;
  if (forecast.not_before_ms() != 0) {
    text += ": not before " + format_rfc3339(forecast.not_before_ms());
  }
  return text;
}

std::string basis(const v1::ForecastBasis& basis) {
  std::string text;
  const auto add = [&text](std::int32_t count, const char* what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(basis.stated(), "by their stated run time");
  add(basis.overdue(), "past theirs, taken to end within a minute");
  add(basis.timed(), "by their timeout");
  add(basis.stopping(), "being stopped");
  add(basis.unknown(), "without a known end");
  return text.empty() ? "no job runs there" : "running jobs end: " + text;
}

}  // namespace

void print_forecast(std::ostream& out, const v1::JobForecast& forecast, std::int64_t now_ms) {
  if (forecast.outcome() == v1::FORECAST_OUTCOME_UNSPECIFIED && forecast.message().empty()) return;
  out << "  when: " << when(forecast, now_ms) << '\n';
  if (!forecast.has_basis()) return;
  out << "  reckoned from: " << basis(forecast.basis()) << "; nothing new comes, nobody cancels\n";
  if (forecast.jobs_left_out() > 0) {
    out << "  left out: " << forecast.jobs_left_out()
        << " waiting jobs that come after the first of their share\n";
  }
}

bool never_fits(const v1::JobForecast& forecast) {
  return forecast.outcome() == v1::FORECAST_OUTCOME_NEVER &&
         forecast.reason().code().rfind("MISCONFIGURATION", 0) == 0;
}

}  // namespace gpuq::cli
