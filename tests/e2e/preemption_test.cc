// Victims of a preemption: those that save and leave, those that do not, and what they leave
// behind.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

class PreemptionTest : public ClusterTest {
 protected:
  void SetUp() override {
    cluster_.start(1);
    cluster_.apply(one_share_policy(1));
  }
  std::int64_t submit(const std::string& name, int priority, const std::string& script,
                      Words more = {}) {
    Words options = {"--name",  name,   "--queue",    "q",
                     "--share", "team", "--priority", std::to_string(priority),
                     "--unit",  "gpu"};
    options.insert(options.end(), more.begin(), more.end());
    return cluster_.submit_script(options, script);
  }
};

TEST_F(PreemptionTest, PoliteVictimRunsAgain) {
  const auto victim = submit(
      "victim", 1,
      "[ $GPUQ_PREEMPTION_COUNT = 1 ] && { cat $GPUQ_CHECKPOINT_DIR/step >> resumed; exit 0; }\n"
      "trap 'cat $GPUQ_STOP_REASON_FILE >> reason; echo 17 > $GPUQ_CHECKPOINT_DIR/step; exit 0' "
      "TERM; echo victim up >> marks; sleep 1000 & wait $!");
  ASSERT_TRUE(cluster_.has_line("marks", "victim up"));
  const auto winner = submit("winner", 2, "true");
  EXPECT_TRUE(cluster_.reaches(winner, v1::JOB_STATE_SUCCEEDED));
  EXPECT_TRUE(cluster_.reaches(victim, v1::JOB_STATE_SUCCEEDED));
  EXPECT_EQ(cluster_.read("reason"), "PREEMPTED\n");
  EXPECT_EQ(cluster_.read("resumed"), "17\n");
  const auto job = cluster_.job(victim);
  ASSERT_EQ(job.attempts_size(), 2);
  EXPECT_EQ(job.attempts(0).state(), v1::ATTEMPT_STATE_PREEMPTED);
  EXPECT_EQ(job.failed_attempt_count(), 0);
  ASSERT_EQ(job.preemption_summary().preempted_attempt_count(), 1);
  const auto& record = job.preemption_summary().recent_preempted_attempts(0);
  EXPECT_EQ(record.preempted_by_job_id(), winner);
  EXPECT_EQ(record.rule(), v1::PREEMPTION_RULE_IN_SHARE);
  EXPECT_GT(record.stopped_at_ms(), 0);
}

TEST_F(PreemptionTest, ExitZeroAfterStopCanCountAsSuccess) {
  const auto victim = submit("victim", 1, kPolite, {"--exit-zero-after-stop", "SUCCEEDED"});
  ASSERT_TRUE(cluster_.has_line("marks", "victim up"));
  const auto winner = submit("winner", 2, "true");
  EXPECT_TRUE(cluster_.reaches(winner, v1::JOB_STATE_SUCCEEDED));
  EXPECT_TRUE(cluster_.reaches(victim, v1::JOB_STATE_SUCCEEDED));
  EXPECT_EQ(cluster_.job(victim).attempt_count(), 1);
}

TEST_F(PreemptionTest, StubbornVictimIsKilledAfterItsGrace) {
  const auto victim = submit("victim", 1, kStubborn, {"--grace", "1s"});
  ASSERT_TRUE(cluster_.has_line("marks", "victim up"));
  const auto winner = submit("winner", 2, kPolite);
  ASSERT_TRUE(cluster_.reaches(winner, v1::JOB_STATE_RUNNING));
  const auto job = cluster_.job(victim);
  EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNABLE);
  ASSERT_EQ(job.attempts_size(), 1);
  EXPECT_EQ(job.attempts(0).state(), v1::ATTEMPT_STATE_PREEMPTED);
  EXPECT_EQ(job.attempts(0).exit_code(), 137);
  EXPECT_GE(job.attempts(0).stopped_at_ms() - job.attempts(0).stopping_at_ms(), 900);
}

TEST_F(PreemptionTest, NothingOfAVictimIsLeft) {
  const std::string mark = "E2E_MARK=" + std::to_string(::getpid());
  const auto victim = submit("victim", 1,
                             "setsid sh -c 'trap \"\" TERM; echo child up >> marks; sleep 1000' &\n"
                             "(setsid setsid sleep 1000 &)\n"
                             "trap 'exit 0' TERM; echo victim up >> marks; sleep 1000 & wait $!",
                             {"--grace", "1s", "--env", mark});
  ASSERT_TRUE(cluster_.has_line("marks", "victim up"));
  ASSERT_TRUE(cluster_.has_line("marks", "child up"));
  ASSERT_GE(processes_with(mark).size(), 3U);
  const auto winner = submit("winner", 2, kPolite);
  ASSERT_TRUE(cluster_.reaches(winner, v1::JOB_STATE_RUNNING));
  EXPECT_TRUE(processes_with(mark).empty());
  EXPECT_EQ(cluster_.job(victim).state(), v1::JOB_STATE_RUNNABLE);
}

TEST_F(PreemptionTest, PreemptionsRunOut) {
  const auto victim = submit("victim", 1, kPolite, {"--preemption-retries", "0"});
  ASSERT_TRUE(cluster_.has_line("marks", "victim up"));
  const auto winner = submit("winner", 2, "true");
  EXPECT_TRUE(cluster_.reaches(winner, v1::JOB_STATE_SUCCEEDED));
  EXPECT_TRUE(cluster_.reaches(victim, v1::JOB_STATE_FAILED));
  EXPECT_EQ(cluster_.gpuq({"wait", std::to_string(victim)}).code, 125);
}

}  // namespace
}  // namespace gpuq::e2e
