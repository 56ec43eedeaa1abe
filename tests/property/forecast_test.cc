// A forecast is what then happens, if nothing new comes and jobs run as long as they said: in
// random clusters, from random moments, for every job that waits.
#include "core/sim/forecast.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "tests/property/drive.h"
#include "tests/property/random_case.h"
#include "tests/property/seeds.h"

namespace gpuq::property {
namespace {

/// The same case with jobs that keep their word, cut off after `steps`. Time limits of queues are
/// left out: they count from what a state does not hold.
sim::Scenario that_keeps_its_word(sim::Scenario scenario, std::size_t steps) {
  scenario.timeline.resize(std::min(steps, scenario.timeline.size()));
  for (sim::TimelineStep& step : scenario.timeline) {
    auto* submit = std::get_if<sim::SubmitStep>(&step.what);
    if (submit == nullptr) continue;
    submit->runtime = std::max(submit->runtime, Duration(1));
    if (submit->request.timeout) {
      submit->runtime = std::min(submit->runtime, *submit->request.timeout);
    }
    submit->request.expected_run_time = submit->runtime;
    submit->start_delay = Duration(0);
    submit->checkpoint.reset();
  }
  if (scenario.policy.queues) {
    for (QueueDef& queue : *scenario.policy.queues) queue.time_limit_actions.clear();
  }
  return scenario;
}

class ForetoldRun {
 public:
  explicit ForetoldRun(const sim::Scenario& scenario)
      : scenario_(scenario),
        drive_(scenario, strict_config(scenario),
               {{},
                [this] { settled(); },
                [this] { acted(); },
                [this](const std::vector<Event>& events) { committed(events); },
                {}}) {}

  std::string run() {
    const std::string end = drive_.run();
    if (!end.empty()) return end;
    if (!forecast_) return "the last step never came";
    if (!fault_.empty()) return fault_;
    for (const auto& [id, job] : forecast_->jobs) {
      const auto start = started_.find(id);
      const Time at = start == started_.end() ? kNever : start->second;
      const bool starts = job.outcome == sim::ForecastOutcome::kStarts;
      if ((starts ? job.at : kNever) == at) continue;
      return fmt::format("forecast at {} ms: job {} {} at {} ms, and it starts at {} ms",
                         to_ms(forecast_->made_at), id.value, starts ? "starts" : "does not start",
                         to_ms(job.at), to_ms(at));
    }
    return {};
  }
  [[nodiscard]] std::size_t foretold() const { return forecast_ ? forecast_->jobs.size() : 0; }

 private:
  void acted() { all_done_ = drive_.world().clock().now() >= scenario_.timeline.back().at; }
  void settled() {
    if (forecast_ || !all_done_) return;
    const Time now = drive_.world().clock().now();
    StateExcerpt excerpt = drive_.state().excerpt(10'000);
    if (excerpt.left_out != 0) fault_ = "something is left out";
    forecast_ = sim::make_forecast(std::move(excerpt), now, {std::chrono::hours(24 * 365), {}});
  }
  void committed(const std::vector<Event>& events) {
    if (!forecast_) return;
    for (const Event& event : events) {
      if (event.type == EventType::kAttemptScheduled) started_.try_emplace(event.job, event.at);
    }
  }

  const sim::Scenario& scenario_;
  bool all_done_ = false;  ///< Every step of the timeline.
  std::optional<sim::Forecast> forecast_;
  std::map<JobId, Time> started_;
  std::string fault_;
  Drive drive_;
};

TEST(Forecasts, AreWhatThenHappens) {
  std::size_t foretold = 0;
  for_seeds(300, [&foretold](std::uint64_t seed) {
    // Without arrays: a forecast knows no limits of theirs.
    const Shape shape{seed % 2 == 0, 60, false};
    const sim::Scenario scenario = that_keeps_its_word(random_case(seed, shape), 10 + seed % 50);
    ForetoldRun run(scenario);
    const std::string fault = run.run();
    foretold += run.foretold();
    return fault;
  });
  const bool all = std::getenv("GPUQ_SEED") == nullptr && std::getenv("GPUQ_CASES") == nullptr;
  EXPECT_TRUE(!all || foretold > 300) << foretold;
}

}  // namespace
}  // namespace gpuq::property
