// How jobs end: exit codes, retries, time limits, commands and directories that are not there.
#include <gmock/gmock.h>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

using testing::HasSubstr;

class EndsTest : public ClusterTest {
 protected:
  void SetUp() override { cluster_.start(1); }

  v1::Job ended(std::int64_t id) {
    EXPECT_TRUE(eventually([&] { return cluster_.job(id).stopped_at_ms() != 0; })) << id;
    return cluster_.job(id);
  }
  int waited(std::int64_t id) { return cluster_.gpuq({"wait", std::to_string(id)}).code; }
};

TEST_F(EndsTest, ExitCodeAndSignalOfTheCommand) {
  const auto code = cluster_.submit_script({}, "exit 3");
  const auto killed = cluster_.submit_script({}, "kill -9 $$");
  EXPECT_EQ(waited(code), 3);
  EXPECT_EQ(waited(killed), 137);
  EXPECT_EQ(ended(code).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(ended(killed).final_exit_code(), 137);
}

TEST_F(EndsTest, RetriedUntilItSucceeds) {
  const auto id = cluster_.submit_script({"--retries", "3"},
                                         "echo try >> tries; [ $GPUQ_ATTEMPT = 3 ] || exit 9");
  EXPECT_EQ(waited(id), 0);
  const auto job = ended(id);
  EXPECT_EQ(job.attempt_count(), 3);
  EXPECT_EQ(job.failed_attempt_count(), 2);
  ASSERT_EQ(job.attempts_size(), 3);
  EXPECT_EQ(job.attempts(0).exit_code(), 9);
  EXPECT_EQ(job.attempts(2).state(), v1::ATTEMPT_STATE_SUCCEEDED);
  EXPECT_EQ(cluster_.lines("tries").size(), 3U);
}

TEST_F(EndsTest, AttemptsRunOut) {
  const auto id = cluster_.submit_script({"--retries", "1"}, "echo try >> tries; exit 9");
  EXPECT_EQ(waited(id), 9);
  EXPECT_EQ(ended(id).attempt_count(), 2);
  EXPECT_EQ(cluster_.lines("tries").size(), 2U);
}

TEST_F(EndsTest, OnlyTheExitCodesOfTheRulesAreRetried) {
  const auto id = cluster_.submit_script({"--retries", "5", "--retry-on", "exit:75"},
                                         "[ $GPUQ_ATTEMPT = 1 ] && exit 75; exit 3");
  EXPECT_EQ(waited(id), 3);
  EXPECT_EQ(ended(id).attempt_count(), 2);
}

TEST_F(EndsTest, RulesOfAJobFile) {
  const auto file = cluster_.write("job.yaml",
                                   "name: rules\n"
                                   "command: [sh, -c, \"exit $((40 + $GPUQ_ATTEMPT))\"]\n"
                                   "retry:\n"
                                   "  attempts: 9\n"
                                   "  evaluate_on_exit:\n"
                                   "    - {on_exit_code: \"41\", action: RETRY}\n"
                                   "    - {on_exit_code: \"4*\", action: EXIT}\n");
  const Output submitted = cluster_.gpuq({"submit", "-f", file, "--wait"});
  EXPECT_EQ(submitted.code, 42) << submitted.err;
  EXPECT_EQ(ended(std::atoll(submitted.out.c_str())).attempt_count(), 2);
}

TEST_F(EndsTest, TimeLimit) {
  const auto id = cluster_.submit_script(
      {"--timeout", "1s", "--retries", "3", "--grace", "30s"},
      "trap 'cat $GPUQ_STOP_REASON_FILE >> reason; exit 0' TERM; sleep 1000 & wait $!");
  EXPECT_EQ(waited(id), 124);
  const auto job = ended(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  ASSERT_EQ(job.attempts_size(), 1) << job.Utf8DebugString();
  EXPECT_EQ(job.attempts(0).state(), v1::ATTEMPT_STATE_TIMED_OUT);
  EXPECT_EQ(cluster_.read("reason"), "TIMEOUT\n");
}

TEST_F(EndsTest, CommandNotFound) {
  const auto id = cluster_.submit({}, {"no-such-program-here", "x"});
  EXPECT_EQ(waited(id), 127);
  EXPECT_THAT(ended(id).status_reason(), HasSubstr("no-such-program-here"));
}

TEST_F(EndsTest, CommandThatIsNotExecutable) {
  const auto file = cluster_.write("text", "hello\n");
  const auto id = cluster_.submit({}, {file});
  EXPECT_EQ(waited(id), 126);
  EXPECT_THAT(ended(id).status_reason(), HasSubstr("text"));
}

TEST_F(EndsTest, WorkingDirectoryThatIsNotThere) {
  const auto id = cluster_.submit({"--workdir", "/no/such/folder"}, {"true"});
  EXPECT_NE(waited(id), 0);
  EXPECT_THAT(ended(id).status_reason(), HasSubstr("/no/such/folder"));
}

TEST_F(EndsTest, DevicesAndVariablesOfAJob) {
  const auto with = cluster_.submit_script({"--gpus", "1", "--name", "n", "--env", "A=b c"},
                                           "echo $CUDA_VISIBLE_DEVICES,$GPUQ_JOB_NAME,$A,$PWD");
  const auto without = cluster_.submit_script({}, "echo \"[$CUDA_VISIBLE_DEVICES]\"");
  EXPECT_EQ(waited(with), 0);
  EXPECT_EQ(waited(without), 0);
  const std::string text = cluster_.gpuq({"logs", std::to_string(with)}).out;
  EXPECT_THAT(text, testing::StartsWith("GPU-"));
  EXPECT_THAT(text, testing::EndsWith(",n,b c," + cluster_.work() + "\n"));
  EXPECT_EQ(cluster_.gpuq({"logs", std::to_string(without)}).out, "[]\n");
}

}  // namespace
}  // namespace gpuq::e2e
