// Forecasts from hand-made states: what each rests on, what is not known, where they end (F1 to
// F4). The arithmetic stands beside each expectation.
#include "core/sim/forecast.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/sim/bench.h"
#include "tests/sim/stored.h"

namespace gpuq::sim_test {
namespace {

using sim::Forecast;
using sim::ForecastBasis;
using sim::ForecastLimits;
using sim::ForecastOutcome;
using sim::JobForecast;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

/// What its user says of a job's length.
struct Says {
  std::optional<Duration> expected;
  std::optional<Duration> timeout = {};
};

/// One node of `gpus`, all of them of one share.
class ForecastBench {
 public:
  explicit ForecastBench(int gpus) {
    bench.register_node("n1", gpus);
    bench.apply({Bench::share("s", gpus)}, gpus);
  }

  static JobRequest request(const Says& says, std::int64_t gpus = 1) {
    JobRequest request = Bench::request("s", gpus);
    request.expected_run_time = says.expected;
    request.timeout = says.timeout;
    return request;
  }
  JobId running(const Says& says, std::int64_t gpus = 1) {
    const JobId job = bench.submit(request(says, gpus));
    (void)bench.runs(job);
    return job;
  }
  JobId waiting(const Says& says, std::int64_t gpus = 1) {
    return bench.submit(request(says, gpus));
  }

