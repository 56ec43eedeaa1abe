// The store beside what the disk and bare SQLite can do: commits of submitted jobs, of state
// changes, and loading a million jobs.
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "server/store/sqlite_store.h"
#include "tests/bench/bench_table.h"

namespace gpuq::store {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Runs tasks where they are posted: the store's writer thread.
class InlineExecutor final : public Executor {
 public:
  void post(Task task) override { task(); }
  void call_at(Time, Task) override { GPUQ_CHECK(false); }
};

std::string make_directory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "gpuq-bench-XXXXXX").string();
  GPUQ_CHECK(::mkdtemp(pattern.data()) != nullptr);
  return pattern;
}

/// Appends of 4 KiB, each synced, a second.
double raw_syncs(const std::string& dir) {
  constexpr int kRounds = 1000;
  const int fd = ::open((dir + "/raw").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  GPUQ_CHECK(fd >= 0);
  const std::string block(4096, 'x');
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kRounds; ++i) {
      GPUQ_CHECK(::write(fd, block.data(), block.size()) == static_cast<ssize_t>(block.size()));
      GPUQ_CHECK(::fdatasync(fd) == 0);
    }
  });
  ::close(fd);
  return kRounds / seconds;
}

void check_sql(sqlite3* db, const char* sql) {
  GPUQ_CHECK(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
}

/// Rows of one narrow table with a blob of `kSpecBytes`, a second, `per_commit` in a transaction.
constexpr int kSpecBytes = 400;

double bare_sqlite(const std::string& dir, int rows, int per_commit) {
  sqlite3* db = nullptr;
  GPUQ_CHECK(sqlite3_open((dir + "/bare.db").c_str(), &db) == SQLITE_OK);
  check_sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  check_sql(db,
            "DROP TABLE IF EXISTS job; CREATE TABLE job (id INTEGER PRIMARY KEY, a INTEGER,"
            " b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER, name TEXT, user TEXT,"
            " spec BLOB) STRICT");
  sqlite3_stmt* insert = nullptr;
  constexpr const char* kInsert = "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
  GPUQ_CHECK(sqlite3_prepare_v2(db, kInsert, -1, &insert, nullptr) == SQLITE_OK);
  const std::string spec(kSpecBytes, 's');
  const double seconds = seconds_of([&] {
    for (int row = 0; row < rows; ++row) {
      if (row % per_commit == 0) check_sql(db, "BEGIN IMMEDIATE");
      sqlite3_bind_int64(insert, 1, row + 1);
      for (int column = 2; column <= 7; ++column) sqlite3_bind_int64(insert, column, row);
      sqlite3_bind_text(insert, 8, "train", -1, SQLITE_STATIC);
      sqlite3_bind_text(insert, 9, "alice", -1, SQLITE_STATIC);
      sqlite3_bind_blob(insert, 10, spec.data(), kSpecBytes, SQLITE_STATIC);
      GPUQ_CHECK(sqlite3_step(insert) == SQLITE_DONE);
      sqlite3_reset(insert);
      if ((row + 1) % per_commit == 0) check_sql(db, "COMMIT");
    }
  });
  sqlite3_finalize(insert);
  sqlite3_close(db);
  return rows / seconds;
}

class StoreBench {
 public:
  explicit StoreBench(const std::string& dir) : dir_(dir) { open(); }

  void open() {
    store_.reset();
    auto opened = SqliteStore::open(dir_ + "/data", executor_);
    GPUQ_CHECK_MSG(opened, opened ? "" : opened.error().message);
    store_ = std::move(*opened);
    load();
  }
  void load() {
    auto loaded = store_->load(true);
    GPUQ_CHECK_MSG(loaded, loaded ? "" : loaded.error().message);
    state_ = std::move(*loaded);
  }
  void set_up() {
    CommitBatch batch = new_batch();
    PolicyTables& tables = batch.rows.policy.emplace();
    Queue queue;
    queue.id = QueueId(1);
    queue.def.name = kDefaultName;
    tables.queues.push_back(queue);
    Unit unit;
    unit.id = UnitId(2);
    unit.def.name = "gpu";
    tables.units.push_back(unit);
    JobClass cls;
    cls.id = ClassId(1);
    cls.units = {{unit.id, Amount::units(1)}};
    batch.rows.classes.push_back(cls);
    Node node;
    node.id = NodeId(1);
    batch.rows.nodes.push_back(node);
    commit(std::move(batch));
  }
  /// Jobs submitted a second: job, spec and event each.
  double submissions(int jobs, int per_commit) {
    return jobs / seconds_of([&] {
             for (int done = 0; done < jobs; done += per_commit) {
               CommitBatch batch = new_batch();
               for (int i = 0; i < per_commit; ++i) add_job(batch);
               commit(std::move(batch));
             }
           });
  }
  /// Jobs started a second: changed job, new attempt with one device, event.
  double starts(std::int64_t jobs, int per_commit) {
    std::int64_t job = 0;
    return static_cast<double>(jobs) / seconds_of([&] {
             while (job < jobs) {
               CommitBatch batch = new_batch();
               for (int i = 0; i < per_commit; ++i) add_start(batch, JobId(++job));
               commit(std::move(batch));
             }
           });
  }
  [[nodiscard]] std::size_t jobs_loaded() const { return state_.jobs.size(); }

 private:
  [[nodiscard]] CommitBatch new_batch() const {
    CommitBatch batch;
    batch.epoch = state_.identity.epoch;
    batch.time = time_from_ms(next_event_);
    return batch;
  }
  void add_event(CommitBatch& batch, EventType type, JobId job) {
    Event event;
    event.id = EventId(next_event_++);
    event.type = type;
    event.job = job;
    event.actor = "alice";
    batch.events.push_back(std::move(event));
  }
  static Job make_job(JobId id) {
    Job job;
    job.id = id;
    job.cls = ClassId(1);
    job.queue = QueueId(1);
    job.name = "train";
    job.user = "alice";
    return job;
  }
  void add_job(CommitBatch& batch) {
    const JobId id(next_job_++);
    batch.rows.jobs.push_back(make_job(id));
    batch.rows.specs.push_back({id, SharedBytes(std::string(kSpecBytes, 's'))});
    add_event(batch, EventType::kJobSubmitted, id);
  }
  void add_start(CommitBatch& batch, JobId id) {
    Job job = make_job(id);
    job.state = JobState::kScheduled;
    job.attempt = AttemptId(id.value);
    batch.rows.jobs.push_back(job);
    Attempt attempt;
    attempt.id = job.attempt;
    attempt.job = id;
    attempt.instances.resize(1);
    attempt.instances[0].use.node = NodeId(1);
    attempt.instances[0].use.devices.resize(1);
    batch.rows.attempts.push_back(std::move(attempt));
    add_event(batch, EventType::kAttemptScheduled, id);
  }
  void commit(CommitBatch batch) {
    std::promise<Result<void>> answer;
    store_->commit(std::move(batch), [&](Result<void> result) { answer.set_value(result); });
    const Result<void> result = answer.get_future().get();
    GPUQ_CHECK_MSG(result, result ? "" : result.error().message);
  }

  std::string dir_;
  InlineExecutor executor_;
  std::unique_ptr<SqliteStore> store_;
  StoredState state_;
  std::int64_t next_event_ = 1;
  std::int64_t next_job_ = 1;
};

/// Rows of the job table read by bare SQLite, a second.
double bare_scan(const std::string& dir) {
  sqlite3* db = nullptr;
  GPUQ_CHECK(sqlite3_open((dir + "/data/gpuq.db").c_str(), &db) == SQLITE_OK);
  sqlite3_stmt* scan = nullptr;
  GPUQ_CHECK(sqlite3_prepare_v2(db, "SELECT * FROM job ORDER BY id", -1, &scan, nullptr) ==
             SQLITE_OK);
  std::int64_t rows = 0;
  const double seconds = seconds_of([&] {
    while (sqlite3_step(scan) == SQLITE_ROW) rows += sqlite3_column_int64(scan, 0) > 0 ? 1 : 0;
  });
  sqlite3_finalize(scan);
  sqlite3_close(db);
  return static_cast<double>(rows) / seconds;
}

void run(bench::Table& table, const std::string& dir) {
  const double syncs = raw_syncs(dir);
  StoreBench store(dir);
  store.set_up();
  table.row("raw 4 KiB append + fdatasync", syncs, "/s");
  table.row("submissions/s, 1 a commit", store.submissions(2'000, 1), "raw syncs/s", syncs, 0);
  for (const int per_commit : {1, 100, 1000}) {
    const int rows = per_commit == 1 ? 2'000 : 100'000;
    table.row("submissions/s, " + std::to_string(per_commit) + " a commit",
              store.submissions(rows, per_commit), "bare SQLite rows/s",
              bare_sqlite(dir, rows, per_commit), 0.25);
  }
  table.row("starts/s, 1000 a commit", store.starts(50'000, 1000), "bare SQLite rows/s",
            bare_sqlite(dir, 100'000, 1000), 0.1);
  store.submissions(1'000'000 - 204'000, 4'000);
  double seconds = seconds_of([&] { store.load(); });
  const double rows = static_cast<double>(store.jobs_loaded()) / seconds;
  table.row("jobs loaded/s, 1,000,000 stored", rows, "bare SQLite scan rows/s", bare_scan(dir),
            0.2);
}

}  // namespace
}  // namespace gpuq::store

int main(int argc, char** argv) {
  gpuq::bench::Table table(argc, argv);
  const std::string dir = gpuq::store::make_directory();
  gpuq::store::run(table, dir);
  std::filesystem::remove_all(dir);
  return table.finish();
}
