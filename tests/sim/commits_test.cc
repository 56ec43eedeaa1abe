// One batch, one transaction: commands that conflict inside a batch, commits that fail, tokens and
// the archive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/sim/bench.h"
#include "tests/sim/stored.h"

namespace gpuq::sim_test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::HasSubstr;

/// Collects answers in the order in which they come.
struct Answers {
  ReplyFn next() {
    const std::size_t i = got.size();
    got.emplace_back();
    return [this, i](Result<Reply> reply) { got[i] = std::move(reply); };
  }
  const Result<Reply>& at(std::size_t i) const { return *got.at(i); }
  std::vector<std::optional<Result<Reply>>> got;
};

struct OneShare {
  explicit OneShare(EngineConfig config = {}) : bench(std::move(config)) {
    bench.register_node("n", 1);
    bench.apply({Bench::share("A", 1)}, 1);
  }
  std::string difference() {
    return sim_test::difference(*bench.store.load(false), bench.state().to_stored());
  }
  Bench bench;
  Answers answers;
};

TEST(OneBatch, CancelThenUpdate) {
  OneShare s;
  (void)s.bench.submit(Bench::request("A"));
  const JobId waiting = s.bench.submit(Bench::request("A"));
  const auto batches = s.bench.engine().stats().batches;
  s.bench.post(CancelCommand{waiting, "gone"}, s.answers.next());
  s.bench.post(UpdateJobCommand{waiting, 7}, s.answers.next());
  s.bench.run();
  EXPECT_EQ(s.bench.engine().stats().batches, batches + 1);
  EXPECT_TRUE(s.answers.at(0).has_value());
  ASSERT_FALSE(s.answers.at(1).has_value());
  EXPECT_EQ(s.answers.at(1).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(s.bench.job(waiting).priority, 0);
  EXPECT_EQ(s.difference(), "");
}

TEST(OneBatch, CancelOfARunningJobThenUpdate) {
  OneShare s;
  const JobId job = s.bench.submit(Bench::request("A"));
  const AttemptId attempt = s.bench.runs(job);
  s.bench.post(CancelCommand{job, "gone"}, s.answers.next());
  s.bench.post(UpdateJobCommand{job, 7}, s.answers.next());
  s.bench.run();
  EXPECT_EQ(s.bench.job(job).state, JobState::kRunning);
  s.bench.exits(attempt, {143, true});
  EXPECT_EQ(s.bench.job(job).state, JobState::kFailed);
  EXPECT_EQ(s.bench.job(job).status_reason, "gone");
}

TEST(OneBatch, CancelTwice) {
  OneShare s;
  const JobId job = s.bench.submit(Bench::request("A"));
  s.bench.runs(job);
  s.bench.post(CancelCommand{job, "first"}, s.answers.next());
  s.bench.post(CancelCommand{job, "second"}, s.answers.next());
  s.bench.run();
  EXPECT_TRUE(s.answers.at(0).has_value());
  EXPECT_TRUE(s.answers.at(1).has_value());
  EXPECT_EQ(s.bench.gateway.stops.size(), 1u);
  EXPECT_EQ(s.bench.job(job).status_reason, "first");
}

TEST(OneBatch, CancelAndTheExitOfTheSameAttempt) {
  OneShare s;
  const JobId job = s.bench.submit(Bench::request("A"));
  const AttemptId attempt = s.bench.runs(job);
  ReportCommand exit;
  exit.node = "n";
  exit.report.attempt = attempt;
  exit.report.state = InstanceState::kExited;
  exit.report.exit_code = 0;
  s.bench.post(exit, s.answers.next());
  s.bench.post(CancelCommand{job, "late"}, s.answers.next());
  s.bench.run();
  EXPECT_TRUE(s.answers.at(1).has_value());
  EXPECT_EQ(s.bench.job(job).state, JobState::kSucceeded);
}

TEST(OneBatch, TheSameTokenWithTheSameAndWithAnotherBody) {
  OneShare s;
  SubmitCommand first = Bench::submission(Bench::request("A"));
  first.client_token = "t";
  first.body_hash = 1;
  SubmitCommand other = first;
  other.body_hash = 2;
  s.bench.post(first, s.answers.next());
  s.bench.post(first, s.answers.next());
  s.bench.post(other, s.answers.next());
  s.bench.run();
  ASSERT_TRUE(s.answers.at(0).has_value());
  ASSERT_TRUE(s.answers.at(1).has_value());
  EXPECT_EQ(s.answers.at(0)->jobs, s.answers.at(1)->jobs);
  EXPECT_TRUE(s.answers.at(1)->repeated_token);
  ASSERT_FALSE(s.answers.at(2).has_value());
  EXPECT_EQ(s.answers.at(2).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(s.bench.state().jobs().size(), 1u);
}

TEST(OneBatch, TokensAreEachUsersOwn) {
  OneShare s;
  SubmitCommand mine = Bench::submission(Bench::request("A"));
  mine.client_token = "t";
  SubmitCommand yours = mine;
  yours.user = "somebody";
  yours.body_hash = 9;
  s.bench.post(mine, s.answers.next());
  s.bench.post(yours, s.answers.next());
  s.bench.run();
  ASSERT_TRUE(s.answers.at(1).has_value());
  EXPECT_EQ(s.bench.state().jobs().size(), 2u);
}

TEST(OneBatch, DeleteTheQueueThenSubmitToIt) {
  OneShare s;
  const JobId running = s.bench.submit(Bench::request("A"));
  s.bench.runs(running);
  const JobId waiting = s.bench.submit(Bench::request("A"));
  ApplyPolicyCommand disable;
  disable.partial = true;
  QueueDef queue = s.bench.state().policy().queue("q")->def;
  queue.enabled = false;
  disable.doc.queues = std::vector<QueueDef>{queue};
  ApplyPolicyCommand remove;
  remove.partial = true;
  remove.deletions = {{"queue", "q"}};
  JobRequest request = Bench::request("A");
  request.queue = "q";
  s.bench.post(disable, s.answers.next());
  s.bench.post(remove, s.answers.next());
  s.bench.post(Bench::submission(request), s.answers.next());
  s.bench.run();
  ASSERT_TRUE(s.answers.at(1).has_value()) << s.answers.at(1).error().message;
  EXPECT_TRUE(s.answers.at(1)->issues.empty()) << s.answers.at(1)->issues[0].message;
  EXPECT_FALSE(s.answers.at(2).has_value());
  EXPECT_EQ(s.bench.job(waiting).state, JobState::kFailed);
  const AttemptId attempt = s.bench.job(running).attempt;
  s.bench.exits(attempt, {143, true});
  EXPECT_EQ(s.bench.job(running).state, JobState::kFailed);
  EXPECT_EQ(s.bench.state().policy().queue("q"), nullptr);
  EXPECT_EQ(s.difference(), "");
}

TEST(OneBatch, ARefusedCommandLeavesTheOthers) {
  OneShare s;
  s.bench.post(Bench::submission(Bench::request("nobody")), s.answers.next());
  s.bench.post(Bench::submission(Bench::request("A")), s.answers.next());
  s.bench.run();
  EXPECT_FALSE(s.answers.at(0).has_value());
  ASSERT_TRUE(s.answers.at(1).has_value());
  EXPECT_EQ(s.answers.at(1)->jobs.front(), JobId(1));
}

TEST(OneBatch, ASubmissionOfSeveralJobsIsAllOrNothing) {
  OneShare s;
  SubmitCommand command = Bench::submission(Bench::request("A"));
  command.jobs.push_back(Bench::request("A", -1));
  const auto reply = s.bench.ask(command);
  ASSERT_FALSE(reply.has_value());
  EXPECT_THAT(reply.error().message, HasSubstr("jobs[1]"));
  EXPECT_TRUE(s.bench.state().jobs().empty());
}

TEST(FailingCommit, ChangesNothingAndResumesAfterTheProbe) {
  OneShare s;
  const StoredState before = s.bench.state().to_stored();
  s.bench.store.fail_next(1, {ErrorCode::kResourceExhausted, "the disk is full"});
  const auto reply = s.bench.ask(Bench::submission(Bench::request("A")));
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(reply.error().message, HasSubstr("the disk is full"));
  EXPECT_EQ(sim_test::difference(before, s.bench.state().to_stored()), "");
  EXPECT_TRUE(s.bench.engine().read_only());
  EXPECT_TRUE(s.bench.gateway.starts.empty());
  const auto refused = s.bench.ask(Bench::submission(Bench::request("A")));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  s.bench.advance(seconds(1));
  EXPECT_FALSE(s.bench.engine().read_only());
  EXPECT_EQ(s.bench.submit(Bench::request("A")), JobId(1));
  EXPECT_EQ(s.bench.gateway.starts.size(), 1u);
}

TEST(FailingCommit, EveryCallerOfTheBatchGetsTheError) {
  OneShare s;
  s.bench.store.fail_next(1, {ErrorCode::kUnavailable, "away"});
  for (int i = 0; i < 3; ++i) {
    s.bench.post(Bench::submission(Bench::request("A")), s.answers.next());
  }
  s.bench.run();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(s.answers.at(i).has_value());
  EXPECT_EQ(s.difference(), "");
}

TEST(FailingCommit, OfAPassStartsNothingUntilItIsTriedAgain) {
  OneShare s;
  s.bench.post(Bench::submission(Bench::request("A")), [&s](Result<Reply> reply) {
    EXPECT_TRUE(reply.has_value());
    s.bench.store.fail_next(2, {ErrorCode::kUnavailable, "away"});
  });
  s.bench.run();
  EXPECT_EQ(s.bench.job(JobId(1)).state, JobState::kRunnable);
  EXPECT_TRUE(s.bench.gateway.starts.empty());
  s.bench.advance(seconds(1));
  EXPECT_TRUE(s.bench.engine().read_only());
  s.bench.advance(seconds(1));
  EXPECT_EQ(s.bench.job(JobId(1)).state, JobState::kScheduled);
  EXPECT_EQ(s.bench.gateway.starts.size(), 1u);
  EXPECT_EQ(s.difference(), "");
}

TEST(FailingCommit, AnotherServersEpochIsFinal) {
  OneShare s;
  (void)s.bench.store.load(true);  // Somebody else has started on this store.
  EXPECT_FALSE(s.bench.ask(Bench::submission(Bench::request("A"))).has_value());
  s.bench.advance(seconds(60));
  EXPECT_TRUE(s.bench.engine().read_only());
  const auto reply = s.bench.ask(Bench::submission(Bench::request("A")));
  ASSERT_FALSE(reply.has_value());
  EXPECT_THAT(reply.error().message, HasSubstr("the epoch is not ours"));
}

TEST(Tokens, ExpireAfterTheirLifetime) {
  OneShare s;
  SubmitCommand command = Bench::submission(Bench::request("A"));
  command.client_token = "t";
  const auto first = s.bench.ask(command);
  ASSERT_TRUE(first.has_value());
  s.bench.advance(hours(24) - seconds(1));
  EXPECT_TRUE(s.bench.ask(command)->repeated_token);
  s.bench.advance(seconds(1));
  EXPECT_TRUE(s.bench.state().tokens().empty());
  const auto again = s.bench.ask(command);
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->repeated_token);
  EXPECT_NE(again->jobs, first->jobs);
  EXPECT_EQ(s.difference(), "");
}

TEST(Tokens, SurviveARestart) {
  OneShare s;
  SubmitCommand command = Bench::submission(Bench::request("A"));
  command.client_token = "t";
  const auto first = s.bench.ask(command);
  s.bench.restart();
  const auto again = s.bench.ask(command);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->jobs, first->jobs);
}

