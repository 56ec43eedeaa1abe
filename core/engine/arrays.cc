// Arrays (J5): records for members when they need one, the limit, and the end of the whole.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/engine/transaction.h"

namespace gpuq {

namespace {

// The job that needs a record for `change`; 0 = none does.
JobId job_of(const Change& change) {
  if (const auto* job = std::get_if<PutJob>(&change)) return job->record.id;
  if (const auto* booking = std::get_if<PutBooking>(&change)) return booking->record.job;
  return JobId();
}

std::int32_t highest_exit_code(const State& state, const JobArray& array) {
  // Members that never had a record have failed without one.
  std::int32_t highest = std::max(array.archived_exit_code, array.made < array.size() ? 1 : -1);
  auto it = state.jobs().upper_bound(array.id);
  for (; it != state.jobs().end() && array.has_member(it->first); ++it) {
    highest = std::max(highest, end_of(state, it->second));
  }
  return highest;
}

std::string end_text(const MemberCounts& counts, std::int32_t size) {
  const std::int32_t failed = counts.in(JobState::kFailed);
  if (failed == 0) return "";
  return fmt::format("{} of its {} members failed", failed, size);
}

}  // namespace

std::int32_t end_of(const State& state, const Job& member) {
  const auto attempts = state.attempts_of(member.id);
  return final_exit_code(member, attempts.empty() ? nullptr : attempts.back()).value_or(-1);
}

void make_members(const State& state, Event& event) {
  std::map<JobId, std::int32_t> wanted;  // Members that are to have a record, by array.
  for (const Change& change : event.changes) {
    const JobId job = job_of(change);
    const JobArray* array = state.array_of(job);
    if (array == nullptr || array->position(job) < array->made) continue;
    std::int32_t& members = wanted[array->id];
    members = std::max(members, array->position(job) + 1);
  }
  std::vector<Change> first;
  for (const auto& [id, members] : wanted) {
    JobArray array = *state.find_array(id);
    const std::int32_t had = std::exchange(array.made, members);
    first.emplace_back(PutArray{array});
    for (std::int32_t k = had; k < members; ++k) {
      first.emplace_back(PutJob{state.job(array.member(k))});
    }
  }
  if (first.empty()) return;
  event.changes.insert(event.changes.begin(), std::make_move_iterator(first.begin()),
                       std::make_move_iterator(first.end()));
}

std::vector<JobId> arrays_touched(const State& state, const Event& event) {
  if (state.arrays().empty()) return {};
  std::set<JobId> arrays;
  for (const Change& change : event.changes) {
    const auto* job = std::get_if<PutJob>(&change);
    if (job == nullptr) continue;
    const JobArray* array = state.array_of(job->record.id);
    if (array == nullptr) array = state.find_array(job->record.id);
    if (array != nullptr) arrays.insert(array->id);
  }
  return {arrays.begin(), arrays.end()};
}

// In O1's order, those without a record included: these are on offer by themselves.
void let_members_in(Transaction& tx, JobId id) {
  for (;;) {
    const State& state = tx.state();
    const JobArray* array = state.find_array(id);
    if (array == nullptr || state.members_of(id).limited.empty()) return;
    const WaitKey first = *state.members_of(id).limited.begin();
    if (!state.lets_in(*array, first)) return;
    Job job = state.job(first.id);
    settle_waiting(state, job, tx.now());
    Event event = tx.job_event(EventType::kJobRunnable, "", job);
    event.detail = fmt::format("array {} has room for another member: rule J5", id.value);
    event.changes.emplace_back(PutJob{std::move(job)});
    tx.emit(std::move(event));
  }
}

void drop_members(Transaction& tx, const std::string& actor, JobId id, const std::string& reason,
                  bool cancelled) {
  JobArray array = *tx.state().find_array(id);
  Job job = tx.state().job(id);
  const std::int32_t dropped = array.unmade();
  if (dropped > 0) array.dropped_at = tx.now();
  job.terminating = job.terminating || cancelled;
  job.held = false;
  job.depends_on.clear();
  job.status_reason = reason;
  job.state = waiting_state(job);
  const EventType type = cancelled ? EventType::kJobCancelRequested : EventType::kJobUpdated;
  Event event = tx.job_event(type, actor, job);
  event.detail = dropped == 0 ? reason : fmt::format("{}: {} members fail", reason, dropped);
  event.changes.emplace_back(PutArray{array});
  event.changes.emplace_back(PutJob{std::move(job)});
  tx.emit(std::move(event));
}

bool end_array(Transaction& tx, JobId id) {
  const State& state = tx.state();
  const JobArray& array = *state.find_array(id);
  Job job = state.job(id);
  const MemberCounts counts = state.member_counts(array);
  if (is_terminal(job.state) || counts.ended() < array.size()) return false;
  const bool succeeded = counts.in(JobState::kFailed) == 0;
  job.state = succeeded ? JobState::kSucceeded : JobState::kFailed;
  job.held = false;
  job.depends_on.clear();
  job.ended_at = tx.now();
  job.exit_code = highest_exit_code(state, array);
  if (succeeded || job.status_reason.empty()) job.status_reason = end_text(counts, array.size());
  const EventType type = succeeded ? EventType::kJobSucceeded : EventType::kJobFailed;
  Event event = tx.job_event(type, "", job);
  event.detail = job.status_reason;
  event.changes.emplace_back(PutJob{std::move(job)});
  tx.emit(std::move(event));
  return true;
}

std::vector<JobId> live_members(const State& state, const JobArray& array) {
  std::vector<JobId> members;
  auto it = state.jobs().upper_bound(array.id);
  for (; it != state.jobs().end() && array.has_member(it->first); ++it) {
    if (!is_terminal(it->second.state)) members.push_back(it->first);
  }
  return members;
}

}  // namespace gpuq
