// kill -9 of agents and server under running jobs and between an eviction and the victim's exit.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

class CrashTest : public ClusterTest {
 protected:
  /// Instances on the node whose end is on disk.
  int ends_on_disk(const std::string& node) const {
    int count = 0;
    std::error_code none;
    const std::string attempts = cluster_.root() + "/" + node + "/attempts";
    for (const auto& entry : std::filesystem::directory_iterator(attempts, none)) {
      count += std::filesystem::exists(entry.path() / "exit.json") ? 1 : 0;
    }
    return count;
  }
  int waited(std::int64_t id) { return cluster_.gpuq({"wait", std::to_string(id)}).code; }

  /// One job that ends while `down`, one that ends after `up`; both keep their only attempt.
  void expect_jobs_survive(const std::function<void()>& down, const std::function<void()>& up) {
    const Gate early(cluster_, "early");
    const Gate late(cluster_, "late");
    const auto first = cluster_.submit_script({"--name", "first"}, stubborn_until("early", 3));
    const auto second = cluster_.submit_script({"--name", "second"}, stubborn_until("late", 4));
    ASSERT_TRUE(cluster_.has_lines("marks", 2));
    ASSERT_TRUE(cluster_.reaches(first, v1::JOB_STATE_RUNNING));
    ASSERT_TRUE(cluster_.reaches(second, v1::JOB_STATE_RUNNING));
    down();
    early.open();
    ASSERT_TRUE(eventually([&] { return ends_on_disk("n1") == 1; }));
    up();
    EXPECT_EQ(waited(first), 3);
    EXPECT_EQ(cluster_.job(second).state(), v1::JOB_STATE_RUNNING);
    late.open();
    EXPECT_EQ(waited(second), 4);
    EXPECT_EQ(cluster_.job(first).attempt_count(), 1);
    EXPECT_EQ(cluster_.job(second).attempt_count(), 1);
    EXPECT_EQ(cluster_.lines("marks").size(), 4U) << cluster_.read("marks");
    EXPECT_EQ(cluster_.gpuq({"run", "--", "sh", "-c", "exit 5"}).code, 5);
  }
};

TEST_F(CrashTest, JobsSurviveTheAgent) {
  cluster_.start(1);
  expect_jobs_survive([&] { cluster_.kill_agent("n1"); }, [&] { cluster_.start_agent("n1"); });
}

TEST_F(CrashTest, JobsSurviveTheServer) {
  cluster_.start(1);
  expect_jobs_survive([&] { cluster_.kill_server(); }, [&] { cluster_.start_server(); });
}

TEST_F(CrashTest, JobsSurviveBoth) {
  cluster_.start(1);
  expect_jobs_survive(
      [&] {
        cluster_.kill_server();
        cluster_.kill_agent("n1");
      },
      [&] {
        cluster_.start_server();
        cluster_.start_agent("n1");
      });
}

/// Between an eviction and the victim's exit. The winner wants two GPUs: one is free, one awaited.
class EvictionCrashTest : public CrashTest {
 protected:
  void expect_booking_survives(const std::function<void()>& crash) {
    NodeOptions node;
    node.devices = "fake:2xA10G";
    cluster_.start(1, node);
    cluster_.apply(one_share_policy(2));
    const Gate gate(cluster_, "gate");
    const Words where = {"--queue", "q", "--share", "team", "--unit", "gpu"};
    const auto with = [&where](Words words) {
      words.insert(words.begin(), where.begin(), where.end());
      return words;
    };
    const auto victim = cluster_.submit_script(with({"--name", "victim", "--grace", "10m"}),
                                               stubborn_until("gate"));
    ASSERT_TRUE(cluster_.has_line("marks", "victim up"));
    const auto winner = cluster_.submit_script(
        with({"--name", "winner", "--priority", "5", "--count", "2"}), kPolite);
    ASSERT_TRUE(cluster_.waits_for(winner, "WAITING_FOR_PREEMPTED_CAPACITY"));
    const auto booking = cluster_.job(winner).booking();
    const auto explained = cluster_.why(winner).booking();
    ASSERT_EQ(booking.free_milli(), 1000) << booking.Utf8DebugString();
    ASSERT_EQ(booking.awaited_milli(), 1000);
    ASSERT_THAT(booking.victim_job_ids(), testing::ElementsAre(victim));

    crash();
    ASSERT_TRUE(cluster_.waits_for(winner, "WAITING_FOR_PREEMPTED_CAPACITY"));
    EXPECT_EQ(cluster_.job(winner).booking().Utf8DebugString(), booking.Utf8DebugString());
    EXPECT_EQ(cluster_.why(winner).booking().Utf8DebugString(), explained.Utf8DebugString());
    EXPECT_EQ(cluster_.job(victim).state(), v1::JOB_STATE_RUNNING);

    gate.open();
    ASSERT_TRUE(cluster_.reaches(winner, v1::JOB_STATE_RUNNING));
    const auto evicted = cluster_.job(victim);
    EXPECT_EQ(evicted.state(), v1::JOB_STATE_RUNNABLE);
    ASSERT_EQ(evicted.attempts_size(), 1);
    EXPECT_EQ(evicted.attempts(0).state(), v1::ATTEMPT_STATE_PREEMPTED);
    EXPECT_EQ(evicted.preemption_summary().preempted_attempt_count(), 1);
    EXPECT_EQ(cluster_.job(winner).attempt_count(), 1);
  }
};

TEST_F(EvictionCrashTest, OfTheServer) {
  expect_booking_survives([&] {
    cluster_.kill_server();
    cluster_.start_server();
  });
}

TEST_F(EvictionCrashTest, OfTheAgent) {
  expect_booking_survives([&] {
    cluster_.kill_agent("n1");
    cluster_.start_agent("n1");
  });
}

TEST_F(EvictionCrashTest, OfBoth) {
  expect_booking_survives([&] {
    cluster_.kill_agent("n1");
    cluster_.kill_server();
    cluster_.start_server();
    cluster_.start_agent("n1");
  });
}

/// A node that stays away is given up, and its job runs elsewhere.
TEST_F(CrashTest, LostNodeMovesTheJob) {
  const auto config = cluster_.write("gpuqd.yaml",
                                     "agents:\n"
                                     "  heartbeat_interval: 100ms\n"
                                     "  unreachable_after: 1s\n"
                                     "  node_lost_timeout: 2s\n");
  cluster_.start_server({"--config", config});
  cluster_.start_agent("n1");
  const auto id = cluster_.submit_script({"--gpus", "1", "--name", "j"}, kPolite);
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_RUNNING));
  cluster_.start_agent("n2");
  cluster_.kill_agent("n1");
  ASSERT_TRUE(eventually([&] { return cluster_.job(id).attempt_count() == 2; }));
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_RUNNING));
  const auto job = cluster_.job(id);
  EXPECT_EQ(job.attempts(0).state(), v1::ATTEMPT_STATE_LOST);
  EXPECT_EQ(job.attempts(1).instances(0).node_name(), "n2");
  EXPECT_EQ(job.failed_attempt_count(), 0);
  // Back again, the node stops what is no longer its own.
  ASSERT_EQ(cluster_.lines("marks").size(), 2U);
  cluster_.start_agent("n1");
  EXPECT_TRUE(cluster_.has_line("marks", "j saved"));
  EXPECT_EQ(cluster_.job(id).state(), v1::JOB_STATE_RUNNING);
}

}  // namespace
}  // namespace gpuq::e2e