TEST(Archive, KeepsTheLatestEndedJobs) {
  EngineConfig config;
  config.keep_ended_jobs = 10;
  OneShare s(config);
  for (int i = 0; i < 30; ++i) {
    const JobId job = s.bench.submit(Bench::request("A"));
    const AttemptId attempt = s.bench.runs(job);
    s.bench.advance(seconds(1));
    s.bench.exits(attempt, {0, false});
  }
  EXPECT_LE(s.bench.state().ended_jobs().size(), 11u);
  EXPECT_GE(s.bench.state().ended_jobs().size(), 10u);
  EXPECT_EQ(s.bench.store.archived() + s.bench.state().ended_jobs().size(), 30u);
  EXPECT_EQ(s.bench.state().find_job(JobId(1)), nullptr);
  EXPECT_NE(s.bench.state().find_job(JobId(30)), nullptr);
  EXPECT_EQ(s.bench.state().attempts().size(), s.bench.state().ended_jobs().size());
  EXPECT_EQ(s.difference(), "");
  // An archived job has ended, and ids go on.
  EXPECT_TRUE(s.bench.ask(CancelCommand{JobId(1), ""}).has_value());
  EXPECT_EQ(s.bench.ask(UpdateJobCommand{JobId(1), 5}).error().code,
            ErrorCode::kFailedPrecondition);
  EXPECT_EQ(s.bench.submit(Bench::request("A")), JobId(31));
}

