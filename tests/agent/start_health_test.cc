// A node that can not start attempts says so, and a disk that is full stops nothing from ending.
#include "agent/start_health.h"

#include <gmock/gmock.h>
#include <sys/mount.h>

#include <fstream>
#include <limits>

#include "tests/agent/support.h"

namespace gpuq::agent {
namespace {

using ::testing::HasSubstr;

TEST(StartHealth, LowSpaceIsTroubleThatNamesTheDirectory) {
  const TempDir dir;
  EXPECT_EQ(StartHealth(dir.path(), 0).check(0), "");
  StartHealth health(dir.path(), std::numeric_limits<std::int64_t>::max() / 2);
  EXPECT_THAT(health.check(0), HasSubstr(dir.path()));
  EXPECT_THAT(StartHealth(dir.path() + "/none", 0).check(0), HasSubstr("none"));
}

TEST(StartHealth, AFailedStartKeepsOthersAwayForAWhile) {
  const TempDir dir;
  StartHealth health(dir.path(), 0);
  health.failed("cannot execute gpuq-shim", 1'000);
  EXPECT_EQ(health.check(1'000), "cannot execute gpuq-shim");
  EXPECT_EQ(health.check(30'999), "cannot execute gpuq-shim");
  EXPECT_EQ(health.check(31'000), "");
}

/// A small file system under the state directory; only root may mount one.
class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=512k") != 0) {
      GTEST_SKIP() << "no tmpfs can be mounted here";
    }
    mounted_ = true;
    agent = std::make_unique<TestAgent>(loop, dir.path());
  }
  void TearDown() override {
    agent.reset();
    if (mounted_) ::umount2(dir.path().c_str(), MNT_DETACH);
  }

  void fill() {
    std::ofstream filler(filler_path(), std::ios::binary);
    const std::string block(4096, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  [[nodiscard]] std::string filler_path() const { return dir.path() + "/filler"; }
  bool ends(std::int64_t attempt) {
    return run_until(loop, [&] { return is_final(agent->status(attempt).state); });
  }

  BootClock clock;
  TempDir dir;
  EventLoop loop{clock};
  std::unique_ptr<TestAgent> agent;

 private:
  bool mounted_ = false;
};

TEST_F(FullDisk, StopIsCarriedOutAndTheExitKept) {
  agent->instances->start(
      make_order(1, sh("trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done")));
  ASSERT_TRUE(run_until(loop, [&] { return agent->output(1) == "up\n"; }));
  fill();
  agent->instances->stop({{"store-a", 1, 1}, StopReason::kPreempted, 20'000});
  ASSERT_TRUE(ends(1));
  EXPECT_EQ(agent->status(1).exit_code, 5);
  EXPECT_TRUE(agent->status(1).signal_sent_before_exit);
  EXPECT_EQ(agent->status(1).stop_reason, StopReason::kPreempted);
}

TEST_F(FullDisk, AJobThatFilledItEndsWithItsCode) {
  agent->instances->start(make_order(1, sh("head -c 2000000 /dev/zero; exit 9")));
  ASSERT_TRUE(ends(1));
  EXPECT_EQ(agent->status(1).exit_code, 9);
}

TEST_F(FullDisk, AStartIsRefusedAsTheNodesFault) {
  fill();
  const auto status = agent->instances->start(make_order(1, sh("true")));
  EXPECT_EQ(status.state, InstanceState::kRefused);
  EXPECT_THAT(status.status_reason, HasSubstr("No space left"));
  EXPECT_EQ(agent->node_faults.size(), 1U);
  std::filesystem::remove(filler_path());
  agent->instances->start(make_order(2, sh("true")));
  ASSERT_TRUE(ends(2));
  EXPECT_EQ(agent->status(2).exit_code, 0);
}

}  // namespace
}  // namespace gpuq::agent
