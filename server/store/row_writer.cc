#include "server/store/row_writer.h"

#include <string>

#include "server/store/compact_list.h"
#include "server/store/fields.h"
#include "server/store/policy_rows.h"
#include "server/store/sql_text.h"

namespace gpuq::store {
namespace {

constexpr const char* kMetaSql =
    "UPDATE meta SET last_time = max(last_time, ?2), next_job = max(next_job, ?3),"
    " next_attempt = max(next_attempt, ?4), next_event = max(next_event, ?5),"
    " next_class = max(next_class, ?6), next_preemption = max(next_preemption, ?7),"
    " next_node = max(next_node, ?8) WHERE id = 1 AND epoch = ?1";

/// Children before parents, the archive's parents before its children.
std::vector<Statement> archive_statements(Connection& db) {
  std::vector<Statement> statements;
  const auto add = [&](const std::string& sql) { statements.emplace_back(db, sql); };
  add(archive_sql("job", kJobColumns, "id"));
  add(archive_sql("attempt", kAttemptColumns, "job"));
  add(archive_sql("allocation", kAllocationColumns, "job"));
  add(archive_sql("preemption", kPreemptionColumns, "job"));
  add("DELETE FROM preemption WHERE job = ?");
  add("DELETE FROM allocation WHERE job = ?");
  add("DELETE FROM attempt WHERE job = ?");
  add("DELETE FROM job WHERE id = ?");
  return statements;
}

}  // namespace

RowWriter::RowWriter(Connection& db)
    : db_(db),
      meta_(db, kMetaSql),
      put_class_(db, upsert_sql("job_class", kClassColumns, 1, "live = 1")),
      put_class_unit_(db, insert_sql("class_unit", "class, position, unit, count")),
      put_exit_rule_(db, insert_sql("class_exit_rule",
                                    "class, position, on_status_reason, on_exit_code, action")),
      cut_class_units_(db, "DELETE FROM class_unit WHERE class = ?"),
      cut_exit_rules_(db, "DELETE FROM class_exit_rule WHERE class = ?"),
      drop_class_(db, "UPDATE job_class SET live = 0 WHERE id = ?"),
      put_job_(db, upsert_sql("job", std::string(kJobColumns) + kLiveJobColumns, 1)),
      put_array_(db, upsert_sql("job_array", kArrayColumns, 1)),
      put_spec_(db, insert_sql("job_spec", "job, bytes")),
      put_attempt_(db, upsert_sql("attempt", kAttemptColumns, 2)),
      put_allocation_(db, upsert_sql("allocation", kAllocationColumns, 3, {}, true)),
      cut_allocations_(db, "DELETE FROM allocation WHERE job = ? AND number = ? AND instance >= ?"),
      put_booking_(db, upsert_sql("booking", kBookingColumns, 1)),
      put_booking_part_(db, upsert_sql("booking_part", kBookingPartColumns, 2, {}, true)),
      cut_booking_parts_(db, "DELETE FROM booking_part WHERE job = ? AND instance >= ?"),
      drop_booking_(db, "DELETE FROM booking WHERE job = ?"),
      put_preemption_(db, upsert_sql("preemption", kPreemptionColumns, 2)),
      put_node_(db, upsert_sql("node", kNodeColumns, 1, "removed = 0")),
      put_label_(db, insert_sql("node_label", "node, name, value")),
      put_device_(
          db, upsert_sql("device", std::string("node, position, ") + kDeviceColumns, 2, {}, true)),
      cut_labels_(db, "DELETE FROM node_label WHERE node = ?"),
      cut_devices_(db, "DELETE FROM device WHERE node = ? AND position >= ?"),
      drop_node_(db, "UPDATE node SET removed = 1 WHERE id = ?"),
      put_token_(db, upsert_sql("client_token", kTokenColumns, 1)),
      drop_token_(db, "DELETE FROM client_token WHERE token = ?"),
      put_usage_(db, upsert_sql("usage", kUsageColumns, 4)),
      drop_usage_(db, "DELETE FROM usage WHERE share = ? AND kind = ? AND unit = ? AND name = ?"),
      put_event_(db, insert_sql("event", kEventColumns)),
      archive_(archive_statements(db)) {}

bool RowWriter::write_meta(const CommitBatch& batch) {
  const Counters& next = batch.counters;
  meta_.run(batch.epoch, batch.time, next.next_job, next.next_attempt, next.next_event,
            next.next_class, next.next_preemption, next.next_node);
  return db_.changes() == 1;
}

void RowWriter::write(const RowChanges& rows) {
  if (rows.policy) write_policy(db_, *rows.policy);
  for (const Node& node : rows.nodes) write(node);
  for (const JobClass& cls : rows.classes) write(cls);
  for (const Job& job : rows.jobs) write(job);
  for (const JobArray& array : rows.arrays) array_fields(array, writes(put_array_));
  for (const PutSpec& spec : rows.specs) put_spec_.run(spec.id, BlobRef{spec.bytes.get()});
  for (const Attempt& attempt : rows.attempts) write(attempt);
  for (const Booking& booking : rows.bookings) write(booking);
  for (const Preemption& record : rows.preemptions) {
    preemption_fields(record, writes(put_preemption_));
  }
  for (const TokenRecord& token : rows.tokens) write(token);
  for (const UsageRecord& record : rows.usage) usage_fields(record, writes(put_usage_));

  for (const JobId job : rows.drop_bookings) drop_booking(job);
  for (const JobId job : rows.archive_jobs) archive(job);
  for (const ClassId cls : rows.drop_classes) drop_class_.run(cls);
  for (const NodeId node : rows.drop_nodes) drop_node_.run(node);
  for (const std::string& key : rows.drop_tokens) drop_token_.run(key);
  for (const UsageKey& key : rows.drop_usage) {
    drop_usage_.run(key.share, key.kind, key.unit, key.name);
  }
}

void RowWriter::write(const std::vector<Event>& events) {
  for (const Event& event : events) event_fields(event, writes(put_event_));
}

void RowWriter::write(const JobClass& record) {
  class_fields(record, writes(put_class_));
  cut_class_units_.run(record.id);
  std::int64_t position = 0;
  for (const UnitRequest& unit : record.units) {
    put_class_unit_.run(record.id, position++, unit.unit, unit.count);
  }
  cut_exit_rules_.run(record.id);
  position = 0;
  for (const ExitRule& rule : record.exit_rules) {
    put_exit_rule_.run(record.id, position++, rule.on_status_reason, rule.on_exit_code,
                       rule.action);
  }
}

void RowWriter::write(const Job& record) {
  job_fields(record, [&](const auto&... values) {
    put_job_.run(values..., pack(record.depends_on), record.over_array_limit);
  });
}

void RowWriter::write(const Attempt& record) {
  attempt_fields(record, writes(put_attempt_));
  std::int64_t index = 0;
  for (const AttemptInstance& instance : record.instances) {
    const InstanceUse& use = instance.use;
    put_allocation_.run(record.job, record.number, index++, use.node, pack(use.devices), use.cpus,
                        use.memory_mib, pack(use.awaited), instance.state, instance.exit_code,
                        instance.signalled, instance.start_failed);
  }
  cut_allocations_.run(record.job, record.number, index);
}

void RowWriter::write(const Booking& record) {
  put_booking_.run(record.job, record.share, record.unit, record.demand, record.lacking,
                   record.made_at, pack(record.victims));
  std::int64_t index = 0;
  for (const InstanceUse& use : record.instances) {
    put_booking_part_.run(record.job, index++, use.node, pack(use.devices), use.cpus,
                          use.memory_mib, pack(use.awaited));
  }
  cut_booking_parts_.run(record.job, index);
}

void RowWriter::write(const Node& record) {
  node_fields(record, writes(put_node_));
  cut_labels_.run(record.id);
  for (const auto& [name, value] : record.labels) put_label_.run(record.id, name, value);
  std::int64_t position = 0;
  for (const Device& device : record.devices) {
    device_fields(device,
                  [&](const auto&... values) { put_device_.run(record.id, position, values...); });
    ++position;
  }
  cut_devices_.run(record.id, position);
}

void RowWriter::write(const TokenRecord& record) {
  put_token_.run(record.key, record.body_hash, record.expires, pack(record.jobs));
}

void RowWriter::drop_booking(JobId job) {
  cut_booking_parts_.run(job, 0);
  drop_booking_.run(job);
}

void RowWriter::archive(JobId job) {
  archive_.front().run(job);
  if (db_.changes() != 1) {
    throw Failure{{ErrorCode::kInternal, "store: job " + std::to_string(job.value) +
                                             " cannot be archived: it is not stored"}};
  }
  for (auto statement = archive_.begin() + 1; statement != archive_.end(); ++statement) {
    statement->run(job);
  }
}

}  // namespace gpuq::store
