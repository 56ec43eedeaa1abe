// Time limits of a queue (J4), where a scenario does not reach: silent nodes, a changed policy.
#include <gtest/gtest.h>

#include "tests/sim/bench.h"

namespace gpuq::sim_test {
namespace {

using std::chrono::minutes;

const std::vector<TimeLimitAction> kTenMinutes = {
    {"MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED", minutes(10)}};

/// A job of two GPUs in a share that owns one and does not borrow: it never fits.
struct TooLarge {
  explicit TooLarge(std::vector<TimeLimitAction> limits = kTenMinutes) {
    bench.register_node("n", 2);
    bench.register_node("silent", 0);
    bench.apply(shares, 2, std::move(limits));
    job = bench.submit(Bench::request("A", 2));
  }
  std::vector<ShareDef> shares = {Bench::share("A", 1, SharingStrategy::kReserve)};
  Bench bench;
  JobId job;
};

TEST(TimeLimits, EndAJobWithTheReasonInItsStatus) {
  TooLarge t;
  t.bench.advance(minutes(10) - Duration(1));
  EXPECT_EQ(t.bench.job(t.job).state, JobState::kRunnable);
  t.bench.advance(Duration(1));
  EXPECT_EQ(t.bench.job(t.job).state, JobState::kFailed);
  EXPECT_FALSE(t.bench.job(t.job).terminating);
  EXPECT_EQ(t.bench.job(t.job).status_reason,
            "Terminated by JobStateTimeLimit action due to reason: "
            "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED");
}

TEST(TimeLimits, StandStillWhileANodeIsSilent) {
  TooLarge t;
  t.bench.advance(minutes(4));
  (void)t.bench.ask(NodeLinkCommand{"silent", NodeLink::kUnreachable});
  t.bench.advance(minutes(60));
  EXPECT_EQ(t.bench.job(t.job).state, JobState::kRunnable);
  t.bench.register_node("silent", 0);
  t.bench.advance(minutes(6) - Duration(1));
  EXPECT_EQ(t.bench.job(t.job).state, JobState::kRunnable);
  t.bench.advance(Duration(1));
  EXPECT_EQ(t.bench.job(t.job).state, JobState::kFailed);
}

TEST(TimeLimits, ThatAPolicyBringsBeginWithIt) {
  TooLarge t(std::vector<TimeLimitAction>{});
  t.bench.advance(minutes(60));
  t.bench.apply(t.shares, 2, kTenMinutes);
  t.bench.advance(minutes(10) - Duration(1));
  EXPECT_EQ(t.bench.job(t.job).state, JobState::kRunnable);
  t.bench.advance(Duration(1));
  EXPECT_EQ(t.bench.job(t.job).state, JobState::kFailed);
}

TEST(TimeLimits, ThatAPolicyTakesAwayEndNobody) {
  TooLarge t;
  t.bench.advance(minutes(9));
  t.bench.apply(t.shares, 2);
  t.bench.advance(minutes(60));
  EXPECT_EQ(t.bench.job(t.job).state, JobState::kRunnable);
}

TEST(TimeLimits, EndAJobForThoseThatDependOnIt) {
  TooLarge t;
  JobRequest request = Bench::request("A");
  request.depends_on = {{t.job, DependencyCondition::kSucceeded}};
  const JobId after = t.bench.submit(request);
  request.depends_on = {{t.job, DependencyCondition::kFailed}};
  const JobId otherwise = t.bench.submit(request);
  t.bench.advance(minutes(10));
  EXPECT_EQ(t.bench.job(after).state, JobState::kFailed);
  EXPECT_EQ(t.bench.job(otherwise).state, JobState::kScheduled);
}

TEST(TimeLimits, AnotherPriorityDoesNotWindTheClockBack) {
  TooLarge t;
  t.bench.advance(minutes(9));
  (void)t.bench.ask(UpdateJobCommand{t.job, 7});
  t.bench.advance(minutes(1));
  EXPECT_EQ(t.bench.job(t.job).state, JobState::kFailed);
}

}  // namespace
}  // namespace gpuq::sim_test
