// What comes before RUNNABLE: holds (J1) and back-offs (J2), with the test as the agent.
#include <gtest/gtest.h>

#include "tests/sim/bench.h"

namespace gpuq::sim_test {
namespace {

using std::chrono::seconds;

UpdateJobCommand hold(JobId job, bool held) { return {job, std::nullopt, held}; }

TEST(Hold, OfAJobWithAnAttemptIsRefusedInASentence) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1)}, 1);
  const JobId job = bench.submit(Bench::request("A"));
  const auto refused = bench.ask(hold(job, true));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_NE(refused.error().message.find("job 1 is SCHEDULED and can not be held"),
            std::string::npos)
      << refused.error().message;
  EXPECT_FALSE(bench.job(job).held);
  EXPECT_TRUE(bench.ask(hold(job, false)).has_value());
}

TEST(Hold, TwiceIsTheSameAsOnceAndAReleaseOfAnEndedJobIsHarmless) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1)}, 1);
  JobRequest request = Bench::request("A");
  request.held = true;
  const JobId job = bench.submit(request);
  const std::size_t events = bench.events.size();
  EXPECT_TRUE(bench.ask(hold(job, true)).has_value());
  EXPECT_EQ(bench.events.size(), events);
  EXPECT_EQ(bench.job(job).state, JobState::kPending);
  EXPECT_TRUE(bench.ask(CancelCommand{job, "done"}).has_value());
  EXPECT_TRUE(bench.ask(hold(job, false)).has_value());
  EXPECT_EQ(bench.job(job).state, JobState::kFailed);
  EXPECT_EQ(bench.ask(hold(job, true)).error().code, ErrorCode::kFailedPrecondition);
}

TEST(Hold, RefusedWithABadPriorityHoldsNothing) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 0, SharingStrategy::kLend)}, 1);
  const JobId job = bench.submit(Bench::request("A"));
  EXPECT_FALSE(bench.ask(UpdateJobCommand{job, 10'000, true}).has_value());
  EXPECT_EQ(bench.job(job).state, JobState::kRunnable);
  EXPECT_FALSE(bench.ask(UpdateJobCommand{job, std::nullopt}).has_value());
  EXPECT_TRUE(bench.ask(UpdateJobCommand{job, 7, true}).has_value());
  EXPECT_EQ(bench.job(job).priority, 7);
  EXPECT_EQ(bench.job(job).state, JobState::kPending);
}

TEST(Hold, EndsTheRecordOfThePreemptionMadeForIt) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 0), Bench::share("B", 1, SharingStrategy::kLend)}, 1);
  const JobId loan = bench.submit(Bench::request("A"));
  const AttemptId attempt = bench.runs(loan);
  const JobId owner = bench.submit(Bench::request("B"));
  ASSERT_NE(bench.state().find_booking(owner), nullptr);
  ASSERT_TRUE(bench.ask(hold(owner, true)).has_value());
  EXPECT_EQ(bench.state().find_booking(owner), nullptr);
  ASSERT_EQ(bench.state().preemptions().size(), 1u);
  const Preemption& record = bench.state().preemptions().begin()->second;
  EXPECT_EQ(record.end, PreemptionEnd::kVoided);
  EXPECT_EQ(record.end_rule, "J1");
  bench.exits(attempt, {143, true});
  EXPECT_EQ(bench.job(loan).state, JobState::kScheduled);
}

/// A job with a back-off of 30 s whose first attempt has failed at 0 s.
struct FailedOnce {
  FailedOnce() {
    bench.register_node("n", 1);
    bench.apply({Bench::share("A", 1)}, 1);
    JobRequest request = Bench::request("A");
    request.max_attempts = 3;
    request.backoff = seconds(30);
    job = bench.submit(std::move(request));
    bench.exits(bench.runs(job), {1, false});
  }
  Bench bench;
  JobId job;
};

TEST(Backoff, EndsByItselfAndNotAMillisecondEarlier) {
  FailedOnce f;
  EXPECT_EQ(f.bench.state().reason_of(f.job).code, ReasonCode::kRetryBackoff);
  EXPECT_EQ(f.bench.state().reason_of(f.job).when, f.bench.now() + seconds(30));
  f.bench.advance(Duration(29'999));
  EXPECT_EQ(f.bench.job(f.job).state, JobState::kPending);
  f.bench.advance(Duration(1));
  EXPECT_EQ(f.bench.job(f.job).state, JobState::kScheduled);
}

TEST(Backoff, ThatEndsWhileTheServerIsAwayIsOverWhenItIsBack) {
  FailedOnce f;
  f.bench.restart();
  EXPECT_EQ(f.bench.job(f.job).state, JobState::kPending);
  f.bench.register_node("n", 1);
  f.bench.advance(seconds(30));
  EXPECT_EQ(f.bench.job(f.job).state, JobState::kScheduled);
}

TEST(Backoff, IsNotDoubledByALostNode) {
  FailedOnce f;
  f.bench.advance(seconds(30));
  f.bench.runs(f.job);
  f.bench.node_down("n");
  EXPECT_EQ(f.bench.job(f.job).state, JobState::kRunnable);
  f.bench.register_node("n", 1);
  f.bench.exits(f.bench.runs(f.job), {1, false});
  // The second failure that counts: 30 x 2 = 60 s.
  EXPECT_EQ(f.bench.state().reason_of(f.job).when, f.bench.now() + seconds(60));
}

TEST(Backoff, OfACancelledJobLeavesNoTimer) {
  FailedOnce f;
  EXPECT_TRUE(f.bench.ask(CancelCommand{f.job, "enough"}).has_value());
  EXPECT_TRUE(f.bench.state().backoffs().empty());
  f.bench.advance(seconds(60));
  EXPECT_EQ(f.bench.job(f.job).state, JobState::kFailed);
}

TEST(Backoff, OutOfRangeIsRefused) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1)}, 1);
  JobRequest request = Bench::request("A");
  request.backoff = kMaxBackoff + Duration(1);
  EXPECT_FALSE(bench.ask(Bench::submission(request)).has_value());
  request.backoff = kMaxBackoff;
  EXPECT_TRUE(bench.ask(Bench::submission(request)).has_value());
}

