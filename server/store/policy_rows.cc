#include "server/store/policy_rows.h"

#include <string>

#include "server/store/fields.h"
#include "server/store/sql_text.h"

namespace gpuq::store {
namespace {

/// Upsert of a policy record; one that was removed comes back.
Statement upsert(Connection& db, std::string_view table, std::string_view columns) {
  return {db, upsert_sql(table, columns, 1, "removed = 0")};
}

void write_limits(Statement& put, std::int32_t owner, const std::vector<CapacityLimit>& limits) {
  std::int64_t position = 0;
  for (const CapacityLimit& limit : limits) {
    put.run(owner, position++, limit.unit, limit.max_capacity);
  }
}

void write_environments(Connection& db, const PolicyTables& tables) {
  Statement put = upsert(db, "environment", kEnvironmentColumns);
  Statement label(db, insert_sql("environment_label", "environment, name, value"));
  Statement limit(db, insert_sql("environment_limit", "environment, position, unit, max_capacity"));
  for (const Environment& record : tables.environments) {
    environment_fields(record, writes(put));
    for (const auto& [name, value] : record.def.node_labels) label.run(record.id, name, value);
    write_limits(limit, record.id.value, record.def.capacity_limits);
  }
}

void write_queues(Connection& db, const PolicyTables& tables) {
  Statement put = upsert(db, "job_queue", kQueueColumns);
  Statement environment(db, insert_sql("queue_environment", "queue, position, environment"));
  Statement action(db, insert_sql("time_limit_action", "queue, position, reason, max_time"));
  for (const Queue& record : tables.queues) {
    queue_fields(record, writes(put));
    std::int64_t position = 0;
    for (const std::string& name : record.def.service_environments) {
      environment.run(record.id, position++, name);
    }
    position = 0;
    for (const TimeLimitAction& limit : record.def.time_limit_actions) {
      action.run(record.id, position++, limit.reason, limit.max_time);
    }
  }
}

void write_shares(Connection& db, const PolicyTables& tables) {
  Statement put = upsert(db, "quota_share", kShareColumns);
  Statement limit(db, insert_sql("share_limit", "share, position, unit, max_capacity"));
  for (const Share& record : tables.shares) {
    share_fields(record, writes(put));
    write_limits(limit, record.id.value, record.def.capacity_limits);
  }
}

/// Calls `add` for each row of `sql`, with the statement at that row.
template <typename Add>
void each_row(Connection& db, const std::string& sql, Add add) {
  Statement rows(db, sql);
  while (rows.step()) add(rows);
}

/// Rows of one record's child table, in the order of their positions.
template <typename Add>
void each_child(Connection& db, const std::string& sql, std::int32_t owner, Add add) {
  Statement rows(db, sql);
  rows.bind_all(owner);
  while (rows.step()) add(rows);
}

void read_limits(Connection& db, const std::string& sql, std::int32_t owner,
                 std::vector<CapacityLimit>& limits) {
  each_child(db, sql, owner, [&](const Statement& row) {
    CapacityLimit& limit = limits.emplace_back();
    row.read(limit.unit, limit.max_capacity);
  });
}

std::string live_rows(const char* table, const char* columns) {
  return std::string("SELECT ") + columns + " FROM " + table + " WHERE removed = 0 ORDER BY id";
}

void read_environments(Connection& db, PolicyTables& tables) {
  each_row(db, live_rows("environment", kEnvironmentColumns), [&](const Statement& row) {
    environment_fields(tables.environments.emplace_back(), reads(row));
  });
  for (Environment& record : tables.environments) {
    each_child(db, "SELECT name, value FROM environment_label WHERE environment = ? ORDER BY name",
               record.id.value, [&](const Statement& row) {
                 std::string name;
                 std::string value;
                 row.read(name, value);
                 record.def.node_labels.emplace(std::move(name), std::move(value));
               });
    read_limits(db,
                "SELECT unit, max_capacity FROM environment_limit WHERE environment = ?"
                " ORDER BY position",
                record.id.value, record.def.capacity_limits);
  }
}

void read_queues(Connection& db, PolicyTables& tables) {
  each_row(db, live_rows("job_queue", kQueueColumns),
           [&](const Statement& row) { queue_fields(tables.queues.emplace_back(), reads(row)); });
  for (Queue& record : tables.queues) {
    each_child(db, "SELECT environment FROM queue_environment WHERE queue = ? ORDER BY position",
               record.id.value, [&](const Statement& row) {
                 row.read(record.def.service_environments.emplace_back());
               });
    each_child(db,
               "SELECT reason, max_time FROM time_limit_action WHERE queue = ? ORDER BY position",
               record.id.value, [&](const Statement& row) {
                 TimeLimitAction& action = record.def.time_limit_actions.emplace_back();
                 row.read(action.reason, action.max_time);
               });
  }
}

void read_shares(Connection& db, PolicyTables& tables) {
  each_row(db, live_rows("quota_share", kShareColumns),
           [&](const Statement& row) { share_fields(tables.shares.emplace_back(), reads(row)); });
  for (Share& record : tables.shares) {
    read_limits(db, "SELECT unit, max_capacity FROM share_limit WHERE share = ? ORDER BY position",
                record.id.value, record.def.capacity_limits);
  }
}

}  // namespace

void write_policy(Connection& db, const PolicyTables& tables) {
  for (const char* child : {"environment_label", "environment_limit", "queue_environment",
                            "time_limit_action", "share_limit"}) {
    db.exec(std::string("DELETE FROM ") + child);
  }
  // All first, so that a name may pass from a removed record to a new one.
  for (const char* table :
       {"unit", "environment", "scheduling_policy", "job_queue", "quota_share"}) {
    db.exec(std::string("UPDATE ") + table + " SET removed = 1 WHERE removed = 0");
  }
  Statement unit = upsert(db, "unit", kUnitColumns);
  for (const Unit& record : tables.units) unit_fields(record, writes(unit));
  write_environments(db, tables);
  Statement policy = upsert(db, "scheduling_policy", kPolicyColumns);
  for (const SchedulingPolicy& record : tables.policies) policy_fields(record, writes(policy));
  write_queues(db, tables);
  write_shares(db, tables);
  db.run("UPDATE meta SET policy_next_id = ?, policy_builtin = ? WHERE id = 1", tables.next_id,
         tables.builtin);
}

PolicyTables read_policy(Connection& db) {
  PolicyTables tables;
  each_row(db, "SELECT policy_next_id, policy_builtin FROM meta WHERE id = 1",
           [&](const Statement& row) { row.read(tables.next_id, tables.builtin); });
  each_row(db, live_rows("unit", kUnitColumns),
           [&](const Statement& row) { unit_fields(tables.units.emplace_back(), reads(row)); });
  each_row(db, live_rows("scheduling_policy", kPolicyColumns), [&](const Statement& row) {
    policy_fields(tables.policies.emplace_back(), reads(row));
  });
  read_environments(db, tables);
  read_queues(db, tables);
  read_shares(db, tables);
  return tables;
}

}  // namespace gpuq::store
