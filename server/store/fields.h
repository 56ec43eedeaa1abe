#pragma once
// Which fields of a record are which columns: a column list and a visitor in the same order, used
// for writing, reading and archiving alike. Key columns come first. Internal to server/store.
#include <utility>

#include "core/model/rows.h"
#include "server/store/db.h"

namespace gpuq::store {

inline constexpr const char* kUnitColumns = "id, name, gpu_model, gpus, cpus, memory_mib";
inline constexpr const char* kEnvironmentColumns = "id, name, enabled";
inline constexpr const char* kPolicyColumns = "id, name, kind, idle_order, half_life";
inline constexpr const char* kQueueColumns =
    "id, name, priority, scheduling_policy, enabled, deleting";
inline constexpr const char* kShareColumns =
    "id, queue, name, strategy, borrow_limit, in_share_preemption, min_runtime, grace, "
    "head_wait_limit, user_order, enabled, deleting";
inline constexpr const char* kNodeColumns =
    "id, name, cpus, memory_mib, link, admin, healthy, health_reason, environment, boot_id, "
    "state_dir_id, agent_version, address";
inline constexpr const char* kDeviceColumns =
    "uuid, model, memory_mib, pci_address, usable, charged";
inline constexpr const char* kClassColumns =
    "id, instances, cpus, memory_mib, topology_label, topology_required, timeout, grace, "
    "preemptible, exit_zero_after_stop_succeeds, preemption_retries, max_attempts, "
    "backoff";
inline constexpr const char* kJobColumns =
    "id, class, queue, share, priority, state, terminating, attempt_count, counted_attempts, "
    "node_losses, preemptions, attempt, created_at, runnable_since, ended_at, exit_code, name, "
    "user, status_reason, held, retry_at, expected_run_time";
/// Of a living job, beside those; not visited, as the lists below.
inline constexpr const char* kLiveJobColumns = ", depends_on, over_array_limit";
inline constexpr int kJobColumnCount = 22;
inline constexpr const char* kArrayColumns =
    "id, first_index, last_index, step, member_limit, made, dropped_at, archived_succeeded, "
    "archived_failed, archived_exit_code";
inline constexpr const char* kAttemptColumns =
    "job, number, id, share, unit, demand, state, stop, outcome, lost_to_node, scheduled_at, "
    "running_at, stop_at, grace, ended_at, exit_code, status_reason";
/// Not visited: server/store/row_writer.cc and row_reader.cc pack and unpack the lists.
inline constexpr const char* kAllocationColumns =
    "job, number, instance, node, devices, cpus, memory_mib, awaited, state, exit_code, "
    "signalled, start_failed";
inline constexpr const char* kBookingColumns =
    "job, share, unit, demand, lacking, made_at, victims";
inline constexpr const char* kBookingPartColumns =
    "job, instance, node, devices, cpus, memory_mib, awaited";
inline constexpr const char* kPreemptionColumns =
    "job, id, attempt, beneficiary, rule, ending, handed, at, lost_unit_ms, end_rule";
inline constexpr const char* kTokenColumns = "token, body_hash, expires, jobs";
inline constexpr const char* kUsageColumns = "share, kind, unit, name, value, charged_at, held";
inline constexpr const char* kEventColumns =
    "id, at, wall_ms, type, actor, job, attempt, queue, share, node, job_state, detail";

template <typename R, typename F>
void unit_fields(R& r, F&& f) {
  f(r.id, r.def.name, r.def.gpu_model, r.def.gpus, r.def.cpus, r.def.memory_mib);
}

template <typename R, typename F>
void environment_fields(R& r, F&& f) {
  f(r.id, r.def.name, r.def.enabled);
}

template <typename R, typename F>
void policy_fields(R& r, F&& f) {
  f(r.id, r.def.name, r.def.kind, r.def.idle_order, r.def.half_life);
}

template <typename R, typename F>
void queue_fields(R& r, F&& f) {
  f(r.id, r.def.name, r.def.priority, r.def.scheduling_policy, r.def.enabled, r.deleting);
}

template <typename R, typename F>
void share_fields(R& r, F&& f) {
  f(r.id, r.queue, r.def.name, r.def.strategy, r.def.borrow_limit, r.def.in_share_preemption,
    r.def.min_runtime, r.def.grace, r.def.head_wait_limit, r.def.user_order, r.def.enabled,
    r.deleting);
}

template <typename R, typename F>
void node_fields(R& r, F&& f) {
  f(r.id, r.name, r.cpus, r.memory_mib, r.link, r.admin, r.healthy, r.health_reason, r.env,
    r.boot_id, r.state_dir_id, r.agent_version, r.address);
}

template <typename R, typename F>
void device_fields(R& r, F&& f) {
  f(r.uuid, r.model, r.memory_mib, r.pci_address, r.usable, r.charged);
}

template <typename R, typename F>
void class_fields(R& r, F&& f) {
  f(r.id, r.instances, r.cpus, r.memory_mib, r.topology_label, r.topology_required, r.timeout,
    r.grace, r.preemptible, r.exit_zero_after_stop_succeeds, r.preemption_retries, r.max_attempts,
    r.backoff);
}

template <typename R, typename F>
void job_fields(R& r, F&& f) {
  f(r.id, r.cls, r.queue, r.share, r.priority, r.state, r.terminating, r.attempt_count,
    r.counted_attempts, r.node_losses, r.preemptions, r.attempt, r.created_at, r.runnable_since,
    r.ended_at, r.exit_code, r.name, r.user, r.status_reason, r.held, r.retry_at,
    r.expected_run_time);
}

template <typename R, typename F>
void array_fields(R& r, F&& f) {
  f(r.id, r.range.first, r.range.last, r.range.step, r.range.limit, r.made, r.dropped_at,
    r.archived_succeeded, r.archived_failed, r.archived_exit_code);
}

template <typename R, typename F>
void attempt_fields(R& r, F&& f) {
  f(r.job, r.number, r.id, r.share, r.unit, r.demand, r.state, r.stop, r.outcome, r.lost_to_node,
    r.scheduled_at, r.running_at, r.stop_at, r.grace, r.ended_at, r.exit_code, r.status_reason);
}

template <typename R, typename F>
void preemption_fields(R& r, F&& f) {
  f(r.job, r.id, r.attempt, r.beneficiary, r.rule, r.end, r.handed, r.at, r.lost_unit_ms,
    r.end_rule);
}

template <typename R, typename F>
void usage_fields(R& r, F&& f) {
  f(r.key.share, r.key.kind, r.key.unit, r.key.name, r.value.fixed, r.charged_at, r.held);
}

template <typename R, typename F>
void event_fields(R& r, F&& f) {
  f(r.id, r.at, r.wall_ms, r.type, r.actor, r.job, r.attempt, r.queue, r.share, r.node, r.job_state,
    r.detail);
}

/// Visitor that binds a record's fields and runs `statement`.
inline auto writes(Statement& statement) {
  return [&statement](const auto&... values) { statement.run(values...); };
}

/// Visitor that fills a record from the row's columns, beginning with column `first`.
inline auto reads(const Statement& statement, int first = 0) {
  return [&statement, first](auto&... values) { statement.read_from(first, values...); };
}

}  // namespace gpuq::store
