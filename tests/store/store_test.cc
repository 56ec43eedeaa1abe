// The store's promises without faults: what is committed is loaded, also by the next process.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "server/store/sqlite_store.h"
#include "tests/store/random_rows.h"
#include "tests/store/store_fixture.h"

namespace gpuq::store {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  void open(StoreOptions options = {}) {
    auto opened = SqliteStore::open(dir_.data(), executor_, std::move(options));
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  StoredState load(bool raise_epoch = false) {
    auto loaded = store_->load(raise_epoch);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? std::move(*loaded) : StoredState{};
  }
  Result<void> commit(CommitBatch batch) {
    return commit_and_wait(*store_, executor_, std::move(batch));
  }

  TempDir dir_;
  PumpedExecutor executor_;
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(StoreTest, EmptyStoreLoadsEmpty) {
  open();
  EXPECT_EQ(difference(load(), StoredState{}), "");
}

TEST_F(StoreTest, EveryRecordComesBack) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    store_.reset();
    std::filesystem::remove_all(dir_.data());
    open();
    load(true);
    BatchGenerator generator(seed);
    ExpectedStore expected;
    for (int batch = 0; batch < 25; ++batch) {
      CommitBatch next = generator.next(expected);
      expected.apply(next);
      const Result<void> result = commit(std::move(next));
      ASSERT_TRUE(result) << "batch " << batch << ": " << message_of(result);
      ASSERT_EQ(difference(load(), expected.state()), "") << "batch " << batch;
    }
    EXPECT_FALSE(expected.archived.empty());
    store_.reset();
    open();
    EXPECT_EQ(difference(load(), expected.state()), "");
  }
}

TEST_F(StoreTest, IdentityIsMadeOnceAndEpochRisesWithEveryStart) {
  open();
  const StoreIdentity first = load(true).identity;
  EXPECT_EQ(first.store_id.size(), 36U);
  EXPECT_EQ(first.epoch, 1);
  EXPECT_EQ(load(false).identity, first);
  store_.reset();
  open();
  const StoreIdentity second = load(true).identity;
  EXPECT_EQ(second.store_id, first.store_id);
  EXPECT_EQ(second.epoch, 2);
}

TEST_F(StoreTest, CommitOfAnotherEpochIsRefusedWhole) {
  open();
  load(true);
  BatchGenerator generator(7);
  CommitBatch batch = generator.next({});
  batch.epoch = 2;
  const Result<void> result = commit(batch);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kAborted);
  EXPECT_EQ(difference(load(), StoredState{}), "");
  batch.epoch = 1;
  EXPECT_TRUE(commit(batch));
}

TEST_F(StoreTest, TimeAndCountersNeverGoBack) {
  open();
  load(true);
  CommitBatch batch;
  batch.epoch = 1;
  batch.time = time_from_ms(1000);
  batch.counters.next_job = 10;
  ASSERT_TRUE(commit(batch));
  batch.time = time_from_ms(500);
  batch.counters.next_job = 5;
  batch.counters.next_node = 3;
  ASSERT_TRUE(commit(batch));
  const StoredState state = load();
  EXPECT_EQ(state.last_time, time_from_ms(1000));
  EXPECT_EQ(state.counters.next_job, 10);
  EXPECT_EQ(state.counters.next_node, 3);
}

TEST_F(StoreTest, BatchThatContradictsTheStoreIsRefusedWhole) {
  open();
  load(true);
  BatchGenerator generator(3);
  CommitBatch batch = generator.next({});
  batch.rows.archive_jobs.emplace_back(999);
  const Result<void> unknown_job = commit(batch);
  ASSERT_FALSE(unknown_job);
  EXPECT_EQ(unknown_job.error().code, ErrorCode::kInternal);
  EXPECT_NE(unknown_job.error().message.find("999"), std::string::npos);
  batch.rows.archive_jobs.clear();
  batch.rows.classes.clear();
  EXPECT_FALSE(commit(batch));
  EXPECT_EQ(difference(load(), StoredState{}), "");
}