JobRequest after(JobId job, DependencyCondition condition = DependencyCondition::kSucceeded) {
  JobRequest request = Bench::request("A");
  request.depends_on = {{job, condition}};
  return request;
}

struct Dependants {
  explicit Dependants(EngineConfig config = {}) : bench(std::move(config)) {
    bench.register_node("n", 1);
    bench.apply({Bench::share("A", 1)}, 1);
  }
  Bench bench;
};

TEST(Dependencies, OnUnknownOnesAndOnItselfAreRefused) {
  Dependants s;
  for (const std::int64_t id : {-1, 0, 1, 2, 99}) {
    const auto refused = s.bench.ask(Bench::submission(after(JobId(id))));
    ASSERT_FALSE(refused.has_value()) << id;
    EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  }
  EXPECT_TRUE(s.bench.state().jobs().empty());
  const JobId first = s.bench.submit(Bench::request("A"));
  JobRequest many = Bench::request("A");
  many.depends_on.assign(kMaxDependencies + 1, {first, DependencyCondition::kEnded});
  EXPECT_EQ(s.bench.ask(Bench::submission(many)).error().code, ErrorCode::kInvalidArgument);
}

TEST(Dependencies, AreNamedInTheReasonAndLeaveAsTheyComeTrue) {
  Dependants s;
  const JobId first = s.bench.submit(Bench::request("A"));
  const JobId second = s.bench.submit(Bench::request("A"));
  JobRequest request = after(first);
  request.depends_on.push_back({second, DependencyCondition::kEnded});
  request.depends_on.push_back({first, DependencyCondition::kSucceeded});
  const JobId job = s.bench.submit(request);
  EXPECT_EQ(s.bench.job(job).depends_on.size(), 2u);
  EXPECT_EQ(s.bench.state().reason_of(job).jobs, (std::vector<JobId>{first, second}));
  s.bench.exits(s.bench.runs(first), {0, false});
  EXPECT_EQ(s.bench.state().reason_of(job).jobs, std::vector<JobId>{second});
  EXPECT_EQ(s.bench.state().dependants(first), nullptr);
  s.bench.restart();
  EXPECT_EQ(s.bench.state().reason_of(job).jobs, std::vector<JobId>{second});
}

TEST(Dependencies, AJobThatCanNeverStartSaysWhyAndWasNotCancelled) {
  Dependants s;
  const JobId first = s.bench.submit(Bench::request("A"));
  const JobId job = s.bench.submit(after(first));
  s.bench.exits(s.bench.runs(first), {1, false});
  EXPECT_EQ(s.bench.job(job).state, JobState::kFailed);
  EXPECT_FALSE(s.bench.job(job).terminating);
  EXPECT_EQ(s.bench.job(job).status_reason,
            "DEPENDENCY: job 1 is FAILED and was to be SUCCEEDED: this job can never start");
}

TEST(Dependencies, ALongChainFallsWithItsFirst) {
  Dependants s;
  JobRequest held = Bench::request("A");
  held.held = true;
  const JobId first = s.bench.submit(held);
  JobId last = first;
  for (int i = 0; i < 300; ++i) last = s.bench.submit(after(last));
  EXPECT_EQ(s.bench.job(last).state, JobState::kPending);
  ASSERT_TRUE(s.bench.ask(CancelCommand{first, "no"}).has_value());
  EXPECT_EQ(s.bench.job(last).state, JobState::kFailed);
  EXPECT_TRUE(s.bench.state().dependants().empty());
}

TEST(Dependencies, InADeletedShareEndOnce) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1), Bench::share("B", 0)}, 1);
  JobRequest held = Bench::request("B");
  held.held = true;
  const JobId first = bench.submit(held);
  JobRequest request = after(first);
  request.share = "B";
  const JobId second = bench.submit(request);
  const JobId outside = bench.submit(after(second, DependencyCondition::kFailed));
  ShareDef disabled = Bench::share("B", 0);
  disabled.enabled = false;
  bench.apply({Bench::share("A", 1), disabled}, 1);
  bench.apply({Bench::share("A", 1)}, 1);
  EXPECT_EQ(bench.job(first).state, JobState::kFailed);
  EXPECT_EQ(bench.job(second).state, JobState::kFailed);
  EXPECT_EQ(bench.job(outside).state, JobState::kScheduled);
}

TEST(Dependencies, OnAnArchivedJobAreNotGuessed) {
  EngineConfig config;
  config.keep_ended_jobs = 1;
  Dependants s(config);
  const JobId first = s.bench.submit(Bench::request("A"));
  s.bench.exits(s.bench.runs(first), {0, false});
  for (int i = 0; i < 3; ++i) {
    s.bench.exits(s.bench.runs(s.bench.submit(Bench::request("A"))), {0, false});
  }
  ASSERT_EQ(s.bench.state().find_job(first), nullptr);
  const auto refused = s.bench.ask(Bench::submission(after(first)));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_NE(refused.error().message.find("is in the archive"), std::string::npos);
  const JobId job = s.bench.submit(after(first, DependencyCondition::kEnded));
  EXPECT_EQ(s.bench.job(job).state, JobState::kScheduled);
}

}  // namespace
}  // namespace gpuq::sim_test
