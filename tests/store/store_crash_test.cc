// kill -9 in the middle of committing: what was acknowledged is there, and every batch whole or
// not.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

#include "server/store/sqlite_store.h"
#include "tests/store/random_rows.h"
#include "tests/store/store_fixture.h"

namespace gpuq::store {
namespace {

constexpr std::uint64_t kSeed = 5;

/// Commits random batches for ever and writes a byte for each acknowledgement. Never returns.
[[noreturn]] void commit_until_killed(const std::string& dir, int acknowledge) {
  PumpedExecutor executor;
  auto store = SqliteStore::open(dir, executor);
  if (!store || !(*store)->load(true)) _exit(1);
  BatchGenerator generator(kSeed);
  ExpectedStore expected;
  for (;;) {
    CommitBatch batch = generator.next(expected);
    expected.apply(batch);
    if (!commit_and_wait(**store, executor, std::move(batch))) _exit(2);
    if (::write(acknowledge, "a", 1) != 1) _exit(3);
  }
}

/// Kills the committing process after about `enough` acknowledgements and returns how many there
/// were.
std::int64_t run_and_kill(const std::string& dir, std::int64_t enough) {
  std::array<int, 2> pipe_ends{};
  GPUQ_CHECK(::pipe(pipe_ends.data()) == 0);
  const pid_t child = ::fork();
  GPUQ_CHECK(child >= 0);
  if (child == 0) commit_until_killed(dir, pipe_ends[1]);
  ::close(pipe_ends[1]);
  std::array<char, 256> bytes{};
  std::int64_t acknowledged = 0;
  const auto read_some = [&] {
    const ssize_t size = ::read(pipe_ends[0], bytes.data(), bytes.size());
    acknowledged += size > 0 ? size : 0;
    return size > 0;
  };
  while (acknowledged < enough && read_some()) {
  }
  ::kill(child, SIGKILL);
  while (read_some()) {
  }
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
  return acknowledged;
}

TEST(StoreCrashTest, AcknowledgedBatchesSurviveKill) {
  for (const std::int64_t enough : {1, 3, 10, 20, 30}) {
    SCOPED_TRACE(enough);
    const TempDir dir;
    const std::int64_t acknowledged = run_and_kill(dir.data(), enough);
    ASSERT_GE(acknowledged, enough);

    PumpedExecutor executor;
    const auto store = SqliteStore::open(dir.data(), executor);
    ASSERT_TRUE(store) << store.error().message;
    const auto loaded = (*store)->load(true);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->identity.epoch, 2);

    // The same seed makes the same batches; the one in flight at the kill may be there, too.
    BatchGenerator generator(kSeed);
    ExpectedStore expected;
    for (std::int64_t i = 0; i < acknowledged; ++i) expected.apply(generator.next(expected));
    if (!difference(*loaded, expected.state()).empty()) expected.apply(generator.next(expected));
    EXPECT_EQ(difference(*loaded, expected.state()), "");
  }
}

}  // namespace
}  // namespace gpuq::store
