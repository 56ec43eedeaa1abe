// The loop, files and clocks under the agent and the server.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "common/runtime/config_file.h"
#include "tests/agent/support.h"

namespace gpuq::agent {
namespace {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return time_from_ms(now_ms); }
  std::int64_t now_ms = 1000;
};

TEST(EventLoop, TimersRunInOrderAndCanBeCancelled) {
  const BootClock clock;
  EventLoop loop(clock);
  std::string order;
  const Time now = loop.now();
  loop.call_at(now + Duration(4), [&] { order += "c"; });
  loop.call_at(now + Duration(2), [&] { order += "a"; });
  loop.call_at(now + Duration(2), [&] { order += "b"; });
  const auto cancelled = loop.timer_after(Duration(3), [&] { order += "x"; });
  loop.cancel_timer(cancelled);
  loop.cancel_timer(cancelled);
  loop.timer_after(Duration(8), [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(order, "abc");
}

TEST(EventLoop, TimersFollowTheGivenClock) {
  ManualClock clock;
  EventLoop loop(clock);
  bool ran = false;
  loop.call_at(time_from_ms(1000), [&] { ran = true; });
  for (int i = 0; i < 100 && !ran; ++i) loop.run_ready();
  EXPECT_TRUE(ran);
}

TEST(EventLoop, TimersWaitOnceMoreAfterAStall) {
  ManualClock clock;
  EventLoop at_once(clock);
  EventLoop patient(clock, std::chrono::hours(1));
  EventLoop soon(clock, Duration(1));
  bool ran_at_once = false;
  bool ran_patient = false;
  bool ran_soon = false;
  at_once.timer_after(Duration(1), [&] { ran_at_once = true; });
  patient.timer_after(Duration(1), [&] { ran_patient = true; });
  soon.timer_after(Duration(1), [&] { ran_soon = true; });
  clock.now_ms += 2 * 3'600'000;
  while (!ran_at_once || !ran_soon) {
    at_once.run_ready();
    soon.run_ready();
    patient.run_ready();
  }
  EXPECT_FALSE(ran_patient);
  bool posted = false;
  patient.post([&] { posted = true; });
  patient.run_ready();
  EXPECT_TRUE(posted);
}

TEST(EventLoop, PostsFromOtherThreadsArriveInOrder) {
  const BootClock clock;
  EventLoop loop(clock);
  std::vector<int> seen;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop.post([&seen, i] { seen.push_back(i); });
    loop.post([&] { loop.stop(); });
  });
  loop.run();
  other.join();
  ASSERT_EQ(seen.size(), 1000U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(EventLoop, WatchesDescriptorsUntilUnwatched) {
  const BootClock clock;
  EventLoop loop(clock);
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  int calls = 0;
  EventLoop::WatchId id = 0;
  id = loop.watch_readable(read_end.get(), [&] {
    char byte = 0;
    ASSERT_EQ(::read(read_end.get(), &byte, 1), 1);
    if (++calls == 2) {
      loop.unwatch(id);
      loop.stop();
    }
  });
  ASSERT_EQ(::write(write_end.get(), "xyz", 3), 3);
  loop.run();
  loop.run_ready();
  EXPECT_EQ(calls, 2);
}

TEST(EventLoop, DeliversSignals) {
  const BootClock clock;
  EventLoop loop(clock);
  int got = 0;
  loop.on_signals({SIGUSR2}, [&](int signal) {
    got = signal;
    loop.stop();
  });
  loop.post([] { ::raise(SIGUSR2); });
  loop.run();
  EXPECT_EQ(got, SIGUSR2);
}

TEST(BootClock, StartsAtTheFloorAndDoesNotGoBack) {
  const Time floor = time_from_ms(wall_now_ms() + 3'600'000);
  const BootClock clock(floor);
  const Time first = clock.now();
  EXPECT_GE(first, floor);
  EXPECT_LE(first, floor + std::chrono::minutes(1));
  EXPECT_GE(clock.now(), first);
}

TEST(Files, WriteReplacesAndLeavesNoTemporary) {
  const TempDir dir;
  const std::string path = dir.path() + "/f";
  ASSERT_TRUE(write_file(path, "one").has_value());
  ASSERT_TRUE(write_file(path, "two").has_value());
  EXPECT_EQ(read_file(path).value(), "two");
  EXPECT_FALSE(path_exists(path + ".tmp"));
  const auto failed = write_file(dir.path() + "/none/f", "x");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kNotFound);
}

TEST(Files, LocksExcludeAndEndWithTheirHolder) {
  const TempDir dir;
  const std::string path = dir.path() + "/lock";
  EXPECT_FALSE(is_locked(path));
  {
    auto held = lock_file(path);
    ASSERT_TRUE(held.has_value());
    EXPECT_TRUE(is_locked(path));
    EXPECT_EQ(lock_file(path).error().code, ErrorCode::kFailedPrecondition);
  }
  EXPECT_FALSE(is_locked(path));
}

TEST(ConfigReader, ReadsDurationsAndLists) {
  auto file = ConfigReader::parse("wait: 1h30m\nbare: 90\nlist: [a, b]\n", "x.yaml");
  ASSERT_TRUE(file.has_value());
  Duration wait{0};
  Duration bare{0};
  std::vector<std::string> list;
  file->read("wait", wait, Duration(0), std::chrono::hours(2));
  file->read("bare", bare, Duration(0), std::chrono::hours(2));
  file->read("list", list);
  EXPECT_TRUE(file->finish().has_value());
  EXPECT_EQ(wait, std::chrono::minutes(90));
  EXPECT_EQ(bare, std::chrono::seconds(90));
  EXPECT_EQ(list.size(), 2U);
}

TEST(ConfigReader, RejectsRepeatedKeysAndDocuments) {
  const auto complaint = [](const std::string& text) {
    auto file = ConfigReader::parse(text, "x.yaml");
    if (!file) return file.error().message;
    std::string value;
    file->read("a", value);
    ConfigReader b = file->section("b");
    b.read("c", value);
    const auto done = file->finish();
    return done ? "" : done.error().message;
  };
  EXPECT_EQ(complaint("a: 1\nb: {c: 1}\n"), "");
  EXPECT_EQ(complaint(""), "");
  EXPECT_EQ(complaint("a: 1\na: 2\n"), "x.yaml:2: a: is there twice");
  EXPECT_EQ(complaint("b: {c: 1, c: 2}\n"), "x.yaml:1: b.c: is there twice");
  EXPECT_NE(complaint("a: 1\n---\na: 2\n").find("second document"), std::string::npos);
}

TEST(ConfigReader, RejectsWrongDurations) {
  for (const char* text : {"", "m", "5x", "-3s", "1h30", "99999999d"}) {
    EXPECT_FALSE(parse_config_duration(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace gpuq::agent
