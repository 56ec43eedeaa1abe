// Update, hold, release and cancel: what users ask of jobs that are there.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/engine/transaction.h"

namespace gpuq {

namespace {

Error refused(std::string message) { return {ErrorCode::kFailedPrecondition, std::move(message)}; }

Result<const Job*> known_job(const State& state, JobId id) {
  const Job* job = state.find_job(id);
  if (job != nullptr) return job;
  return Error{ErrorCode::kNotFound, fmt::format("job {} does not exist", id.value)};
}

bool was_archived(const State& state, JobId id) {
  return id.value > 0 && id.value < state.counters().next_job && state.find_job(id) == nullptr;
}

Result<> check_update(const Job& job, const UpdateJobCommand& command) {
  if (!command.priority && !command.held) {
    return invalid("the update changes nothing: give scheduling_priority or held");
  }
  if (command.priority && (*command.priority < 0 || *command.priority > kMaxPriority)) {
    return invalid(fmt::format("scheduling_priority {} is out of range: 0 to {}", *command.priority,
                               kMaxPriority));
  }
  if (command.held.value_or(false) && is_active(job.state)) {
    return refused(
        fmt::format("job {} is {} and can not be held: only a job that waits can, cancel it to "
                    "stop it",
                    job.id.value, to_string(job.state)));
  }
  return {};
}

void set_priority(Transaction& tx, const std::string& actor, Job job, std::int32_t priority) {
  Event event = tx.job_event(EventType::kJobUpdated, actor, job);
  event.detail = fmt::format("priority {} -> {}", job.priority, priority);
  job.priority = priority;
  event.changes.emplace_back(PutJob{job});
  tx.emit(std::move(event));
}

void void_booking(Transaction& tx, const std::string& actor, const Job& job) {
  Event event = tx.job_event(EventType::kBookingVoided, actor, job);
  give_up_booking(tx.state(), job.id, "J1", event.changes);
  if (event.changes.empty()) return;
  event.detail = "rule J1: the job is held";
  tx.emit(std::move(event));
}

// J1. The age stays, and with it the job's place in O1's order.
void set_held(Transaction& tx, const std::string& actor, Job job, bool held) {
  if (job.held == held) return;
  if (held) void_booking(tx, actor, job);
  job.held = held;
  settle_waiting(tx.state(), job, tx.now());
  Event event = tx.job_event(held ? EventType::kJobHeld : EventType::kJobReleased, actor, job);
  event.changes.emplace_back(PutJob{job});
  tx.emit(std::move(event));
}

Result<> check_array_hold(const State& state, const JobArray& array) {
  if (array.unmade() > 0 || !state.members_of(array.id).waiting.empty()) return {};
  return refused(fmt::format("array {} has no member that waits: only a job that waits can be held",
                             array.id.value));
}

// J5: what a user asks of an array is asked of every member that it can be asked of. Members are
// held from the last one on, and released from the first one: no place goes from one to the next.
void set_array_held(Transaction& tx, const std::string& actor, JobId id, bool held) {
  const State& state = tx.state();
  const JobArray array = *state.find_array(id);
  if (array.unmade() > 0) set_held(tx, actor, state.job(id), held);
  std::vector<JobId> members = live_members(state, array);
  if (held) std::ranges::reverse(members);
  for (const JobId member : members) {
    if (!is_active(state.job(member).state)) set_held(tx, actor, state.job(member), held);
  }
}

void set_array_priority(Transaction& tx, const std::string& actor, JobId id,
                        std::int32_t priority) {
  const State& state = tx.state();
  set_priority(tx, actor, state.job(id), priority);
  for (const JobId member : live_members(state, *state.find_array(id))) {
    set_priority(tx, actor, state.job(member), priority);
  }
}

Result<Reply> update_array(Transaction& tx, const std::string& actor,
                           const UpdateJobCommand& command) {
  const JobId id = command.job;
  if (command.held.value_or(false)) {
    const auto checked = check_array_hold(tx.state(), *tx.state().find_array(id));
    if (!checked) return checked.error();
  }
  if (command.priority) set_array_priority(tx, actor, id, *command.priority);
  if (command.held) set_array_held(tx, actor, id, *command.held);
  return Reply{};
}

void cancel_job(Transaction& tx, const std::string& actor, JobId id, const std::string& reason) {
  Job job = tx.state().job(id);
  if (is_terminal(job.state) || job.terminating) return;
  if (!is_active(job.state)) return end_waiting_job(tx, actor, id, reason);
  job.terminating = true;
  job.status_reason = reason;
  stop_attempt(tx, actor, job.attempt, StopCause::kTerminated, grace_of(tx.state(), job), reason,
               {PutJob{job}});
}

/// Nothing to do for a job that has ended, so that a release may be sent again.
bool is_only_release(const UpdateJobCommand& command) {
  return !command.priority && command.held && !*command.held;
}

}  // namespace

Result<Reply> handle(Transaction& tx, const std::string& actor, const UpdateJobCommand& command) {
  const State& state = tx.state();
  if (was_archived(state, command.job)) {
    if (is_only_release(command)) return Reply{};
    return refused(fmt::format("job {} has ended and can not be changed", command.job.value));
  }
  const auto found = known_job(state, command.job);
  if (!found) return found.error();
  const Job& job = **found;
  if (is_terminal(job.state)) {
    if (is_only_release(command)) return Reply{};
    return refused(
        fmt::format("job {} is {} and can not be changed", job.id.value, to_string(job.state)));
  }
  if (auto checked = check_update(job, command); !checked) return checked.error();
  if (state.find_array(command.job) != nullptr) return update_array(tx, actor, command);
  if (command.priority) set_priority(tx, actor, job, *command.priority);
  if (command.held) set_held(tx, actor, state.job(command.job), *command.held);
  return Reply{};
}

Result<Reply> handle(Transaction& tx, const std::string& actor, const CancelCommand& command) {
  if (was_archived(tx.state(), command.job)) return Reply{};
  const State& state = tx.state();
  const auto found = known_job(state, command.job);
  if (!found) return found.error();
  if (is_terminal((*found)->state) || (*found)->terminating) return Reply{};
  const std::string reason =
      command.reason.empty() ? fmt::format("Cancelled by {}", actor) : command.reason;
  std::vector<JobId> members;
  if (const JobArray* array = state.find_array(command.job)) {
    members = live_members(state, *array);
  }
  cancel_job(tx, actor, command.job, reason);
  // From the last one on, so that none starts to wait in the place of one before it.
  for (auto it = members.rbegin(); it != members.rend(); ++it) cancel_job(tx, actor, *it, reason);
  return Reply{};
}

}  // namespace gpuq
