#include "server/store/row_reader.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "server/store/compact_list.h"
#include "server/store/fields.h"
#include "server/store/policy_rows.h"

namespace gpuq::store {
namespace {

[[noreturn]] void contradiction(const std::string& what) {
  throw Failure{{ErrorCode::kDataLoss, "store: " + what + "; restore the database from a backup"}};
}

template <typename Record>
void sort_by_id(std::vector<Record>& records) {
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.id < b.id; });
}

/// Unpacks column `column` of the row into `list`.
template <typename List>
void read_list(const Statement& row, int column, List& list) {
  std::string text;
  row.get(column, text);
  if (!unpack(text, list)) contradiction("unreadable list \"" + text.substr(0, 80) + "\"");
}

/// node, devices, cpus, memory_mib, awaited from column `first` on.
void read_use(const Statement& row, int first, InstanceUse& use) {
  row.get(first, use.node);
  read_list(row, first + 1, use.devices);
  row.get(first + 2, use.cpus);
  row.get(first + 3, use.memory_mib);
  read_list(row, first + 4, use.awaited);
}

void read_meta(Connection& db, StoredState& state) {
  Statement row(db,
                "SELECT store_id, epoch, last_time, next_job, next_attempt, next_event, next_class,"
                " next_preemption, next_node FROM meta WHERE id = 1");
  if (!row.step()) contradiction("the row of table meta is missing");
  Counters& next = state.counters;
  row.read(state.identity.store_id, state.identity.epoch, state.last_time, next.next_job,
           next.next_attempt, next.next_event, next.next_class, next.next_preemption,
           next.next_node);
}

std::vector<Node> read_nodes(Connection& db) {
  std::vector<Node> nodes;
  Statement row(db,
                std::string("SELECT ") + kNodeColumns + " FROM node WHERE removed = 0 ORDER BY id");
  while (row.step()) node_fields(nodes.emplace_back(), reads(row));
  Statement label(db, "SELECT name, value FROM node_label WHERE node = ? ORDER BY name");
  Statement device(db, std::string("SELECT ") + kDeviceColumns +
                           " FROM device WHERE node = ? ORDER BY position");
  for (Node& node : nodes) {
    label.bind_all(node.id);
    while (label.step()) {
      std::pair<std::string, std::string> entry;
      label.read(entry.first, entry.second);
      node.labels.insert(std::move(entry));
    }
    device.bind_all(node.id);
    while (device.step()) device_fields(node.devices.emplace_back(), reads(device));
  }
  return nodes;
}

std::vector<Job> read_jobs(Connection& db) {
  std::vector<Job> jobs;
  jobs.reserve(static_cast<std::size_t>(db.query_int("SELECT count(*) FROM job").value_or(0)));
  Statement row(db,
                std::string("SELECT ") + kJobColumns + kLiveJobColumns + " FROM job ORDER BY id");
  while (row.step()) {
    Job& job = jobs.emplace_back();
    job_fields(job, reads(row));
    read_list(row, kJobColumnCount, job.depends_on);
    row.get(kJobColumnCount + 1, job.over_array_limit);
  }
  return jobs;
}

std::vector<JobArray> read_arrays(Connection& db) {
  std::vector<JobArray> arrays;
  Statement row(db, std::string("SELECT ") + kArrayColumns +
                        " FROM job_array WHERE id IN (SELECT id FROM job) ORDER BY id");
  while (row.step()) array_fields(arrays.emplace_back(), reads(row));
  return arrays;
}

std::vector<Booking> read_bookings(Connection& db) {
  std::vector<Booking> bookings;
  Statement row(db, std::string("SELECT ") + kBookingColumns + " FROM booking ORDER BY job");
  while (row.step()) {
    Booking& booking = bookings.emplace_back();
    row.read(booking.job, booking.share, booking.unit, booking.demand, booking.lacking,
             booking.made_at);
    read_list(row, 6, booking.victims);
  }
  Statement part(db, std::string("SELECT ") + kBookingPartColumns +
                         " FROM booking_part ORDER BY job, instance");
  auto booking = bookings.begin();
  while (part.step()) {
    JobId job;
    part.read(job);
    while (booking != bookings.end() && booking->job < job) ++booking;
    if (booking == bookings.end() || booking->job != job) contradiction("a part of no booking");
    read_use(part, 2, booking->instances.emplace_back());
  }
  return bookings;
}

std::vector<TokenRecord> read_tokens(Connection& db) {
  std::vector<TokenRecord> tokens;
  Statement row(db, std::string("SELECT ") + kTokenColumns + " FROM client_token ORDER BY token");
  while (row.step()) {
    TokenRecord& token = tokens.emplace_back();
    row.read(token.key, token.body_hash, token.expires);
    read_list(row, 3, token.jobs);
  }
  return tokens;
}

std::vector<UsageRecord> read_usage(Connection& db) {
  std::vector<UsageRecord> records;
  Statement row(
      db, std::string("SELECT ") + kUsageColumns + " FROM usage ORDER BY share, kind, unit, name");
  while (row.step()) usage_fields(records.emplace_back(), reads(row));
  return records;
}

