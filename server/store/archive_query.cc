#include "server/store/archive_query.h"

#include <algorithm>
#include <map>

#include "server/store/fields.h"
#include "server/store/row_reader.h"

namespace gpuq::store {
namespace {

/// Conditions and their values, gathered before the statement is prepared.
class Where {
 public:
  void add(const std::string& condition) {
    text_ += (text_.empty() ? " WHERE " : " AND ") + condition;
  }
  void add(const std::string& condition, std::int64_t value) {
    add(condition);
    numbers_.push_back(value);
  }
  /// `column` is one of `values`. A single one is an equality, which an index can keep in order.
  void add_any(const std::string& column, const std::vector<std::int64_t>& values) {
    if (values.size() == 1) return add(column + " = ?", values.front());
    std::string list;
    for (const std::int64_t value : values) {
      list += list.empty() ? "?" : ", ?";
      numbers_.push_back(value);
    }
    // The plus keeps the index out: the rows are wanted in the order of their ids.
    add("+" + column + " IN (" + list + ")");
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Binds the numbers and returns the next free index.
  int bind(Statement& statement) const {
    int index = 0;
    for (const std::int64_t number : numbers_) statement.bind(++index, number);
    return index + 1;
  }

 private:
  std::string text_;
  std::vector<std::int64_t> numbers_;
};

std::vector<std::int64_t> ids_named(Connection& db, const char* table, const std::string& name) {
  Statement row(db, std::string("SELECT id FROM ") + table + " WHERE name = ? ORDER BY id");
  row.bind_all(name);
  std::vector<std::int64_t> ids;
  while (row.step()) row.read(ids.emplace_back());
  return ids;
}

template <typename T>
std::vector<std::int64_t> numbers(const std::vector<T>& values) {
  std::vector<std::int64_t> result;
  for (const T& value : values) {
    if constexpr (std::is_enum_v<T>) {
      result.push_back(static_cast<std::int64_t>(value));
    } else {
      result.push_back(value.value);
    }
  }
  return result;
}

void add_id_conditions(const ArchiveQuery& query, Where& where) {
  const bool newest_first = query.order == HistoryOrder::kNewestFirst;
  if (!query.jobs.empty()) {
    // Here the index is wanted: a few rows out of many.
    std::string list;
    for (const JobId job : query.jobs) {
      list += (list.empty() ? "" : ", ") + std::to_string(job.value);
    }
    where.add("id IN (" + list + ")");
  }
  if (!query.members) {
    where.add(
        "NOT EXISTS (SELECT 1 FROM job_array AS a WHERE a.id = (SELECT max(id) FROM job_array"
        " WHERE id < archived_job.id) AND archived_job.id <= a.id + 1 + (a.last_index -"
        " a.first_index) / a.step)");
  }
  if (query.first.valid()) where.add("id >= ?", query.first.value);
  if (query.last.valid()) where.add("id <= ?", query.last.value);
  if (query.cursor.valid()) where.add(newest_first ? "id < ?" : "id > ?", query.cursor.value);
}

Where conditions(Connection& db, const ArchiveQuery& query) {
  Where where;
  if (!query.queue_name.empty()) {
    where.add_any("queue", ids_named(db, "job_queue", query.queue_name));
  }
  if (!query.share_name.empty()) {
    where.add_any("share", ids_named(db, "quota_share", query.share_name));
  }
  if (!query.states.empty()) where.add_any("state", numbers(query.states));
  add_id_conditions(query, where);
  if (query.ended_from != kNoTime) where.add("ended_at >= ?", to_ms(query.ended_from));
  if (query.ended_until != kNever) where.add("ended_at < ?", to_ms(query.ended_until));
  if (!query.user.empty()) where.add("user = ?");
  if (!query.name_glob.empty()) where.add("name GLOB ?");
  return where;
}

/// Fills in class, queue and share of each job.
void add_related(Connection& db, std::vector<ArchivedJob>& jobs) {
  std::map<ClassId, JobClass> classes;
  std::map<QueueId, std::string> queues;
  std::map<ShareId, std::string> shares;
  Statement queue(db, "SELECT name FROM job_queue WHERE id = ?");
  Statement share(db, "SELECT name FROM quota_share WHERE id = ?");
  const auto name = [](auto& known, Statement& row, auto id) -> const std::string& {
    const auto [entry, is_new] = known.try_emplace(id);
    if (is_new) {
      row.bind_all(id);
      if (row.step()) row.read(entry->second);
      row.reset();
    }
    return entry->second;
  };
  for (ArchivedJob& job : jobs) {
    job.queue_name = name(queues, queue, job.job.queue);
    job.share_name = name(shares, share, job.job.share);
    const auto [entry, is_new] = classes.try_emplace(job.job.cls);
    if (is_new) entry->second = read_classes(db, "c.id = ?", job.job.cls.value).at(0);
    job.cls = entry->second;
    job.array = read_array_of(db, job.job.id);
  }
}

}  // namespace

std::string sqlite_glob(const std::string& pattern) {
  std::string result;
  for (const char c : pattern) {
    if (c == '[') {
      result += "[[]";
    } else {
      result += c;
    }
  }
  return result;
}

std::vector<ArchivedJob> find_archived_jobs(Connection& db, const ArchiveQuery& query) {
  const Where where = conditions(db, query);
  const char* order = query.order == HistoryOrder::kNewestFirst ? " DESC" : " ASC";
  const std::int32_t limit = std::clamp(query.limit, 1, kMaxHistoryRows);
  Statement row(db, std::string("SELECT ") + kJobColumns + " FROM archived_job" + where.text() +
                        " ORDER BY id" + order + " LIMIT " + std::to_string(limit));
  const std::string glob = sqlite_glob(query.name_glob);
  int index = where.bind(row);
  if (!query.user.empty()) row.bind(index++, query.user);
  if (!query.name_glob.empty()) row.bind(index++, glob);
  std::vector<ArchivedJob> jobs;
  while (row.step()) job_fields(jobs.emplace_back().job, reads(row));
  add_related(db, jobs);
  return jobs;
}

}  // namespace gpuq::store
