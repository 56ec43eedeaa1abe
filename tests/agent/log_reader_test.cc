// Reading the output of instances piece by piece.
#include "agent/log_reader.h"

#include "tests/agent/support.h"

namespace gpuq::agent {
namespace {

class LogReaderTest : public ::testing::Test {
 protected:
  LogReaderTest()
      : loop(clock),
        agent(loop, dir.path()),
        reader(*agent.watcher, *agent.instances, [this](LogChunk chunk) {
          chunks.push_back(std::move(chunk));
          loop.post([this] { reader.on_sent(); });
        }) {
    agent.on_change = [this](const InstanceStatus& status) {
      reader.on_change({status.fence.attempt_id, status.instance});
    };
  }

  bool ends(std::uint64_t request) {
    return run_until(loop, [&] {
      for (const auto& chunk : chunks) {
        if (chunk.request_id == request && (chunk.end || !chunk.error.empty())) return true;
      }
      return false;
    });
  }
  std::string text(std::uint64_t request) {
    std::string out;
    for (const auto& chunk : chunks) {
      if (chunk.request_id == request) out += chunk.data;
    }
    return out;
  }
  void run_to_end(const StartOrder& order) {
    agent.instances->start(order);
    ASSERT_TRUE(
        run_until(loop, [&] { return agent.is(order.fence.attempt_id, InstanceState::kExited); }));
  }
  LogRead request(std::uint64_t id, std::int64_t attempt) {
    LogRead read;
    read.request_id = id;
    read.instance = {attempt, 0};
    return read;
  }

  BootClock clock;
  TempDir dir;
  EventLoop loop;
  TestAgent agent;
  std::vector<LogChunk> chunks;
  LogReader reader;
};

TEST_F(LogReaderTest, ReadsStdoutAndStderr) {
  run_to_end(make_order(1, sh("echo out; echo err >&2")));
  auto err = request(2, 1);
  err.stderr_stream = true;
  reader.read(request(1, 1));
  reader.read(err);
  ASSERT_TRUE(ends(1) && ends(2));
  EXPECT_EQ(text(1), "out\n");
  EXPECT_EQ(text(2), "err\n");
  EXPECT_TRUE(chunks.back().instance_ended);
}

TEST_F(LogReaderTest, OffsetsCountFromEitherEnd) {
  run_to_end(make_order(1, sh("printf 0123456789")));
  auto middle = request(1, 1);
  middle.offset = 3;
  middle.max_bytes = 4;
  auto tail = request(2, 1);
  tail.offset = -2;
  auto beyond = request(3, 1);
  beyond.offset = 100;
  reader.read(middle);
  reader.read(tail);
  reader.read(beyond);
  ASSERT_TRUE(ends(1) && ends(2) && ends(3));
  EXPECT_EQ(text(1), "3456");
  EXPECT_EQ(text(2), "89");
  EXPECT_EQ(text(3), "");
}

TEST_F(LogReaderTest, FollowersGetEverythingToTheLastByte) {
  auto follow = request(1, 1);
  follow.follow = true;
  auto second = request(2, 1);
  second.follow = true;
  agent.instances->start(
      make_order(1, sh("for i in 1 2 3 4 5; do echo $i; sleep 0.03; done; printf end")));
  reader.read(follow);
  reader.read(second);
  ASSERT_TRUE(ends(1) && ends(2));
  EXPECT_EQ(text(1), "1\n2\n3\n4\n5\nend");
  EXPECT_EQ(text(2), text(1));
}

TEST_F(LogReaderTest, LongOutputsComeInTurns) {
  run_to_end(make_order(1, sh("head -c 300000 /dev/zero")));
  run_to_end(make_order(2, sh("echo short")));
  reader.read(request(1, 1));
  reader.read(request(2, 2));
  ASSERT_TRUE(ends(1));
  EXPECT_EQ(text(1).size(), 300'000U);
  EXPECT_EQ(text(2), "short\n");
  EXPECT_EQ(chunks[2].request_id, 2U);  // not after the five chunks of the first
}

TEST_F(LogReaderTest, SkipsWhatTheCapDropped) {
  auto order = make_order(1, sh("head -c 200000 /dev/zero | tr '\\0' a"));
  order.log_cap_bytes = 65536;
  run_to_end(order);
  reader.read(request(1, 1));
  ASSERT_TRUE(ends(1));
  EXPECT_GT(chunks.front().offset, 100'000);
  EXPECT_EQ(chunks.front().offset + static_cast<std::int64_t>(text(1).size()), 200'000);
  EXPECT_EQ(text(1).find('\0'), std::string::npos);
}

// Between being forgotten and being handed in, output is on no server yet.
TEST_F(LogReaderTest, ForgottenInstancesAreReadUntilTheyAreRemoved) {
  ASSERT_TRUE(agent.state.set_seen("store-a", 1));
  run_to_end(make_order(1, sh("echo out; echo err >&2")));
  agent.instances->forget({{"store-a", 1, 1}});
  ASSERT_EQ(agent.discarded.size(), 1U);
  auto err = request(1, 1);
  err.stderr_stream = true;
  err.follow = true;
  reader.read(err);
  ASSERT_TRUE(ends(1));
  EXPECT_EQ(text(1), "err\n");
  EXPECT_TRUE(chunks.back().instance_ended);
  std::filesystem::remove_all(agent.discarded.front());
  reader.read(request(2, 1));
  ASSERT_TRUE(ends(2));
  EXPECT_FALSE(chunks.back().error.empty());
}

TEST_F(LogReaderTest, UnknownInstancesAreErrors) {
  reader.read(request(1, 99));
  ASSERT_TRUE(ends(1));
  EXPECT_EQ(chunks[0].error, "attempt 99 instance 0 is not on this node");
}

TEST_F(LogReaderTest, CancelledRequestsGetNothingMore) {
  agent.instances->start(make_order(1, sh("echo a; sleep 0.2; echo b")));
  auto follow = request(1, 1);
  follow.follow = true;
  reader.read(follow);
  ASSERT_TRUE(run_until(loop, [&] { return text(1) == "a\n"; }));
  reader.cancel(1);
  ASSERT_TRUE(run_until(loop, [&] { return agent.is(1, InstanceState::kExited); }));
  EXPECT_EQ(text(1), "a\n");
}

}  // namespace
}  // namespace gpuq::agent