TEST(Archive, TakesAJobThatCameAndEndedInOneBatch) {
  EngineConfig config;
  config.keep_ended_jobs = 0;
  OneShare s(config);
  const JobId job(s.bench.state().counters().next_job);
  s.bench.post(Bench::submission(Bench::request("A")), s.answers.next());
  s.bench.post(CancelCommand{job, ""}, s.answers.next());
  s.bench.run();
  EXPECT_TRUE(s.answers.at(0).has_value());
  EXPECT_TRUE(s.answers.at(1).has_value());
  EXPECT_EQ(s.bench.store.archived(), 1u);
  EXPECT_EQ(s.difference(), "");
}

TEST(Draining, AnswersWhatIsQueuedAndRefusesTheRest) {
  OneShare s;
  bool drained = false;
  s.bench.post(Bench::submission(Bench::request("A")), s.answers.next());
  s.bench.engine().drain([&drained] { drained = true; });
  s.bench.post(Bench::submission(Bench::request("A")), s.answers.next());
  s.bench.run();
  EXPECT_TRUE(drained);
  EXPECT_TRUE(s.answers.at(0).has_value());
  EXPECT_FALSE(s.answers.at(1).has_value());
}

/// Eight callers whose commit takes 4 ms, while four others come.
struct SlowDisk : OneShare {
  SlowDisk() {
    submit(8);
    bench.run_one();  // From here on the batch is due.
    submit(4);
    bench.run_to_the_next_commit();
    batches = bench.engine().stats().batches;
    bench.advance(Duration(4));
  }
  void submit(int jobs) {
    for (int i = 0; i < jobs; ++i) {
      bench.post(Bench::submission(Bench::request("A")), answers.next());
    }
  }
  [[nodiscard]] std::uint64_t new_batches() { return bench.engine().stats().batches - batches; }
  std::uint64_t batches = 0;
};

