#include "server/store/sqlite_reader.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "server/store/archive_query.h"
#include "server/store/db.h"
#include "server/store/fields.h"
#include "server/store/row_reader.h"

namespace gpuq::store {
namespace {

/// Events that one call looks at, so that a filter over a long history stays short.
constexpr int kMaxScannedEvents = 100'000;
constexpr std::chrono::milliseconds kPatience{5'000};

Error not_found(JobId job, const char* what) {
  return {ErrorCode::kNotFound, std::string(what) + " " + std::to_string(job.value) + " not found"};
}

EventId read_first_event(Connection& db) {
  auto first = db.query_int("SELECT min(id) FROM event");
  if (!first) first = db.query_int("SELECT next_event FROM meta WHERE id = 1");
  return EventId(first.value_or(1));
}

/// First event id in [low, high) whose time is not before `time`, else `high`; times rise with ids.
std::int64_t first_not_before(Connection& db, Time time, std::int64_t low, std::int64_t high) {
  Statement row(db, "SELECT at FROM event WHERE id >= ? ORDER BY id LIMIT 1");
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    row.bind_all(middle);
    Time at = kNever;
    if (row.step()) row.read(at);
    row.reset();
    if (at < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

class Filter {
 public:
  explicit Filter(const EventQuery& query)
      : jobs_(query.jobs.begin(), query.jobs.end()), queue_(query.queue), share_(query.share) {}
  [[nodiscard]] bool passes(JobId job, QueueId queue, ShareId share) const {
    return (jobs_.empty() || jobs_.contains(job)) && (!queue_.valid() || queue == queue_) &&
           (!share_.valid() || share == share_);
  }

 private:
  std::set<JobId> jobs_;
  QueueId queue_;
  ShareId share_;
};

EventPage read_events(Connection& db, const EventQuery& query) {
  const Filter filter(query);
  const auto limit = static_cast<std::size_t>(std::clamp(query.limit, 1, kMaxHistoryRows));
  EventPage page;
  page.last = query.after;
  Statement row(db, std::string("SELECT job, queue, share, ") + kEventColumns +
                        " FROM event WHERE id > ? ORDER BY id");
  row.bind_all(query.after);
  int scanned = 0;
  while (row.step()) {
    if (page.events.size() == limit || scanned++ == kMaxScannedEvents) {
      page.more = true;
      break;
    }
    JobId job;
    QueueId queue;
    ShareId share;
    row.read(job, queue, share, page.last);
    if (filter.passes(job, queue, share)) {
      event_fields(page.events.emplace_back(), reads(row, 3));
    }
  }
  return page;
}

/// The member `job` of an archived array that ended without ever having had a record.
std::vector<ArchivedJob> find_dropped_member(Connection& db, JobId job) {
  const auto array = read_array_of(db, job);
  if (!array || !array->has_member(job) || !array->dropped()) return {};
  if (array->position(job) < array->made) return {};
  ArchiveQuery query;
  query.jobs = {array->id};
  std::vector<ArchivedJob> found = find_archived_jobs(db, query);
  for (ArchivedJob& member : found) {
    member.job.id = job;
    member.job.state = JobState::kFailed;
    member.job.ended_at = array->dropped_at;
    member.job.exit_code = -1;
  }
  return found;
}

}  // namespace

/// Connections to lend, one call each.
class SqliteReader::Pool {
 public:
  Pool(const std::string& file, int connections) {
    for (int i = 0; i < std::max(connections, 1); ++i) {
      auto db = std::make_unique<Connection>(file, Access::kReadOnly, "");
      db->set_busy_timeout(kPatience);
      db->exec("PRAGMA trusted_schema = OFF");
      db->query_int("SELECT epoch FROM meta");
      free_.push_back(std::move(db));
    }
  }

  /// Runs `read` in a read transaction on a connection of its own.
  template <typename Read>
  auto run(Read read) -> Result<decltype(read(std::declval<Connection&>()))> {
    std::unique_ptr<Connection> db = take();
    auto result = run_on(*db, read);
    give(std::move(db));
    return result;
  }

 private:
  template <typename Read>
  auto run_on(Connection& db, Read& read) -> Result<decltype(read(db))> {
    try {
      Transaction transaction(db, Transaction::Kind::kRead);
      auto value = read(db);
      transaction.commit();
      return value;
    } catch (const Failure& failure) {
      return failure.error;
    }
  }
  std::unique_ptr<Connection> take() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !free_.empty(); });
    std::unique_ptr<Connection> db = std::move(free_.back());
    free_.pop_back();
    return db;
  }
  void give(std::unique_ptr<Connection> db) {
    {
      const std::lock_guard lock(mutex_);
      free_.push_back(std::move(db));
    }
    returned_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Connection>> free_;
};

Result<std::unique_ptr<SqliteReader>> SqliteReader::open(const std::string& database_file,
                                                         int connections) {
  try {
    auto pool = std::make_unique<Pool>(database_file, connections);
    return std::unique_ptr<SqliteReader>(new SqliteReader(std::move(pool)));
  } catch (const Failure& failure) {
    return failure.error;
  }
}

SqliteReader::SqliteReader(std::unique_ptr<Pool> pool) : pool_(std::move(pool)) {}

SqliteReader::~SqliteReader() = default;

Result<std::string> SqliteReader::spec(JobId job) {
  return pool_->run([job](Connection& db) {
    Statement row(db, "SELECT bytes FROM job_spec WHERE job = ?");
    const auto array = read_array_of(db, job);
    row.bind_all(array ? array->id : job);
    if (!row.step()) throw Failure{not_found(job, "spec of job")};
    std::string bytes;
    row.read(bytes);
    return bytes;
  });
}

Result<ArchivedJob> SqliteReader::archived_job(JobId job) {
  return pool_->run([job](Connection& db) {
    ArchiveQuery query;
    query.jobs = {job};
    std::vector<ArchivedJob> found = find_archived_jobs(db, query);
    if (found.empty()) found = find_dropped_member(db, job);
    if (found.empty()) throw Failure{not_found(job, "job")};
    found.front().attempts = read_attempts(db, "archived_", job);
    found.front().preemptions = read_preemptions(db, "archived_", job);
    return std::move(found.front());
  });
}

Result<std::vector<ArchivedJob>> SqliteReader::archived_jobs(const ArchiveQuery& query) {
  return pool_->run([&query](Connection& db) { return find_archived_jobs(db, query); });
}

Result<HistoryNames> SqliteReader::names() {
  return pool_->run([](Connection& db) {
    HistoryNames names;
    const auto read = [&db](const char* sql, auto& by_id) {
      Statement row(db, sql);
      while (row.step()) {
        typename std::remove_reference_t<decltype(by_id)>::key_type id;
        std::string name;
        row.read(id, name);
        by_id.emplace(id, std::move(name));
      }
    };
    read("SELECT id, name FROM unit ORDER BY id", names.units);
    read("SELECT id, name FROM node ORDER BY id", names.nodes);
    return names;
  });
}

Result<EventPage> SqliteReader::events(const EventQuery& query) {
  return pool_->run([&query](Connection& db) {
    const EventId first = read_first_event(db);
    if (query.after.value < first.value - 1) {
      throw Failure{{ErrorCode::kOutOfRange, "events after " + std::to_string(query.after.value) +
                                                 " are no longer kept; begin at " +
                                                 std::to_string(first.value - 1)}};
    }
    return read_events(db, query);
  });
}

Result<EventId> SqliteReader::first_event() {
  return pool_->run([](Connection& db) { return read_first_event(db); });
}

Result<EventId> SqliteReader::last_event_before(Time time) {
  return pool_->run([time](Connection& db) {
    const std::int64_t first = read_first_event(db).value;
    const std::int64_t end = db.query_int("SELECT max(id) + 1 FROM event").value_or(first);
    return EventId(first_not_before(db, time, first, end) - 1);
  });
}

}  // namespace gpuq::store
