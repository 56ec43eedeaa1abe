// `gpuq cancel` in every state of a job.
#include <gmock/gmock.h>

#include <csignal>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

using testing::HasSubstr;

class CancelTest : public ClusterTest {
 protected:
  void start(int nodes = 1) {
    cluster_.start(nodes);
    cluster_.apply(one_share_policy(nodes));
  }
  std::int64_t submit(const std::string& name, int priority, const std::string& script,
                      Words more = {}) {
    Words options = {"--name",  name,   "--queue",    "q",
                     "--share", "team", "--priority", std::to_string(priority),
                     "--unit",  "gpu"};
    options.insert(options.end(), more.begin(), more.end());
    return cluster_.submit_script(options, script);
  }
  /// Cancelled, and it stays so when it is asked for again.
  void expect_cancelled(std::int64_t id) {
    EXPECT_TRUE(cluster_.reaches(id, v1::JOB_STATE_FAILED));
    const auto job = cluster_.job(id);
    EXPECT_TRUE(job.is_terminated());
    EXPECT_FALSE(job.has_booking());
    cluster_.cancel(id);
    EXPECT_EQ(cluster_.job(id).SerializeAsString(), job.SerializeAsString());
  }
  void signal_agent(const std::string& node, int number) {
    for (const pid_t pid : processes_with("--node-name")) {
      if (slurp("/proc/" + std::to_string(pid) + "/cmdline").find(cluster_.root() + "/" + node) !=
          std::string::npos) {
        ::kill(pid, number);
      }
    }
  }
};

TEST_F(CancelTest, Runnable) {
  start();
  const auto first = submit("first", 0, kPolite);
  ASSERT_TRUE(cluster_.reaches(first, v1::JOB_STATE_RUNNING));
  const auto second = submit("second", 0, "touch ran");
  ASSERT_TRUE(cluster_.reaches(second, v1::JOB_STATE_RUNNABLE));
  cluster_.cancel(second);
  expect_cancelled(second);
  EXPECT_EQ(cluster_.job(second).attempt_count(), 0);
  EXPECT_EQ(cluster_.job(first).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(CancelTest, RunningWithItsReason) {
  start();
  const auto id = submit("r", 0, kPolite);
  ASSERT_TRUE(cluster_.has_line("marks", "r up"));
  const Output output =
      cluster_.gpuq({"cancel", std::to_string(id), "--wait", "--reason", "wrong data"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(cluster_.job(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(cluster_.job(id).status_reason(), HasSubstr("wrong data"));
  EXPECT_TRUE(cluster_.has_line("marks", "r saved"));
  expect_cancelled(id);
  const auto next = submit("next", 0, "true");
  EXPECT_TRUE(cluster_.reaches(next, v1::JOB_STATE_SUCCEEDED));
}

TEST_F(CancelTest, BookedFreesTheBooking) {
  start();
  const Gate gate(cluster_, "gate");
  const auto victim = submit("victim", 0, stubborn_until("gate"), {"--grace", "5m"});
  ASSERT_TRUE(cluster_.has_line("marks", "victim up"));
  const auto winner = submit("winner", 5, "touch ran");
  ASSERT_TRUE(cluster_.waits_for(winner, "WAITING_FOR_PREEMPTED_CAPACITY"));
  EXPECT_TRUE(cluster_.job(winner).has_booking());
  cluster_.cancel(winner);
  expect_cancelled(winner);
  gate.open();
  // The victim was told to stop, so its exit is the preemption and it runs again.
  EXPECT_TRUE(eventually([&] { return cluster_.job(victim).attempt_count() == 2; }));
  EXPECT_TRUE(cluster_.read("ran").empty());
}

TEST_F(CancelTest, BeingStopped) {
  start();
  const Gate gate(cluster_, "gate");
  const auto victim = submit("victim", 0, stubborn_until("gate"), {"--grace", "5m"});
  ASSERT_TRUE(cluster_.has_line("marks", "victim up"));
  const auto winner = submit("winner", 5, "true");
  ASSERT_TRUE(cluster_.waits_for(winner, "WAITING_FOR_PREEMPTED_CAPACITY"));
  cluster_.cancel(victim);
  gate.open();
  expect_cancelled(victim);
  EXPECT_EQ(cluster_.job(victim).attempt_count(), 1);
  EXPECT_TRUE(cluster_.reaches(winner, v1::JOB_STATE_SUCCEEDED));
}

TEST_F(CancelTest, ScheduledBeforeTheAgentHasHeardOfIt) {
  start();
  signal_agent("n1", SIGSTOP);
  const auto id = submit("s", 0, "touch ran; sleep 1000");
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_SCHEDULED));
  cluster_.cancel(id);
  signal_agent("n1", SIGCONT);
  expect_cancelled(id);
  EXPECT_TRUE(eventually([] { return processes_with("GPUQ_JOB_NAME=s").empty(); }));
}

TEST_F(CancelTest, ScheduledWhileTheAgentIsDead) {
  start();
  cluster_.kill_agent("n1");
  const auto id = submit("s", 0, "touch ran; sleep 1000");
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_SCHEDULED));
  cluster_.cancel(id);
  cluster_.launch_agent("n1");
  expect_cancelled(id);
  EXPECT_TRUE(cluster_.read("ran").empty());
  const auto next = submit("next", 0, "true");
  EXPECT_TRUE(cluster_.reaches(next, v1::JOB_STATE_SUCCEEDED));
}

TEST_F(CancelTest, StartingAtTheBarrier) {
  start(2);
  signal_agent("n2", SIGSTOP);
  const auto id = submit("gang", 0, "echo $NODE_RANK >> ran; sleep 1000", {"--instances", "2"});
  ASSERT_TRUE(eventually([&] {
    const auto state = cluster_.job(id).state();
    return state == v1::JOB_STATE_STARTING || state == v1::JOB_STATE_SCHEDULED;
  }));
  cluster_.cancel(id);
  signal_agent("n2", SIGCONT);
  expect_cancelled(id);
  EXPECT_TRUE(cluster_.read("ran").empty());
  EXPECT_TRUE(eventually([] { return processes_with("GPUQ_JOB_NAME=gang").empty(); }));
}

TEST_F(CancelTest, EndedStaysAsItEnded) {
  start();
  const auto id = submit("e", 0, "true");
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_SUCCEEDED));
  const auto before = cluster_.job(id).SerializeAsString();
  cluster_.cancel(id);
  cluster_.cancel(id);
  EXPECT_EQ(cluster_.job(id).SerializeAsString(), before);
}

TEST_F(CancelTest, SeveralAndUnknownOnes) {
  start();
  const auto one = submit("one", 0, kPolite);
  const auto two = submit("two", 0, kPolite);
  const Output output = cluster_.gpuq({"cancel", std::to_string(one), "9999", std::to_string(two)});
  EXPECT_EQ(output.code, 3);
  EXPECT_EQ(lines_of(output.err).size(), 1U) << output.err;
  EXPECT_TRUE(cluster_.reaches(one, v1::JOB_STATE_FAILED));
  EXPECT_TRUE(cluster_.reaches(two, v1::JOB_STATE_FAILED));
}

}  // namespace
}  // namespace gpuq::e2e
