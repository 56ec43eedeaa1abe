// Jobs of several instances over several agents.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GangTest : public ClusterTest {
 protected:
  void SetUp() override { cluster_.start(2); }
};

TEST_F(GangTest, EveryInstanceKnowsItsPlace) {
  const auto id = cluster_.submit_script(
      {"--gpus", "1", "--instances", "2"},
      "echo $NODE_RANK $NNODES $NPROC_PER_NODE $WORLD_SIZE $MASTER_ADDR >> places; "
      "echo $MASTER_PORT >> ports; echo $CUDA_VISIBLE_DEVICES >> gpus; echo out $NODE_RANK");
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_SUCCEEDED));
  Words places = cluster_.lines("places");
  std::sort(places.begin(), places.end());
  EXPECT_THAT(places, ElementsAre("0 2 1 2 127.0.0.1", "1 2 1 2 127.0.0.1"));
  const Words ports = cluster_.lines("ports");
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0], ports[1]);
  EXPECT_GE(std::atoi(ports[0].c_str()), 1024);
  const Words gpus = cluster_.lines("gpus");
  EXPECT_EQ(std::set<std::string>(gpus.begin(), gpus.end()).size(), 2U);

  const auto job = cluster_.job(id);
  ASSERT_EQ(job.attempts_size(), 1);
  ASSERT_EQ(job.attempts(0).instances_size(), 2);
  EXPECT_NE(job.attempts(0).instances(0).node_name(), job.attempts(0).instances(1).node_name());
  const Output second = cluster_.gpuq({"logs", std::to_string(id), "--instance", "1"});
  EXPECT_EQ(second.out, "out 1\n") << second.err;
}

TEST_F(GangTest, NoInstanceRunsBeforeAllArePrepared) {
  const auto pid_of_second = processes_with(cluster_.root() + "/n2");
  ASSERT_FALSE(pid_of_second.empty());
  for (const pid_t pid : pid_of_second) ::kill(pid, SIGSTOP);
  const auto id =
      cluster_.submit_script({"--gpus", "1", "--instances", "2"}, "echo $NODE_RANK >> ran");
  const auto prepared = [&] {
    const std::string attempts = cluster_.root() + "/n1/attempts";
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(attempts, none)) {
      if (std::filesystem::exists(entry.path() / "run.json")) return true;
    }
    return false;
  };
  EXPECT_TRUE(eventually(prepared));
  const auto state = cluster_.job(id).state();
  EXPECT_TRUE(state == v1::JOB_STATE_SCHEDULED || state == v1::JOB_STATE_STARTING) << state;
  EXPECT_TRUE(cluster_.lines("ran").empty());
  for (const pid_t pid : pid_of_second) ::kill(pid, SIGCONT);
  EXPECT_TRUE(cluster_.reaches(id, v1::JOB_STATE_SUCCEEDED));
  EXPECT_EQ(cluster_.lines("ran").size(), 2U);
}

TEST_F(GangTest, OneThatFailsStopsTheOthers) {
  const auto id = cluster_.submit_script(
      {"--gpus", "1", "--instances", "2", "--name", "g"},
      "if [ $NODE_RANK = 1 ]; then while [ ! -e marks ]; do sleep 0.02; done; exit 7; fi; "
      "trap 'cat $GPUQ_STOP_REASON_FILE >> reason; exit 0' TERM; echo up >> marks; "
      "sleep 1000 & wait $!");
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_FAILED));
  const auto job = cluster_.job(id);
  EXPECT_EQ(job.final_exit_code(), 7) << job.Utf8DebugString();
  EXPECT_EQ(job.attempt_count(), 1);
  EXPECT_THAT(cluster_.lines("reason"), ElementsAre("GANG_FAILED"));
  EXPECT_EQ(cluster_.gpuq({"wait", std::to_string(id)}).code, 7);
  EXPECT_TRUE(processes_with("GPUQ_JOB_NAME=g").empty());
}

TEST_F(GangTest, OneThatCannotStartFailsTheAttempt) {
  std::filesystem::create_directories(cluster_.work("there"));
  const auto id = cluster_.submit(
      {"--gpus", "1", "--instances", "2", "--workdir", cluster_.work("nowhere")}, {"touch", "ran"});
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_FAILED));
  EXPECT_THAT(cluster_.job(id).status_reason(), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace gpuq::e2e
