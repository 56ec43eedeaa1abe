#pragma once
// Forecast: when each waiting job should start, learnt by running the engine forward in virtual
// time from a copy of the live state (section 9 of docs/SCHEDULING.md). A value in, a value out;
// no clock but the virtual one. Any thread, one run a thread.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/command.h"
#include "core/model/reason.h"
#include "core/state/state.h"

namespace gpuq::sim {

/// F4: how far a forecast looks into the future.
inline constexpr Duration kForecastHorizon = std::chrono::hours(24 * 30);
/// F2: what is past its stated run time is taken to end this much later.
inline constexpr Duration kOverdueEnds{60'000};

enum class ForecastOutcome : std::uint8_t {
  kStarts = 1,   ///< At `at`.
  kUnknown = 2,  ///< F3: not before jobs end of which nobody knows when.
  kNever = 3,    ///< Things as they are, it does not start: `reason`, or `end` if it ends instead.
  kLater = 4,    ///< F4: not before `at`, the horizon.
  kCut = 5,      ///< F4: not before `at`; the run was ended there.
};

struct JobForecast {
  ForecastOutcome outcome = ForecastOutcome::kCut;
  Time at = kNoTime;
  Reason reason;                 ///< kUnknown, kNever: why it still waits in the end.
  std::string end;               ///< kNever: the status reason of its end; empty: it waits on.
  std::vector<JobId> waits_for;  ///< kUnknown: ascending, at most kMaxJobsNamed.
  std::int32_t waits_for_in_all = 0;
  EnvId env;
};

/// What the forecast rests on: how the running attempts of one environment are taken to end.
struct ForecastBasis {
  std::int32_t stated = 0;    ///< By their stated run time.
  std::int32_t overdue = 0;   ///< Beside those: it has passed.
  std::int32_t timed = 0;     ///< By their timeout, for want of a statement.
  std::int32_t stopping = 0;  ///< By the end of their grace.
  std::int32_t unknown = 0;   ///< Not at all, or on nodes that do not answer.
  bool operator==(const ForecastBasis&) const = default;
};

struct Forecast {
  Time made_at{};
  Time looked_until{};        ///< kNever: to where nothing happens any more.
  bool cut = false;           ///< By ForecastLimits::go_on.
  std::int64_t left_out = 0;  ///< Waiting jobs that it does not know; see StateExcerpt.
  std::int64_t next_job = 0;  ///< Jobs from this number on came later.
  std::uint64_t steps = 0;
  std::map<EnvId, ForecastBasis> basis;
  std::map<JobId, JobForecast> jobs;  ///< Those that wait and are in the excerpt.
};

struct ForecastLimits {
  Duration horizon = kForecastHorizon;
  /// Asked after every step; false ends the run there. Unset: no limit.
  std::function<bool()> go_on;
};

/// One run forward. Commands first, then at most one run().
class ForecastRun {
 public:
  /// `now` is not before the state's last time.
  ForecastRun(StateExcerpt excerpt, Time now);
  ~ForecastRun();
  ForecastRun(const ForecastRun&) = delete;
  ForecastRun& operator=(const ForecastRun&) = delete;

  /// Carries `command` out in the copy, before anything else happens there.
  Result<Reply> ask(Command command);
  /// Works off what is due at this moment: what a command sets going at once. False: cut.
  bool settle(const ForecastLimits& limits);
  /// Every event of the copy before run().
  [[nodiscard]] const std::vector<Event>& events() const;
  [[nodiscard]] std::int64_t left_out() const;  ///< See StateExcerpt.
  /// The copy as it stands.
  [[nodiscard]] const State& state() const;
  /// To the start of every job that waits, or of `only` if that is valid; to where nothing happens
  /// any more, or as far as the limits allow.
  Forecast run(const ForecastLimits& limits, JobId only = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The forecast for all waiting jobs of `excerpt`.
Forecast make_forecast(StateExcerpt excerpt, Time now, const ForecastLimits& limits = {});

}  // namespace gpuq::sim
