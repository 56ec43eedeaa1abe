#include "server/rpc/convert_job.h"

#include <algorithm>

#include "server/rpc/job_uuid.h"

namespace gpuq::rpc {

namespace {

constexpr std::size_t kMaxAttemptsShown = 100;
constexpr std::size_t kMaxPreemptionsShown = 10;

// What a job's records are, wherever they come from. The archive's names stand in where the policy
// or the cluster has lost the record meanwhile.
struct Records {
  const Job& job;
  const JobClass& cls;
  std::vector<const Attempt*> attempts;
  std::vector<const Preemption*> preemptions;
  const ArchivedJob* archived = nullptr;
  const ArchiveNames* names = nullptr;
  std::optional<JobArray> array = {};  ///< That it is, or that it is a member of.
  [[nodiscard]] const Attempt* last() const { return attempts.empty() ? nullptr : attempts.back(); }
};

Records records_of(const State& state, const Job& job) {
  Records records{job, state.job_class(job.cls), state.attempts_of(job.id),
                  state.preemptions_of(job.id)};
  const JobArray* array = state.find_array(job.id);
  if (array == nullptr) array = state.array_of(job.id);
  if (array != nullptr) records.array = *array;
  return records;
}

Records records_of(const ArchivedJob& archived, const ArchiveNames& names) {
  Records records{archived.job, archived.cls, {}, {}, &archived, &names, archived.array};
  for (const Attempt& attempt : archived.attempts) records.attempts.push_back(&attempt);
  for (const Preemption& record : archived.preemptions) records.preemptions.push_back(&record);
  return records;
}

template <typename Map, typename Key>
std::string look_up(const Map& map, Key key) {
  const auto it = map.find(key);
  return it == map.end() ? "" : it->second;
}

std::string unit_name(const State& state, UnitId id, const ArchiveNames* names) {
  if (const Unit* unit = state.policy().unit(id)) return unit->def.name;
  return names == nullptr ? "" : look_up(names->units, id);
}

std::string queue_name(const State& state, const Records& records) {
  if (const Queue* queue = state.policy().queue(records.job.queue)) return queue->def.name;
  return records.archived == nullptr ? "" : records.archived->queue_name;
}

std::string share_name(const State& state, ShareId id) {
  const Share* share = state.policy().share(id);
  return share == nullptr ? "" : share->def.name;
}

std::string share_name(const State& state, const Records& records) {
  std::string name = share_name(state, records.job.share);
  if (name.empty() && records.archived != nullptr) return records.archived->share_name;
  return name;
}

void fill_node_names(const State& state, const std::vector<AttemptInstance>& instances,
                     google::protobuf::RepeatedPtrField<std::string>& out) {
  std::set<NodeId> seen;
  for (const AttemptInstance& instance : instances) {
    const Node* node = state.find_node(instance.use.node);
    if (node != nullptr && seen.insert(node->id).second) *out.Add() = node->name;
  }
}

MemberCounts counts_of(const State& state, const Records& records) {
  if (records.archived == nullptr) return state.member_counts(*records.array);
  MemberCounts counts;
  const JobArray& array = *records.array;
  counts.by_state[static_cast<std::size_t>(JobState::kSucceeded)] = array.archived_succeeded;
  counts.by_state[static_cast<std::size_t>(JobState::kFailed)] =
      array.archived_failed + (array.dropped() ? array.size() - array.made : 0);
  return counts;
}

// What tells an array or a member from other jobs; `Out` is a whole job or a row.
template <typename Out>
void fill_array(const State& state, const Records& records, Out& out) {
  if (!records.array) return;
  const JobArray& array = *records.array;
  if (array.id != records.job.id) {
    out.mutable_member_of()->set_array_job_id(array.id.value);
    out.mutable_member_of()->set_index(array.index(records.job.id));
    return;
  }
  v1::ArrayRange& range = *out.mutable_array()->mutable_range();
  range.set_first(array.range.first);
  range.set_last(array.range.last);
  range.set_step(array.range.step);
  range.set_limit(array.range.limit);
  out.mutable_array()->set_size(array.size());
  const MemberCounts counts = counts_of(state, records);
  v1::ArrayCounts& members = *out.mutable_array()->mutable_members();
  members.set_pending(counts.in(JobState::kPending));
  members.set_runnable(counts.in(JobState::kRunnable));
  members.set_scheduled(counts.in(JobState::kScheduled));
  members.set_starting(counts.in(JobState::kStarting));
  members.set_running(counts.in(JobState::kRunning));
  members.set_succeeded(counts.in(JobState::kSucceeded));
  members.set_failed(counts.in(JobState::kFailed));
  out.set_state(to_proto(is_terminal(records.job.state) ? records.job.state : counts.state()));
}

void fill_common(const State& state, const Records& records, v1::JobSummary& out) {
  const Job& job = records.job;
  out.set_job_id(job.id.value);
  out.set_job_uuid(job_uuid(state.identity().store_id, job.id));
  out.set_job_name(job.name);
  out.set_job_queue(queue_name(state, records));
  out.set_quota_share_name(share_name(state, records));
  out.set_user(job.user);
  out.set_state(to_proto(job.state));
  out.set_scheduling_priority(job.priority);
  out.set_instances(records.cls.instances);
  out.set_created_at_ms(to_ms(job.created_at));
  out.set_stopped_at_ms(is_terminal(job.state) ? ms_or_zero(job.ended_at) : 0);
  out.set_attempt_count(job.attempt_count);
  out.set_preempted_attempt_count(job.preemptions);
  out.set_status_reason(job.status_reason);
  if (job.expected_run_time) out.set_expected_run_seconds(job.expected_run_time->count() / 1000);
  const Attempt* last = records.last();
  if (last != nullptr) out.set_started_at_ms(ms_or_zero(last->running_at));
  const bool placed = last != nullptr && last->live();
  const UnitRequest& first = records.cls.units.front();
  out.set_capacity_unit(unit_name(state, placed ? last->unit : first.unit, records.names));
  out.set_count_milli(placed ? last->demand.milli / records.cls.instances : first.count.milli);
  if (placed) {
    out.set_stopping(last->stopping());
    fill_node_names(state, last->instances, *out.mutable_node_names());
  }
  if (const auto code = final_exit_code(job, last)) out.set_final_exit_code(*code);
  fill_array(state, records, out);
}

void fill_devices(const Node* node, const InstanceUse& use, v1::AttemptInstance& out) {
  for (const DeviceUse& device : use.devices) {
    v1::DeviceShare& share = *out.add_devices();
    const auto index = static_cast<std::size_t>(device.device);
    if (node != nullptr && index < node->devices.size()) {
      share.set_device_uuid(node->devices[index].uuid);
    }
    share.set_amount_milli(device.milli);
  }
}

void fill_attempt(const State& state, const Attempt& attempt, const ArchiveNames* names,
                  v1::Attempt& out) {
  out.set_number(attempt.number);
  out.set_state(attempt_state(attempt));
  out.set_capacity_unit(unit_name(state, attempt.unit, names));
  out.set_created_at_ms(ms_or_zero(attempt.scheduled_at));
  out.set_started_at_ms(ms_or_zero(attempt.running_at));
  out.set_stopping_at_ms(ms_or_zero(attempt.stop_at));
  out.set_stopped_at_ms(ms_or_zero(attempt.ended_at));
  if (attempt.exit_code >= 0) out.set_exit_code(attempt.exit_code);
  out.set_status_reason(attempt.status_reason);
  std::int32_t index = 0;
  for (const AttemptInstance& instance : attempt.instances) {
    v1::AttemptInstance& shown = *out.add_instances();
    const Node* node = state.find_node(instance.use.node);
    shown.set_index(index++);
    if (node != nullptr) {
      shown.set_node_name(node->name);
    } else if (names != nullptr) {
      shown.set_node_name(look_up(names->nodes, instance.use.node));
    }
    fill_devices(node, instance.use, shown);
    shown.set_started_at_ms(ms_or_zero(attempt.running_at));
    if (instance.state == InstanceState::kExited) {
      shown.set_stopped_at_ms(ms_or_zero(attempt.ended_at));
      if (instance.exit_code >= 0) shown.set_exit_code(instance.exit_code);
    }
  }
}

void fill_preemptions(const State& state, const Records& records, v1::PreemptionSummary& out) {
  out.set_preempted_attempt_count(records.job.preemptions);
  auto it = records.preemptions.rbegin();
  for (std::size_t n = 0; it != records.preemptions.rend() && n < kMaxPreemptionsShown; ++it, ++n) {
    const Preemption& record = **it;
    v1::PreemptedAttempt& shown = *out.add_recent_preempted_attempts();
    shown.set_rule(to_proto(record.rule));
    shown.set_preempted_by_job_id(record.beneficiary.value);
    if (const Job* by = state.find_job(record.beneficiary)) {
      shown.set_preempted_by_share(share_name(state, by->share));
    }
    shown.set_decided_at_ms(ms_or_zero(record.at));
    const auto attempt = std::ranges::find(records.attempts, record.attempt, &Attempt::id);
    if (attempt == records.attempts.end()) continue;
    shown.set_attempt((*attempt)->number);
    shown.set_stopped_at_ms(ms_or_zero((*attempt)->ended_at));
    const Time ran_from = (*attempt)->running_at;
    if (ran_from != kNever && record.at > ran_from) {
      shown.set_lost_work_ms((record.at - ran_from).count());
    }
    shown.set_status_reason((*attempt)->status_reason);
  }
}

// What the core knows of the spec; fill_spec lays it over the stored bytes.
void fill_known_spec(const State& state, const Records& records, v1::JobSpec& out) {
  out.set_job_name(records.job.name);
  out.set_job_queue(queue_name(state, records));
  out.set_quota_share_name(share_name(state, records));
  out.set_scheduling_priority(records.job.priority);
  out.set_hold(records.job.held);
  v1::ResourceRequest& resources = *out.mutable_resources();
  resources.set_instances(records.cls.instances);
  resources.set_count_milli(records.cls.units.front().count.milli);
  for (const UnitRequest& request : records.cls.units) {
    resources.add_capacity_units(unit_name(state, request.unit, records.names));
  }
  resources.set_cpus(records.cls.cpus);
  resources.set_memory_mib(records.cls.memory_mib);
  resources.set_topology_label(records.cls.topology_label);
  resources.set_topology_required(records.cls.topology_required);
}

void fill_whole(const State& state, const Records& records, v1::Job& out) {
  const Job& job = records.job;
  out.set_job_id(job.id.value);
  out.set_job_uuid(job_uuid(state.identity().store_id, job.id));
  fill_known_spec(state, records, *out.mutable_spec());
  out.set_user(job.user);
  out.set_state(to_proto(job.state));
  out.set_status_reason(job.status_reason);
  out.set_created_at_ms(to_ms(job.created_at));
  out.set_runnable_at_ms(ms_or_zero(job.runnable_since));
  out.set_stopped_at_ms(is_terminal(job.state) ? ms_or_zero(job.ended_at) : 0);
  const Attempt* last = records.last();
  if (last != nullptr) out.set_started_at_ms(ms_or_zero(last->running_at));
  const std::size_t skip =
      records.attempts.size() > kMaxAttemptsShown ? records.attempts.size() - kMaxAttemptsShown : 0;
  for (std::size_t i = skip; i < records.attempts.size(); ++i) {
    fill_attempt(state, *records.attempts[i], records.names, *out.add_attempts());
  }
  out.set_attempt_count(job.attempt_count);
  out.set_failed_attempt_count(job.counted_attempts);
  if (job.preemptions > 0 || !records.preemptions.empty()) {
    fill_preemptions(state, records, *out.mutable_preemption_summary());
  }
  out.set_is_terminated(job.terminating);
  if (const auto code = final_exit_code(job, last)) out.set_final_exit_code(*code);
  fill_array(state, records, out);
}

}  // namespace

v1::JobState to_proto(JobState state) {
  switch (state) {
    case JobState::kSubmitted:
      return v1::JOB_STATE_SUBMITTED;
    case JobState::kPending:
      return v1::JOB_STATE_PENDING;
    case JobState::kRunnable:
      return v1::JOB_STATE_RUNNABLE;
    case JobState::kScheduled:
      return v1::JOB_STATE_SCHEDULED;
    case JobState::kStarting:
      return v1::JOB_STATE_STARTING;
    case JobState::kRunning:
      return v1::JOB_STATE_RUNNING;
    case JobState::kSucceeded:
      return v1::JOB_STATE_SUCCEEDED;
    case JobState::kFailed:
      return v1::JOB_STATE_FAILED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

v1::AttemptState attempt_state(const Attempt& attempt) {
  switch (attempt.outcome) {
    case AttemptOutcome::kNone:
      break;
    case AttemptOutcome::kSucceeded:
      return v1::ATTEMPT_STATE_SUCCEEDED;
    case AttemptOutcome::kFailed:
    case AttemptOutcome::kStartFailed:
      return v1::ATTEMPT_STATE_FAILED;
    case AttemptOutcome::kPreempted:
      return v1::ATTEMPT_STATE_PREEMPTED;
    case AttemptOutcome::kTerminated:
      return v1::ATTEMPT_STATE_CANCELLED;
    case AttemptOutcome::kTimedOut:
      return v1::ATTEMPT_STATE_TIMED_OUT;
    case AttemptOutcome::kLost:
      return v1::ATTEMPT_STATE_LOST;
  }
  if (attempt.stopping()) return v1::ATTEMPT_STATE_STOPPING;
  if (attempt.state == JobState::kScheduled) return v1::ATTEMPT_STATE_SCHEDULED;
  if (attempt.state == JobState::kStarting) return v1::ATTEMPT_STATE_STARTING;
  return v1::ATTEMPT_STATE_RUNNING;
}

v1::PreemptionRule to_proto(PreemptRule rule) {
  return rule == PreemptRule::kInShare ? v1::PREEMPTION_RULE_IN_SHARE
                                       : v1::PREEMPTION_RULE_CROSS_SHARE;
}

std::int64_t ms_or_zero(Time time) { return time == kNever || time == kNoTime ? 0 : to_ms(time); }

bool Borrowers::borrows(ShareId share, UnitId unit, HoldingKey key) {
  const auto [it, fresh] = known_.try_emplace({share, unit});
  if (fresh && state_.policy().share(share) != nullptr) {
    const Amount cap = state_.ledger().cap(share, unit);
    Amount laid;
    for (const auto& [order, holding] : state_.ledger().laid(share)) {
      if (holding->unit != unit) continue;
      laid += holding->demand;
      if (laid > cap) it->second.insert(holding->key);
    }
  }
  return it->second.contains(key);
}

void fill_summary(const State& state, const Job& job, Borrowers& borrowers, v1::JobSummary& out) {
  const Records records = records_of(state, job);
  fill_common(state, records, out);
  const Attempt* last = records.last();
  if (last != nullptr && last->live()) {
    out.set_borrowing(borrowers.borrows(job.share, last->unit, key_of(last->id)));
  }
  if (job.state <= JobState::kRunnable) fill_reason(state, job, *out.mutable_reason());
}

void fill_summary(const State& state, const ArchivedJob& job, const ArchiveNames& names,
                  v1::JobSummary& out) {
  fill_common(state, records_of(job, names), out);
}

void fill_job(const State& state, const Job& job, v1::Job& out) {
  const Records records = records_of(state, job);
  fill_whole(state, records, out);
  if (job.state <= JobState::kRunnable) fill_reason(state, job, *out.mutable_reason());
  if (const Booking* booking = state.find_booking(job.id)) {
    fill_booking(state, *booking, *out.mutable_booking());
  }
  const Attempt* last = records.last();
  if (last != nullptr && last->live() && out.attempts_size() > 0) {
    Borrowers borrowers(state);
    out.mutable_attempts(out.attempts_size() - 1)
        ->set_borrowing(borrowers.borrows(job.share, last->unit, key_of(last->id)));
  }
}

void fill_job(const State& state, const ArchivedJob& job, const ArchiveNames& names, v1::Job& out) {
  fill_whole(state, records_of(job, names), out);
}

Result<> fill_spec(const std::string& bytes, v1::Job& out) {
  v1::JobSpec spec;
  if (!spec.ParseFromString(bytes)) {
    return Error{ErrorCode::kDataLoss,
                 "the stored spec of job " + std::to_string(out.job_id()) + " can not be read"};
  }
  const v1::JobSpec known = std::move(*out.mutable_spec());
  spec.set_job_name(known.job_name());
  if (!known.job_queue().empty()) spec.set_job_queue(known.job_queue());
  if (!known.quota_share_name().empty()) spec.set_quota_share_name(known.quota_share_name());
  spec.set_scheduling_priority(known.scheduling_priority());
  spec.set_hold(known.hold());
  *spec.mutable_resources() = known.resources();
  *out.mutable_spec() = std::move(spec);
  return {};
}

}  // namespace gpuq::rpc
