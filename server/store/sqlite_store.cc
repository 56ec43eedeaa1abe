#include "server/store/sqlite_store.h"

#include <sqlite3.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "server/store/data_dir.h"
#include "server/store/db.h"
#include "server/store/migrate.h"
#include "server/store/row_reader.h"
#include "server/store/row_writer.h"

namespace gpuq::store {
namespace {

/// Longer than any checkpoint that shuts writers out.
constexpr std::chrono::milliseconds kWriterPatience{10'000};

/// Random UUID (version 4), from SQLite's generator, which the system's seeds.
std::string make_uuid() {
  std::array<unsigned char, 16> bytes{};
  sqlite3_randomness(static_cast<int>(bytes.size()), bytes.data());
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 0x0f];
  }
  return text;
}

Error disk_full(const std::string& file, const Error& error) {
  return {ErrorCode::kResourceExhausted,
          "the disk of " + file + " is full, free some space (" + error.message + ")"};
}

/// Why the server can not start, for its operator.
Error not_opened(const std::string& file, const Error& error) {
  if (error.code == ErrorCode::kResourceExhausted) return disk_full(file, error);
  if (error.code == ErrorCode::kDataLoss) {
    return {error.code, file +
                            " is damaged or no database of gpuq: put a copy in its place, or "
                            "name another directory (" +
                            error.message + ")"};
  }
  if (error.message.find(file) != std::string::npos) return error;
  return {error.code, "can not open " + file + ": " + error.message};
}

void prepare_database(Connection& db, const std::string& file) {
  db.set_busy_timeout(kWriterPatience);
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = FULL");
  db.exec("PRAGMA wal_autocheckpoint = 0");
  db.exec("PRAGMA foreign_keys = ON");
  db.exec("PRAGMA trusted_schema = OFF");
  db.exec("PRAGMA temp_store = MEMORY");
  db.exec("PRAGMA cache_size = -65536");
  migrate(db, file, {kMigrations, static_cast<std::size_t>(kMigrationCount)});
  db.run(
      "INSERT INTO meta (id, store_id, epoch, last_time, next_job, next_attempt, next_event,"
      " next_class, next_preemption, next_node, policy_next_id, policy_builtin)"
      " VALUES (1, ?, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1) ON CONFLICT DO NOTHING",
      make_uuid());
}

}  // namespace

/// Everything on the writer thread but construction and posting.
class SqliteStore::Impl {
 public:
  Impl(DataDir dir, Executor& executor, const StoreOptions& options)
      : dir_(std::move(dir)),
        executor_(executor),
        db_(dir_.database_file(), Access::kReadWrite, options.vfs) {
    prepare_database(db_, dir_.database_file());
    dir_.ensure_reserve();
    if (auto in_place = dir_.check_in_place(); !in_place) throw Failure{in_place.error()};
    rows_.emplace(db_);
    settle_.emplace(db_, "UPDATE meta SET probes = probes + 1 WHERE id = 1");
    if (options.background_checkpoints) {
      checkpointer_.emplace(dir_.database_file(), options.vfs, options.checkpoint,
                            [this] { ensure_reserve(); });
    }
    thread_ = std::thread([this] { loop(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

  /// Posts `done` with `result` to the engine's thread.
  void answer(std::function<void(Result<void>)> done, Result<void> result) {
    executor_.post([done = std::move(done), result = std::move(result)] { done(result); });
  }

  Result<void> write(const CommitBatch& batch) {
    Result<void> result = try_write(batch);
    result ? ++commits_ : ++failed_commits_;
    if (checkpointer_) checkpointer_->note_commit();
    if (result || result.error().code == ErrorCode::kAborted) return result;
    after_failure(result.error());
    if (result.error().code != ErrorCode::kResourceExhausted) return result;
    return disk_full(dir_.database_file(), result.error());
  }

  Result<void> write_probe() {
    try {
      settle_->run();
      return {};
    } catch (const Failure& failure) {
      return failure.error;
    }
  }

  Result<StoredState> read(bool raise_epoch) {
    try {
      Transaction transaction(db_,
                              raise_epoch ? Transaction::Kind::kWrite : Transaction::Kind::kRead);
      if (raise_epoch) db_.exec("UPDATE meta SET epoch = epoch + 1 WHERE id = 1");
      StoredState state = read_state(db_);
      transaction.commit();
      return state;
    } catch (const Failure& failure) {
      return failure.error;
    }
  }

  [[nodiscard]] StoreStats stats() const {
    return {commits_.load(), failed_commits_.load(),
            checkpointer_ ? checkpointer_->log_bytes() : 0};
  }
  [[nodiscard]] const DataDir& dir() const { return dir_; }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  Result<void> try_write(const CommitBatch& batch) {
    if (auto in_place = dir_.check_in_place(); !in_place) return in_place;
    try {
      Transaction transaction(db_, Transaction::Kind::kWrite);
      if (!rows_->write_meta(batch)) {
        return Error{ErrorCode::kAborted,
                     "another server has taken over the store (the epoch is not " +
                         std::to_string(batch.epoch) + " any more): stop this one"};
      }
      rows_->write(batch.rows);
      rows_->write(batch.events);
      transaction.commit();
      return {};
    } catch (const Failure& failure) {
      return failure.error;
    }
  }

  void after_failure(const Error& error) {
    if (error.code == ErrorCode::kResourceExhausted) {
      const std::lock_guard lock(reserve_mutex_);
      dir_.release_reserve();
    }
    static_cast<void>(write_probe());
  }

  void ensure_reserve() {
    const std::lock_guard lock(reserve_mutex_);
    dir_.ensure_reserve();
  }

  DataDir dir_;
  Executor& executor_;
  Connection db_;
  std::optional<RowWriter> rows_;
  std::optional<Statement> settle_;
  std::mutex reserve_mutex_;
  std::optional<Checkpointer> checkpointer_;
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::uint64_t> failed_commits_{0};

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::thread thread_;
};

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& dir, Executor& executor,
                                                       StoreOptions options) {
  auto data_dir = DataDir::open(dir, options.reserve_bytes);
  if (!data_dir) return data_dir.error();
  const std::string file = data_dir->database_file();
  try {
    auto impl = std::make_unique<Impl>(std::move(*data_dir), executor, options);
    return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(impl)));
  } catch (const Failure& failure) {
    return not_opened(file, failure.error);
  }
}

SqliteStore::SqliteStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SqliteStore::~SqliteStore() = default;

Result<StoredState> SqliteStore::load(bool raise_epoch) {
  std::mutex mutex;
  std::condition_variable ready;
  std::optional<Result<StoredState>> result;
  impl_->post([&] {
    auto loaded = impl_->read(raise_epoch);
    const std::lock_guard lock(mutex);
    result = std::move(loaded);
    ready.notify_one();
  });
  std::unique_lock lock(mutex);
  ready.wait(lock, [&] { return result.has_value(); });
  return std::move(*result);
}

void SqliteStore::commit(CommitBatch batch, std::function<void(Result<void>)> done) {
  impl_->post([impl = impl_.get(), batch = std::move(batch), done = std::move(done)]() mutable {
    impl->answer(std::move(done), impl->write(batch));
  });
}

void SqliteStore::probe(std::function<void(Result<void>)> done) {
  impl_->post([impl = impl_.get(), done = std::move(done)]() mutable {
    impl->answer(std::move(done), impl->write_probe());
  });
}

StoreStats SqliteStore::stats() const { return impl_->stats(); }

std::string SqliteStore::database_file() const { return impl_->dir().database_file(); }

}  // namespace gpuq::store
