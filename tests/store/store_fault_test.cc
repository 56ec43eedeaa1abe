// Disks that fail: whichever write or sync of a commit goes wrong, nothing of the batch is stored,
// now or after a crash, and the next commit works.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "server/store/sqlite_store.h"
#include "tests/store/fault_vfs.h"
#include "tests/store/random_rows.h"
#include "tests/store/store_fixture.h"

namespace gpuq::store {
namespace {

StoreOptions fault_options() {
  StoreOptions options;
  options.vfs = kFaultVfs;
  options.background_checkpoints = false;  // Only commits are counted.
  options.reserve_bytes = 64 << 10;
  return options;
}

class StoreFaultTest : public ::testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    register_fault_vfs();
    disarm_fault();
    open();
    ASSERT_TRUE(store_->load(true));
    for (int i = 0; i < 10; ++i) {
      const CommitBatch batch = next();
      expected_.apply(batch);
      ASSERT_TRUE(commit(batch));
    }
  }
  void TearDown() override { disarm_fault(); }

  void open() {
    auto opened = SqliteStore::open(dir_.data(), executor_, fault_options());
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  CommitBatch next() { return generator_.next(expected_); }
  Result<void> commit(CommitBatch batch) {
    return commit_and_wait(*store_, executor_, std::move(batch));
  }
  std::string loaded_difference(Store& store) {
    const auto loaded = store.load(false);
    return loaded ? difference(*loaded, expected_.state()) : loaded.error().message;
  }
  /// What a server would find that starts on the files as they are now, after a crash.
  std::string difference_after_crash() {
    const std::string copy = dir_.path() + "/crashed";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(dir_.data(), copy);
    std::filesystem::remove(copy + "/gpuq.db-shm");
    PumpedExecutor executor;
    const auto opened = SqliteStore::open(copy, executor);
    return opened ? loaded_difference(**opened) : opened.error().message;
  }
  [[nodiscard]] ErrorCode code_of_fault() const {
    return GetParam() == Fault::kDiskFull ? ErrorCode::kResourceExhausted : ErrorCode::kUnavailable;
  }

  TempDir dir_;
  PumpedExecutor executor_;
  std::unique_ptr<SqliteStore> store_;
  BatchGenerator generator_{11};
  ExpectedStore expected_;
};

TEST_P(StoreFaultTest, AnyFailingWriteOfACommitLeavesNothing) {
  const CommitBatch batch = next();
  std::int64_t nth = 1;
  for (;; ++nth) {
    SCOPED_TRACE(nth);
    arm_fault(GetParam(), nth, false);
    const Result<void> result = commit(batch);
    const bool failed = fault_happened();
    disarm_fault();
    if (!failed) {
      ASSERT_TRUE(result) << message_of(result);
      break;
    }
    ASSERT_FALSE(result);
    // A failing sync is an I/O error, also of a full disk.
    EXPECT_TRUE(result.error().code == code_of_fault() ||
                result.error().code == ErrorCode::kUnavailable)
        << message_of(result);
    ASSERT_EQ(loaded_difference(*store_), "");
    ASSERT_EQ(difference_after_crash(), "");
  }
  EXPECT_GT(nth, 5) << "the batch is too small to tell anything";
  expected_.apply(batch);
  EXPECT_EQ(loaded_difference(*store_), "");
  EXPECT_EQ(difference_after_crash(), "");
}

TEST_P(StoreFaultTest, DiskThatStaysBadFailsUntilItIsGoodAgain) {
  const CommitBatch batch = next();
  for (std::int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    arm_fault(GetParam(), nth, true);
    const Result<void> result = commit(batch);
    if (!fault_happened()) {
      disarm_fault();
      ASSERT_TRUE(result);
      break;
    }
    ASSERT_FALSE(result);
    EXPECT_FALSE(probe_and_wait(*store_, executor_));
    EXPECT_FALSE(commit(batch));
    EXPECT_EQ(loaded_difference(*store_), "") << "reading goes on";
    disarm_fault();
    EXPECT_TRUE(probe_and_wait(*store_, executor_));
    ASSERT_EQ(loaded_difference(*store_), "");
    ASSERT_EQ(difference_after_crash(), "");
  }
  expected_.apply(batch);
  EXPECT_EQ(loaded_difference(*store_), "");
}

TEST_P(StoreFaultTest, EpochIsNotRaisedByAFailingLoad) {
  const std::int64_t epoch = store_->load(false)->identity.epoch;
  arm_fault(GetParam(), 1, true);
  EXPECT_FALSE(store_->load(true));
  disarm_fault();
  EXPECT_EQ(store_->load(true)->identity.epoch, epoch + 1);
}

INSTANTIATE_TEST_SUITE_P(Faults, StoreFaultTest,
                         ::testing::Values(Fault::kIoError, Fault::kShortWrite, Fault::kDiskFull),
                         [](const auto& fault) -> std::string {
                           switch (fault.param) {
                             case Fault::kIoError:
                               return "IoError";
                             case Fault::kShortWrite:
                               return "ShortWrite";
                             case Fault::kDiskFull:
                               return "DiskFull";
                           }
                           return "";
                         });

TEST(StoreReserveTest, IsFreedWhenTheDiskIsFull) {
  register_fault_vfs();
  const TempDir dir;
  PumpedExecutor executor;
  auto store = SqliteStore::open(dir.data(), executor, fault_options());
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->load(true));
  const std::string reserve = dir.data() + "/reserve";
  EXPECT_EQ(std::filesystem::file_size(reserve), 64U << 10);
  CommitBatch batch;
  batch.epoch = 1;
  batch.time = time_from_ms(1);  // Something to write.
  arm_fault(Fault::kDiskFull, 1, false);
  const Result<void> result = commit_and_wait(**store, executor, batch);
  disarm_fault();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kResourceExhausted);
  EXPECT_FALSE(std::filesystem::exists(reserve));
  EXPECT_TRUE(commit_and_wait(**store, executor, batch));
}

}  // namespace
}  // namespace gpuq::store
