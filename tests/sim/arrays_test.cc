// Arrays (J5): what is written for them, what is refused, and what the archive leaves of them.
#include <gtest/gtest.h>

#include "tests/sim/bench.h"

namespace gpuq::sim_test {
namespace {

JobRequest sweep(const ArrayRange& range) {
  JobRequest request = Bench::request("A");
  request.array = range;
  return request;
}

/// A share of one GPU, or of as many as are given.
struct Arrays {
  explicit Arrays(int gpus = 1, const EngineConfig& config = {}) : bench(config) {
    bench.register_node("n", gpus);
    bench.apply({Bench::share("A", gpus)}, gpus);
  }
  [[nodiscard]] const JobArray& array(JobId id) { return *bench.state().find_array(id); }
  [[nodiscard]] std::int32_t in(JobId id, JobState state) {
    return bench.state().member_counts(array(id)).in(state);
  }
  void ends(JobId member, std::int32_t code) { bench.exits(bench.runs(member), {code, false}); }

  Bench bench;
};

TEST(Arrays, OfTenThousandAreOneRecordAndOneForEachMemberThatStarts) {
  Arrays s;
  const std::size_t before = s.bench.state().jobs().size();
  const JobId id = s.bench.submit(sweep({0, 9'999}));
  // The array, and member 0 on the only GPU.
  EXPECT_EQ(s.bench.state().jobs().size(), before + 2);
  EXPECT_EQ(s.array(id).made, 1);
  EXPECT_EQ(s.bench.job(s.array(id).member(0)).state, JobState::kScheduled);
  EXPECT_EQ(s.in(id, JobState::kRunnable), 9'999);
  EXPECT_EQ(s.bench.state().waiting(s.bench.job(id).share).count, 9'999);
  EXPECT_EQ(s.bench.store.specs().size(), 1u);
  // The numbers of its members are nobody else's.
  EXPECT_EQ(s.bench.submit(Bench::request("A")), JobId(id.value + 10'001));
}

TEST(Arrays, AreHeldReleasedAndRaisedWithoutRecordsOfMembers) {
  Arrays s;
  JobRequest request = sweep({0, 9'999});
  request.held = true;
  const JobId id = s.bench.submit(request);
  EXPECT_EQ(s.in(id, JobState::kPending), 10'000);
  ASSERT_TRUE(s.bench.ask(UpdateJobCommand{id, 7, false}).has_value());
  EXPECT_EQ(s.array(id).made, 1);
  EXPECT_EQ(s.bench.job(s.array(id).member(9'999)).priority, 7);
  ASSERT_TRUE(s.bench.ask(CancelCommand{id, "enough"}).has_value());
  EXPECT_EQ(s.array(id).made, 1);
  EXPECT_EQ(s.in(id, JobState::kFailed), 9'999);
  EXPECT_EQ(s.bench.job(s.array(id).member(5)).status_reason, "enough");
  EXPECT_FALSE(is_terminal(s.bench.job(id).state));  // Member 0 has an attempt that is stopping.
  s.bench.exits(s.bench.job(s.array(id).member(0)).attempt, {143, true});
  EXPECT_EQ(s.bench.job(id).state, JobState::kFailed);
  EXPECT_EQ(s.bench.job(id).status_reason, "enough");
}

TEST(Arrays, RepeatTheirAnswerToTheSameToken) {
  Arrays s;
  SubmitCommand command = Bench::submission(sweep({0, 4}));
  command.client_token = "once";
  const auto first = s.bench.ask(command);
  const auto again = s.bench.ask(command);
  ASSERT_TRUE(first.has_value() && again.has_value());
  EXPECT_EQ(again->jobs, first->jobs);
  EXPECT_TRUE(again->repeated_token);
  EXPECT_EQ(s.bench.state().arrays().size(), 1u);
}

TEST(Arrays, ThatAreWrongAreRefusedWhole) {
  Arrays s;
  const auto counters = s.bench.state().counters();
  for (const ArrayRange& range :
       {ArrayRange{5, 4}, ArrayRange{0, kMaxArraySize}, ArrayRange{-1, 3}, ArrayRange{0, 3, 0},
        ArrayRange{0, 3, 1, -1}, ArrayRange{0, kMaxArrayIndex + 1, kMaxArrayIndex}}) {
    const auto refused = s.bench.ask(Bench::submission(sweep(range)));
    ASSERT_FALSE(refused.has_value()) << to_string(range);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(refused.error().message.find("array"), std::string::npos);
  }
  EXPECT_EQ(s.bench.state().counters(), counters);
  EXPECT_TRUE(s.bench.ask(Bench::submission(sweep({0, kMaxArraySize - 1}))).has_value());
}

TEST(Arrays, WhereNobodyWaitsCanNotBeHeld) {
  Arrays s;
  const JobId id = s.bench.submit(sweep({0, 0}));
  const auto refused = s.bench.ask(UpdateJobCommand{id, std::nullopt, true});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_NE(refused.error().message.find("has no member that waits"), std::string::npos);
  EXPECT_TRUE(s.bench.ask(UpdateJobCommand{id, std::nullopt, false}).has_value());
}

TEST(Arrays, DependOnAMemberByItsIndex) {
  Arrays s(2);
  const JobId id = s.bench.submit(sweep({10, 14, 2}));
  JobRequest request = Bench::request("A");
  request.depends_on = {{id, DependencyCondition::kSucceeded, 12}};
  const JobId after = s.bench.submit(request);
  EXPECT_EQ(s.bench.job(after).depends_on.front().job, s.array(id).member(1));
  request.depends_on = {{id, DependencyCondition::kSucceeded, 11}};
  const auto unknown = s.bench.ask(Bench::submission(request));
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_NE(unknown.error().message.find("has no member 11: its indexes are 10-14:2"),
            std::string::npos)
      << unknown.error().message;
  request.depends_on = {{after, DependencyCondition::kSucceeded, 0}};
  EXPECT_EQ(s.bench.ask(Bench::submission(request)).error().code, ErrorCode::kNotFound);
}

TEST(Arrays, EndWithTheHighestExitCodeOfTheirMembers) {
  Arrays s(3);
  const JobId id = s.bench.submit(sweep({0, 2}));
  s.ends(s.array(id).member(0), 3);
  s.ends(s.array(id).member(1), 137);
  EXPECT_FALSE(is_terminal(s.bench.job(id).state));
  s.ends(s.array(id).member(2), 0);
  EXPECT_EQ(s.bench.job(id).state, JobState::kFailed);
  EXPECT_EQ(s.bench.job(id).exit_code, 137);
  EXPECT_EQ(s.bench.job(id).status_reason, "2 of its 3 members failed");
  const JobId good = s.bench.submit(sweep({0, 0}));
  s.ends(s.array(good).member(0), 0);
  EXPECT_EQ(s.bench.job(good).state, JobState::kSucceeded);
  EXPECT_EQ(s.bench.job(good).exit_code, 0);
}

TEST(Arrays, KeepTheirSumsWhenTheArchiveTakesTheirMembers) {
  EngineConfig config;
  config.keep_ended_jobs = 2;
  config.check_invariants = true;
  Arrays s(1, config);
  const JobId id = s.bench.submit(sweep({0, 5}));
  const JobId first = s.array(id).member(0);
  for (std::int32_t k = 0; k < 5; ++k) s.ends(s.array(id).member(k), k == 1 ? 9 : 0);
  ASSERT_EQ(s.bench.state().find_job(first), nullptr);
  EXPECT_GT(s.array(id).archived_succeeded, 0);
  EXPECT_EQ(s.in(id, JobState::kSucceeded), 4);
  EXPECT_EQ(s.in(id, JobState::kFailed), 1);
  s.ends(s.array(id).member(5), 0);
  EXPECT_EQ(s.bench.job(id).exit_code, 9);
  // The array goes after the last of its members, and its class with it.
  for (int i = 0; i < 4; ++i) {
    const JobId job = s.bench.submit(Bench::request("A"));
    s.ends(job, 0);
  }
  EXPECT_EQ(s.bench.state().find_job(id), nullptr);
  EXPECT_TRUE(s.bench.state().arrays().empty());
}

TEST(Arrays, InADeletedShareEndWithIt) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1), Bench::share("B", 0)}, 1);
  JobRequest request = Bench::request("B");
  request.array = ArrayRange{0, 99};
  request.held = true;
  const JobId id = bench.submit(request);
  ASSERT_TRUE(bench.ask(UpdateJobCommand{JobId(id.value + 3), 5}).has_value());
  ShareDef disabled = Bench::share("B", 0);
  disabled.enabled = false;
  bench.apply({Bench::share("A", 1), disabled}, 1);
  bench.apply({Bench::share("A", 1)}, 1);
  EXPECT_EQ(bench.job(id).state, JobState::kFailed);
  EXPECT_EQ(bench.job(JobId(id.value + 3)).state, JobState::kFailed);
  EXPECT_EQ(bench.job(JobId(id.value + 100)).state, JobState::kFailed);
  EXPECT_EQ(bench.state().policy().shares.size(), 1u);
}

TEST(Arrays, OrdersNameTheArrayWhoseSpecTheyUse) {
  Arrays s;
  const JobId id = s.bench.submit(sweep({4, 5}));
  ASSERT_EQ(s.bench.gateway.starts.size(), 1u);
  const StartOrder& order = s.bench.gateway.starts.front();
  ASSERT_TRUE(order.array.has_value());
  EXPECT_EQ(order.array->id, id);
  EXPECT_EQ(order.array->index(order.job.id), 4);
}

}  // namespace
}  // namespace gpuq::sim_test