/// "SELECT columns FROM prefixtable [WHERE job = ?] ORDER BY order".
std::string of_job(std::string_view columns, std::string_view prefix, std::string_view table,
                   JobId job, std::string_view order) {
  std::string sql = "SELECT ";
  sql.append(columns).append(" FROM ").append(prefix).append(table);
  if (job.valid()) sql += " WHERE job = ?";
  return sql.append(" ORDER BY ").append(order);
}

Statement select_of_job(Connection& db, JobId job, const std::string& sql) {
  Statement statement(db, sql);
  if (job.valid()) statement.bind_all(job);
  return statement;
}

}  // namespace

std::optional<JobArray> read_array_of(Connection& db, JobId job) {
  Statement row(db, std::string("SELECT ") + kArrayColumns +
                        " FROM job_array WHERE id <= ? ORDER BY id DESC LIMIT 1");
  row.bind_all(job);
  JobArray array;
  if (!row.step()) return std::nullopt;
  array_fields(array, reads(row));
  if (array.id != job && !array.has_member(job)) return std::nullopt;
  return array;
}

std::vector<JobClass> read_classes(Connection& db, std::string_view condition,
                                   std::int64_t parameter) {
  const std::string where(condition);
  const auto select = [&](const std::string& sql) {
    Statement statement(db, sql);
    if (where.find('?') != std::string::npos) statement.bind_all(parameter);
    return statement;
  };
  std::vector<JobClass> classes;
  Statement row = select(std::string("SELECT ") + kClassColumns + " FROM job_class AS c WHERE " +
                         where + " ORDER BY id");
  while (row.step()) class_fields(classes.emplace_back(), reads(row));

  const std::string join = " AS x ON x.class = c.id WHERE " + where + " ORDER BY c.id, x.position";
  auto cls = classes.begin();
  const auto owner = [&](const Statement& child) -> JobClass& {
    ClassId id;
    child.read(id);
    while (cls->id != id) ++cls;
    return *cls;
  };
  Statement unit =
      select("SELECT c.id, x.unit, x.count FROM job_class AS c JOIN class_unit" + join);
  while (unit.step()) {
    UnitRequest& request = owner(unit).units.emplace_back();
    unit.read_from(1, request.unit, request.count);
  }
  cls = classes.begin();
  Statement rule = select(
      "SELECT c.id, x.on_status_reason, x.on_exit_code, x.action"
      " FROM job_class AS c JOIN class_exit_rule" +
      join);
  while (rule.step()) {
    ExitRule& exit_rule = owner(rule).exit_rules.emplace_back();
    rule.read_from(1, exit_rule.on_status_reason, exit_rule.on_exit_code, exit_rule.action);
  }
  return classes;
}

std::vector<Attempt> read_attempts(Connection& db, std::string_view prefix, JobId job) {
  std::vector<Attempt> attempts;
  Statement row =
      select_of_job(db, job, of_job(kAttemptColumns, prefix, "attempt", job, "job, number"));
  while (row.step()) attempt_fields(attempts.emplace_back(), reads(row));

  Statement part = select_of_job(
      db, job, of_job(kAllocationColumns, prefix, "allocation", job, "job, number, instance"));
  auto attempt = attempts.begin();
  while (part.step()) {
    std::pair<JobId, std::int32_t> key;
    part.read(key.first, key.second);
    while (attempt != attempts.end() && std::pair(attempt->job, attempt->number) < key) ++attempt;
    if (attempt == attempts.end() || std::pair(attempt->job, attempt->number) != key) {
      contradiction("an allocation of no attempt");
    }
    AttemptInstance& instance = attempt->instances.emplace_back();
    read_use(part, 3, instance.use);
    part.read_from(8, instance.state, instance.exit_code, instance.signalled,
                   instance.start_failed);
  }
  return attempts;
}

std::vector<Preemption> read_preemptions(Connection& db, std::string_view prefix, JobId job) {
  std::vector<Preemption> records;
  Statement row =
      select_of_job(db, job, of_job(kPreemptionColumns, prefix, "preemption", job, "job, id"));
  while (row.step()) preemption_fields(records.emplace_back(), reads(row));
  return records;
}

StoredState read_state(Connection& db) {
  StoredState state;
  read_meta(db, state);
  state.policy = read_policy(db);
  state.nodes = read_nodes(db);
  state.classes = read_classes(db, "c.live = 1");
  state.jobs = read_jobs(db);
  state.arrays = read_arrays(db);
  state.attempts = read_attempts(db, "", JobId{});
  sort_by_id(state.attempts);
  state.bookings = read_bookings(db);
  state.preemptions = read_preemptions(db, "", JobId{});
  sort_by_id(state.preemptions);
  state.tokens = read_tokens(db);
  state.usage = read_usage(db);
  return state;
}

}  // namespace gpuq::store