  [[nodiscard]] Forecast look(const ForecastLimits& limits = {}) const {
    return sim::make_forecast(bench.state().excerpt(10'000), bench.now(), limits);
  }
  [[nodiscard]] JobForecast of(JobId job) const { return look().jobs.at(job); }
  [[nodiscard]] Duration in(JobId job) const {
    const JobForecast forecast = of(job);
    EXPECT_EQ(forecast.outcome, ForecastOutcome::kStarts);
    return forecast.at - bench.now();
  }
  [[nodiscard]] ForecastBasis basis() const { return look().basis.begin()->second; }

  Bench bench;
};

TEST(Forecast, RestsOnTheStatedRunTimeLessWhatHasPassed) {
  ForecastBench f(1);
  f.running({hours(1)});
  const JobId next = f.waiting({minutes(30)});
  const JobId last = f.waiting({});
  f.bench.advance(minutes(20));
  EXPECT_EQ(f.in(next), minutes(40));  // 60 - 20
  EXPECT_EQ(f.in(last), minutes(70));  // 40 + 30
  EXPECT_EQ(f.basis(), (ForecastBasis{1, 0, 0, 0, 0}));
}

TEST(Forecast, TakesTheTimeoutWhereNothingIsStated) {
  ForecastBench f(2);
  f.running({std::nullopt, hours(2)});
  f.running({hours(1), hours(3)});
  const JobId one = f.waiting({});
  const JobId two = f.waiting({}, 2);
  f.bench.advance(minutes(15));
  EXPECT_EQ(f.in(one), minutes(45));  // The statement goes before the timeout.
  EXPECT_EQ(f.basis(), (ForecastBasis{1, 0, 1, 0, 0}));
  // Behind `one`, which runs for ever.
  EXPECT_EQ(f.of(two).outcome, ForecastOutcome::kUnknown);
  EXPECT_EQ(f.of(two).waits_for, std::vector<JobId>{one});
}

TEST(Forecast, TakesWhatIsOverdueToEndInAMinuteOrAtItsTimeout) {
  ForecastBench f(1);
  f.running({hours(1), minutes(91)});
  const JobId next = f.waiting({});
  f.bench.advance(minutes(60) - Duration(1));
  EXPECT_EQ(f.in(next), Duration(1));
  EXPECT_EQ(f.basis().stated, 1);
  f.bench.advance(Duration(1));
  EXPECT_EQ(f.in(next), minutes(1));
  EXPECT_EQ(f.basis(), (ForecastBasis{0, 1, 0, 0, 0}));
  f.bench.advance(minutes(30) + seconds(20));
  EXPECT_EQ(f.in(next), seconds(40));  // 91 min - 90 min 20 s
}

TEST(Forecast, SaysWhoStandsInTheWayWithoutAKnownEnd) {
  ForecastBench f(2);
  const JobId endless = f.running({});
  f.running({minutes(10)});
  const JobId small = f.waiting({minutes(10)});
  const JobId wide = f.waiting({}, 2);
  EXPECT_EQ(f.in(small), minutes(10));
  const JobForecast forecast = f.of(wide);
  EXPECT_EQ(forecast.outcome, ForecastOutcome::kUnknown);
  EXPECT_EQ(forecast.waits_for, std::vector<JobId>{endless});
  EXPECT_EQ(forecast.waits_for_in_all, 1);
  EXPECT_EQ(f.basis(), (ForecastBasis{1, 0, 0, 0, 1}));
  EXPECT_EQ(f.look().looked_until, kNever);
}

TEST(Forecast, OfAShareAtItsCeilingNamesItsOwnJobsOnly) {
  Bench bench;
  bench.register_node("n1", 2);
  bench.apply({Bench::share("s", 1, SharingStrategy::kReserve),
               Bench::share("t", 1, SharingStrategy::kReserve)},
              2);
  const JobId own = bench.submit(Bench::request("s"));
  (void)bench.runs(own);
  (void)bench.runs(bench.submit(Bench::request("t")));
  const JobId waiting = bench.submit(Bench::request("s"));
  const Forecast forecast = sim::make_forecast(bench.state().excerpt(100), bench.now());
  EXPECT_EQ(forecast.jobs.at(waiting).waits_for, std::vector<JobId>{own});
}

TEST(Forecast, FollowsDependenciesAndBackoffs) {
  ForecastBench f(1);
  const JobId first = f.running({minutes(5)});
  JobRequest request = ForecastBench::request({minutes(10)});
  request.depends_on = {{first, DependencyCondition::kSucceeded}};
  const JobId second = f.bench.submit(request);
  request.depends_on = {{second, DependencyCondition::kEnded}};
  const JobId third = f.bench.submit(request);
  EXPECT_EQ(f.in(second), minutes(5));
  EXPECT_EQ(f.in(third), minutes(15));
}

TEST(Forecast, OfWhatDependsOnAnEndlessJobNamesIt) {
  ForecastBench f(4);
  const JobId endless = f.running({});
  JobRequest request = ForecastBench::request({});
  request.depends_on = {{endless, DependencyCondition::kSucceeded}};
  const JobId second = f.bench.submit(request);
  request.depends_on = {{second, DependencyCondition::kEnded}};
  const JobId third = f.bench.submit(request);
  EXPECT_EQ(f.of(second).waits_for, std::vector<JobId>{endless});
  EXPECT_EQ(f.of(third).waits_for, std::vector<JobId>{endless});
}

TEST(Forecast, OfWhatCanNeverSucceedSaysHowItEnds) {
  ForecastBench f(2);
  const JobId first = f.running({minutes(5)});
  JobRequest request = ForecastBench::request({});
  request.depends_on = {{first, DependencyCondition::kFailed}};
  const JobForecast forecast = f.of(f.bench.submit(request));
  EXPECT_EQ(forecast.outcome, ForecastOutcome::kNever);
  EXPECT_NE(forecast.end.find("DEPENDENCY"), std::string::npos) << forecast.end;
}

TEST(Forecast, OfWhatNeedsAPersonIsNever) {
  ForecastBench f(1);
  f.running({minutes(5)});
  const JobId too_large = f.waiting({}, 7);
  EXPECT_EQ(f.of(too_large).outcome, ForecastOutcome::kNever);
  EXPECT_TRUE(is_misconfiguration(f.of(too_large).reason.code));
  JobRequest request = ForecastBench::request({});
  request.held = true;
  const JobId held = f.bench.submit(request);
  request.held = false;
  request.depends_on = {{held, DependencyCondition::kEnded}};
  const JobId after = f.bench.submit(request);
  EXPECT_EQ(f.of(held).outcome, ForecastOutcome::kNever);
  EXPECT_EQ(f.of(held).reason.code, ReasonCode::kHeldByUser);
  EXPECT_EQ(f.of(after).outcome, ForecastOutcome::kNever);
  EXPECT_EQ(f.of(after).reason.code, ReasonCode::kDependency);
}

TEST(Forecast, CountsTheGraceOfThoseThatGiveWay) {
  Bench bench;
  bench.register_node("n1", 1);
  ShareDef share = Bench::share("s", 1);
  share.in_share_preemption = true;
  bench.apply({share}, 1);
  JobRequest low = Bench::request("s");
  low.expected_run_time = hours(1);
  const JobId victim = bench.submit(low);
  (void)bench.runs(victim);
  const JobId high = bench.submit(Bench::request("s", 1, 5));  // Stops `low`: 30 s by default.
  bench.advance(seconds(10));
  const Forecast forecast = sim::make_forecast(bench.state().excerpt(100), bench.now());
  EXPECT_EQ(forecast.jobs.at(high).at - bench.now(), seconds(20));
  EXPECT_EQ(forecast.basis.begin()->second, (ForecastBasis{0, 0, 0, 1, 0}));
}

TEST(Forecast, GoesOnWithAGangThatIsHalfThere) {
  Bench bench;
  bench.register_node("n1", 1);
  bench.register_node("n2", 1);
  bench.apply({Bench::share("s", 2)}, 2);
  JobRequest gang = Bench::request("s");
  gang.instances = 2;
  gang.expected_run_time = hours(1);
  const JobId job = bench.submit(gang);
  bench.report(bench.job(job).attempt, InstanceState::kPrepared, {0, false, 0});
  const JobId next = bench.submit(Bench::request("s"));
  Forecast forecast = sim::make_forecast(bench.state().excerpt(100), bench.now());
  EXPECT_EQ(forecast.jobs.at(next).at - bench.now(), hours(1));  // It begins to run now.
  bench.report(bench.job(job).attempt, InstanceState::kPrepared, {0, false, 1});
  forecast = sim::make_forecast(bench.state().excerpt(100), bench.now());
  EXPECT_EQ(forecast.jobs.at(next).at - bench.now(), hours(1));
}

TEST(Forecast, ExpectsNothingOfANodeThatDoesNotAnswer) {
  ForecastBench f(1);
  const JobId job = f.running({minutes(5)});
  const JobId next = f.waiting({});
  (void)f.bench.ask(NodeLinkCommand{"n1", NodeLink::kUnreachable});
  EXPECT_EQ(f.of(next).outcome, ForecastOutcome::kUnknown);
  EXPECT_EQ(f.of(next).waits_for, std::vector<JobId>{job});
  EXPECT_EQ(f.basis(), (ForecastBasis{0, 0, 0, 0, 1}));
}

TEST(Forecast, EndsAtItsHorizon) {
  ForecastBench f(1);
  f.running({std::nullopt, hours(24 * 30)});
  const JobId just = f.waiting({Duration(1)});
  const JobId beyond = f.waiting({});
  EXPECT_EQ(f.in(just), sim::kForecastHorizon);
  EXPECT_EQ(f.of(beyond).outcome, ForecastOutcome::kLater);
  EXPECT_EQ(f.of(beyond).at - f.bench.now(), sim::kForecastHorizon);
  EXPECT_EQ(f.look().cut, false);
}

TEST(Forecast, ThatIsCutSaysHowFarItCame) {
  ForecastBench f(1);
  f.running({hours(1)});
  std::vector<JobId> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(f.waiting({hours(1)}));
  const Forecast whole = f.look();
  std::uint64_t steps = 0;
  const Forecast half = f.look({sim::kForecastHorizon, [&] { return ++steps < whole.steps / 2; }});
  EXPECT_TRUE(half.cut);
  EXPECT_EQ(half.steps, whole.steps / 2);
  int started = 0;
  for (const JobId job : jobs) {
    const JobForecast& one = half.jobs.at(job);
    if (one.outcome == ForecastOutcome::kStarts) {
      EXPECT_EQ(one.at, whole.jobs.at(job).at);
      ++started;
    } else {
      EXPECT_EQ(one.outcome, ForecastOutcome::kCut);
      EXPECT_EQ(one.at, half.looked_until);
      EXPECT_LE(one.at, whole.jobs.at(job).at);  // "Not before" is true.
    }
  }
  EXPECT_GT(started, 0);
  EXPECT_LT(started, 5);
}

TEST(Forecast, TakesTheFirstOfEachShareAlongAndCountsTheRest) {
  ForecastBench f(1);
  f.running({hours(1)});
  const JobId first = f.waiting({hours(1)});
  const JobId second = f.waiting({hours(1)}, 1);
  JobRequest urgent = ForecastBench::request({hours(1)});
  urgent.priority = 9;
  const JobId most_urgent = f.bench.submit(urgent);
  EXPECT_EQ(f.bench.state().excerpt(2).left_out, 1);
  EXPECT_EQ(f.bench.state().excerpt(3).left_out, 0);
  const Forecast forecast = sim::make_forecast(f.bench.state().excerpt(2), f.bench.now());
  EXPECT_EQ(forecast.left_out, 1);
  EXPECT_TRUE(forecast.jobs.contains(most_urgent));
  EXPECT_TRUE(forecast.jobs.contains(first));
  EXPECT_FALSE(forecast.jobs.contains(second));
  EXPECT_NE(f.bench.state().excerpt(2, {second}).state().find_job(second), nullptr);
}

TEST(Forecast, LeavesTheStateAsItIs) {
  ForecastBench f(2);
  f.running({hours(1)});
  f.running({});
  for (int i = 0; i < 4; ++i) f.waiting({minutes(5)}, 1 + i % 2);
  const StoredState before = f.bench.state().to_stored();
  const auto version = f.bench.state().version();
  const Forecast first = f.look();
  EXPECT_EQ(difference(f.bench.state().to_stored(), before), "");
  EXPECT_EQ(f.bench.state().version(), version);
  EXPECT_EQ(f.bench.state().sanity_check(), "");
  EXPECT_EQ(first.steps, f.look().steps);  // The same again.
}

TEST(Forecast, AnswersASubmissionAsTheServerWould) {
  ForecastBench f(1);
  f.running({hours(1)});
  f.waiting({hours(1)});
  sim::ForecastRun run(f.bench.state().excerpt(100), f.bench.now());
  const auto reply = run.ask({"u", Bench::submission(ForecastBench::request({}))});
  ASSERT_TRUE(reply.has_value());
  const JobId job = reply->jobs.front();
  EXPECT_EQ(f.bench.state().find_job(job), nullptr);
  EXPECT_EQ(run.run({}, job).jobs.at(job).at - f.bench.now(), hours(2));
  sim::ForecastRun other(f.bench.state().excerpt(100), f.bench.now());
  EXPECT_FALSE(other.ask({"u", Bench::submission(Bench::request("nobody"))}).has_value());
}

TEST(ExpectedRunTime, LongerThanTheTimeoutIsRefused) {
  ForecastBench f(1);
  const auto ask = [&f](const Says& says) {
    return f.bench.ask(Bench::submission(ForecastBench::request(says)));
  };
  EXPECT_TRUE(ask({hours(1), hours(1)}).has_value());
  const auto refused = ask({hours(1) + Duration(1), hours(1)});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(ask({Duration(0)}).has_value());
}

TEST(ExpectedRunTime, KeepsEqualJobsInOneClass) {
  ForecastBench f(1);
  const JobId one = f.waiting({hours(1)});
  const JobId two = f.waiting({hours(2)});
  EXPECT_EQ(f.bench.job(one).cls, f.bench.job(two).cls);
  f.bench.restart();
  EXPECT_EQ(f.bench.job(two).expected_run_time, Duration(hours(2)));
}

}  // namespace
}  // namespace gpuq::sim_test