TEST(SlowDisk, WhoWasAnsweredSharesTheNextCommitWithWhoWaited) {
  SlowDisk s;
  EXPECT_TRUE(s.answers.got.at(7).has_value());
  EXPECT_FALSE(s.answers.got.at(8).has_value());
  const auto before = s.new_batches();
  s.submit(8);
  s.bench.run_to_the_next_commit();
  s.bench.run();
  EXPECT_EQ(s.new_batches(), before + 1);
  EXPECT_TRUE(s.answers.got.at(19).has_value());
}

TEST(SlowDisk, NobodyWaitsLongForCallersWhoDoNotComeBack) {
  SlowDisk s;
  EXPECT_FALSE(s.answers.got.at(11).has_value());
  s.bench.advance(Duration(1));
  EXPECT_TRUE(s.answers.got.at(11).has_value());
}

TEST(Queueing, IsBounded) {
  EngineConfig config;
  config.max_queued_commands = 3;
  OneShare s(config);
  for (int i = 0; i < 4; ++i) {
    s.bench.post(Bench::submission(Bench::request("A")), s.answers.next());
  }
  s.bench.run();
  EXPECT_TRUE(s.answers.at(2).has_value());
  ASSERT_FALSE(s.answers.at(3).has_value());
  EXPECT_EQ(s.answers.at(3).error().code, ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace gpuq::sim_test