TEST_F(StoreTest, NamePassesFromARemovedRecordToANewOne) {
  open();
  load(true);
  CommitBatch batch;
  batch.epoch = 1;
  const auto queue = [](std::int32_t id, const char* name) {
    Queue record;
    record.id = QueueId(id);
    record.def.name = name;
    return record;
  };
  const auto share = [](std::int32_t id, std::int32_t of_queue) {
    Share record;
    record.id = ShareId(id);
    record.queue = QueueId(of_queue);
    record.def.name = "s";
    return record;
  };
  PolicyTables& tables = batch.rows.policy.emplace();
  tables.queues = {queue(1, "q"), queue(2, "r")};
  tables.shares = {share(3, 1)};
  tables.next_id = 4;
  ASSERT_TRUE(commit(batch));
  tables.queues = {queue(2, "r"), queue(4, "q")};
  tables.shares = {share(5, 4)};
  tables.next_id = 6;
  ASSERT_TRUE(commit(batch));
  EXPECT_EQ(load().policy, tables);
}

TEST_F(StoreTest, ProbeWrites) {
  open();
  EXPECT_TRUE(probe_and_wait(*store_, executor_));
}

TEST_F(StoreTest, SecondServerIsRefused) {
  open();
  const auto second = SqliteStore::open(dir_.data(), executor_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_NE(second.error().message.find(dir_.data()), std::string::npos);
  EXPECT_NE(second.error().message.find("name another directory"), std::string::npos);
  store_.reset();
  open();
}

// What is written into files without a name would be acknowledged and gone.
TEST_F(StoreTest, RemovedOrReplacedDirectoryTakesNothingMore) {
  open();
  load(true);
  BatchGenerator generator(7);
  CommitBatch batch = generator.next({});
  batch.epoch = 1;
  ASSERT_TRUE(commit(batch));
  std::filesystem::rename(dir_.data(), dir_.data() + ".away");
  CommitBatch empty;
  empty.epoch = 1;
  const Result<void> gone = commit(empty);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kAborted);
  EXPECT_NE(gone.error().message.find(dir_.data()), std::string::npos);
  {
    const auto other = SqliteStore::open(dir_.data(), executor_);
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_FALSE(commit(empty));
  }
  std::filesystem::remove_all(dir_.data());
  std::filesystem::rename(dir_.data() + ".away", dir_.data());
  const Result<void> back = commit(empty);
  EXPECT_TRUE(back) << back.error().message;
}

TEST_F(StoreTest, DirectoryIsPrivate) {
  open();
  const auto mode = std::filesystem::status(dir_.data()).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_all);
}

TEST_F(StoreTest, DirectoryThatIsAFileIsRefused) {
  std::ofstream(dir_.data()) << "x";
  const auto opened = SqliteStore::open(dir_.data(), executor_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(StoreTest, FileThatIsNoDatabaseIsRefused) {
  std::filesystem::create_directory(dir_.data());
  std::ofstream(dir_.data() + "/gpuq.db") << std::string(8192, 'x');
  const auto opened = SqliteStore::open(dir_.data(), executor_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kDataLoss);
}

TEST_F(StoreTest, LogIsEmptiedWhenNothingIsWritten) {
  StoreOptions options;
  options.checkpoint.interval = std::chrono::milliseconds(1);
  options.checkpoint.idle_rounds = 2;
  open(options);
  load(true);
  BatchGenerator generator(1);
  ExpectedStore expected;
  for (int batch = 0; batch < 20; ++batch) {
    CommitBatch next = generator.next(expected);
    expected.apply(next);
    ASSERT_TRUE(commit(std::move(next)));
  }
  const std::string log = dir_.data() + "/gpuq.db-wal";
  while (std::filesystem::file_size(log) != 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(difference(load(), expected.state()), "");
}

TEST_F(StoreTest, LogOverItsCapIsEmptiedWhileWriting) {
  StoreOptions options;
  options.checkpoint.interval = std::chrono::milliseconds(1);
  options.checkpoint.max_log_bytes = 64 << 10;
  open(options);
  load(true);
  CommitBatch batch;
  batch.epoch = 1;
  Event event;
  event.detail = std::string(20'000, 'x');
  bool shrank = false;
  std::uintmax_t before = 0;
  for (std::int64_t id = 1; id < 20'000 && !shrank; ++id) {
    event.id = EventId(id);
    batch.events = {event};
    ASSERT_TRUE(commit(batch));
    const std::uintmax_t now = std::filesystem::file_size(dir_.data() + "/gpuq.db-wal");
    shrank = now < before;
    before = now;
  }
  EXPECT_TRUE(shrank);
}

}  // namespace
}  // namespace gpuq::store
