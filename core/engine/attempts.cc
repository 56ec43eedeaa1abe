// What becomes of attempts: stopping, ending, and the job's fate after it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/text.h"
#include "core/engine/node_events.h"
#include "core/engine/transaction.h"

namespace gpuq {

void send_start(Transaction& tx, const Attempt& attempt, std::int32_t instance) {
  StartOrder order;
  order.fence = tx.fence(attempt.id);
  order.node = attempt.instances[static_cast<std::size_t>(instance)].use.node;
  order.instance = instance;
  order.job = tx.state().job(attempt.job);
  if (const JobArray* array = tx.state().array_of(attempt.job)) order.array = *array;
  order.cls = tx.state().job_class(order.job.cls);
  order.attempt = attempt;
  order.grace = grace_of(tx.state(), order.job);
  order.run_at_once = attempt.instances.size() == 1;
  tx.effect([order = std::move(order)](AgentGateway& gateway) { gateway.start(order); });
}

void send_stops(Transaction& tx, const Attempt& attempt) {
  for (std::size_t i = 0; i < attempt.instances.size(); ++i) {
    if (attempt.instances[i].state == InstanceState::kExited) continue;
    StopOrder order;
    order.fence = tx.fence(attempt.id);
    order.node = attempt.instances[i].use.node;
    order.instance = static_cast<std::int32_t>(i);
    order.cause = attempt.stop;
    order.grace = attempt.grace;
    tx.effect([order](AgentGateway& gateway) { gateway.stop(order); });
  }
}

void send_forgets(Transaction& tx, const Attempt& attempt) {
  const Fence fence = tx.fence(attempt.id);
  for (std::size_t i = 0; i < attempt.instances.size(); ++i) {
    const NodeId node = attempt.instances[i].use.node;
    const auto instance = static_cast<std::int32_t>(i);
    tx.effect(
        [fence, node, instance](AgentGateway& gateway) { gateway.forget(fence, node, instance); });
  }
}

void stop_attempt(Transaction& tx, const std::string& actor, AttemptId id, StopCause cause,
                  Duration grace, const std::string& reason, std::vector<Change> extra) {
  stop_attempt_as(tx, actor, tx.state().attempt(id), cause, grace, reason, std::move(extra));
}

void stop_attempt_as(Transaction& tx, const std::string& actor, Attempt attempt, StopCause cause,
                     Duration grace, const std::string& reason, std::vector<Change> extra) {
  GPUQ_CHECK(attempt.live());
  const AttemptId id = attempt.id;
  if (!attempt.stopping()) {
    attempt.stop = cause;
    attempt.stop_at = tx.now();
    attempt.grace = grace;
  } else if (cause == StopCause::kTerminated) {
    attempt.stop = cause;
    attempt.grace = std::min(attempt.grace, grace);
  }
  attempt.status_reason = reason;
  const Job& job = tx.state().job(attempt.job);
  Event event = tx.job_event(EventType::kAttemptStopping, actor, job);
  event.attempt = id;
  event.detail = fmt::format("{}: {}", to_string(attempt.stop), reason);
  event.changes = std::move(extra);
  event.changes.emplace_back(PutAttempt{attempt});
  tx.emit(std::move(event));
  send_stops(tx, attempt);
  tx.wake_at(attempt.stop_at + attempt.grace + tx.config().unconfirmed_stop_margin);
}

namespace {

// Bookings that waited for the attempt have its part free from now on (P7).
void free_bookings(const State& state, AttemptId ended, std::vector<Change>& changes) {
  for (const auto& [job, booking] : state.bookings()) {
    const auto& victims = booking.victims;
    if (std::find(victims.begin(), victims.end(), ended) == victims.end()) continue;
    Booking freed = booking;
    std::erase(freed.victims, ended);
    for (InstanceUse& use : freed.instances) {
      for (DeviceUse& device : use.devices) {
        if (device.awaits == ended) device.awaits = AttemptId();
      }
      std::erase_if(use.awaited, [&](const AwaitedHost& host) { return host.attempt == ended; });
    }
    changes.emplace_back(PutBooking{std::move(freed)});
  }
}

// evaluate_on_exit: the first rule whose patterns match decides; none = retry.
bool wants_retry(const JobClass& cls, const AttemptEnd& end) {
  const std::string code = std::to_string(end.exit_code);
  for (const ExitRule& rule : cls.exit_rules) {
    const bool reason =
        rule.on_status_reason.empty() || glob_match(rule.on_status_reason, end.reason);
    const bool exit = rule.on_exit_code.empty() || glob_match(rule.on_exit_code, code);
    if (reason && exit) return rule.action == RetryAction::kRetry;
  }
  return true;
}

/// What becomes of the job; counts what the end costs it.
bool runs_again(Job& job, const JobClass& cls, StopCause stop, const AttemptEnd& end,
                std::string& reason) {
  switch (end.outcome) {
    case AttemptOutcome::kSucceeded:
    case AttemptOutcome::kTerminated:
    case AttemptOutcome::kTimedOut:
    case AttemptOutcome::kNone:
      return false;
    case AttemptOutcome::kPreempted:
      ++job.preemptions;
      if (cls.preemption_retries && job.preemptions > *cls.preemption_retries) {
        reason = fmt::format("Preempted {} times, preemption_retries_before_termination is {}: {}",
                             job.preemptions, *cls.preemption_retries, reason);
        return false;
      }
      return !job.terminating;
    case AttemptOutcome::kLost:
      if (end.lost_to_node) {
        if (stop == StopCause::kNodeDrain) return !job.terminating;
        if (++job.node_losses > kMaxNodeLosses) {
          reason = fmt::format("Lost {} times with its node, {} are allowed: {}", job.node_losses,
                               kMaxNodeLosses, reason);
          return false;
        }
        return !job.terminating;
      }
      break;
    case AttemptOutcome::kFailed:
    case AttemptOutcome::kStartFailed:
      break;
  }
  ++job.counted_attempts;
  return !job.terminating && job.counted_attempts < cls.max_attempts && wants_retry(cls, end);
}

// J2: only after an attempt that used up the retry strategy.
Duration backoff_of(const State& state, const Job& job, std::int32_t counted_before) {
  if (job.counted_attempts == counted_before) return Duration(0);
  return backoff_after(state.job_class(job.cls), job.counted_attempts);
}

// A preemption whose victim went down with its node gave nothing (invariant 6).
void lose_preemptions(const State& state, const Attempt& attempt, std::vector<Change>& changes) {
  for (const Preemption* record : state.preemptions_of(attempt.job)) {
    if (record->attempt != attempt.id || record->end != PreemptionEnd::kOpen) continue;
    Preemption lost = *record;
    lost.end = PreemptionEnd::kLost;
    lost.end_rule = "P10";
    changes.emplace_back(PutPreemption{std::move(lost)});
  }
}

}  // namespace

void end_attempt(Transaction& tx, const std::string& actor, AttemptId id, const AttemptEnd& end) {
  end_attempt_as(tx, actor, tx.state().attempt(id), end);
}

void end_attempt_as(Transaction& tx, const std::string& actor, Attempt attempt,
                    const AttemptEnd& end) {
  const State& state = tx.state();
  const AttemptId id = attempt.id;
  GPUQ_CHECK(attempt.live() && end.outcome != AttemptOutcome::kNone);
  attempt.outcome = end.outcome;
  attempt.exit_code = end.exit_code;
  attempt.lost_to_node = end.lost_to_node;
  attempt.ended_at = tx.now();
  attempt.status_reason = end.reason;
  Job job = state.job(attempt.job);
  std::string reason = end.reason;
  const std::int32_t counted = job.counted_attempts;
  const bool again = runs_again(job, state.job_class(job.cls), attempt.stop, end, reason);
  const bool succeeded = end.outcome == AttemptOutcome::kSucceeded;
  job.attempt = AttemptId();
  job.status_reason = job.terminating && !succeeded ? job.status_reason : reason;
  if (end.exit_code >= 0) job.exit_code = end.exit_code;
  if (again) {
    if (const Duration wait = backoff_of(state, job, counted); wait > Duration(0)) {
      job.retry_at = tx.now() + wait;
      tx.wake_at(job.retry_at);
    }
    job.state = waiting_state(job);  // A member of an array keeps its place (J5).
    job.runnable_since = tx.now();
  } else {
    job.state = succeeded ? JobState::kSucceeded : JobState::kFailed;
    job.ended_at = tx.now();
  }
  Event event = tx.job_event(EventType::kAttemptEnded, actor, job);
  event.attempt = id;
  event.detail = fmt::format("{}: {}", to_string(attempt.outcome), end.reason);
  event.changes.emplace_back(PutAttempt{attempt});
  event.changes.emplace_back(PutJob{job});
  free_bookings(state, id, event.changes);
  if (end.lost_to_node) lose_preemptions(state, attempt, event.changes);
  tx.emit(std::move(event));
  const EventType type = again       ? EventType::kJobRequeued
                         : succeeded ? EventType::kJobSucceeded
                                     : EventType::kJobFailed;
  Event fate = tx.job_event(type, actor, job);
  fate.detail = job.status_reason;
  tx.emit(std::move(fate));
  send_forgets(tx, attempt);
  if (!again) settle_dependants(tx, job.id);
}

void give_up_booking(const State& state, JobId id, const std::string& rule,
                     std::vector<Change>& changes) {
  if (state.find_booking(id) != nullptr) changes.emplace_back(DropBooking{id});
  const auto* open = state.open_preemptions(id);
  if (open == nullptr) return;
  for (const PreemptionId record : *open) {
    Preemption ended = state.preemptions().at(record);
    ended.end = PreemptionEnd::kVoided;
    ended.end_rule = rule;
    changes.emplace_back(PutPreemption{std::move(ended)});
  }
}

void end_waiting_job(Transaction& tx, const std::string& actor, JobId id,
                     const std::string& reason) {
  fail_waiting_job(tx, actor, id, reason, true);
  settle_dependants(tx, id);
}

void fail_waiting_job(Transaction& tx, const std::string& actor, JobId id,
                      const std::string& reason, bool cancelled) {
  const State& state = tx.state();
  if (state.find_array(id) != nullptr) return drop_members(tx, actor, id, reason, cancelled);
  Job job = state.job(id);
  GPUQ_CHECK(!is_terminal(job.state) && !is_active(job.state));
  std::vector<Change> changes;
  give_up_booking(state, id, "P7", changes);
  job.state = JobState::kFailed;
  job.terminating = cancelled;
  job.retry_at = kNoTime;
  job.over_array_limit = false;
  job.depends_on.clear();
  job.ended_at = tx.now();
  job.status_reason = reason;
  changes.emplace_back(PutJob{job});
  Event event = tx.job_event(EventType::kJobFailed, actor, job);
  event.detail = reason;
  event.changes = std::move(changes);
  tx.emit(std::move(event));
}

}  // namespace gpuq
