// From decisions to events: what a plan says becomes attempts, bookings, stops and records.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/engine/invariants.h"
#include "core/engine/node_events.h"
#include "core/engine/transaction.h"

namespace gpuq {

namespace {

const std::string kScheduler;  // Events of the scheduler name no caller.

std::string numbers_text(const State& state, const Decision& d) {
  const Unit* unit = state.policy().unit(d.unit);
  return fmt::format("rule {}: {} {}, share holds {} of cap {}, free {}, reserved {}, lendable {}",
                     d.rule, to_string(d.demand), unit == nullptr ? "?" : unit->def.name,
                     to_string(d.numbers.held), to_string(d.numbers.cap), to_string(d.numbers.free),
                     to_string(d.numbers.reserved), to_string(d.numbers.lendable));
}

void add_records(const State& state, JobId beneficiary, std::vector<Change>& changes,
                 auto&& change_record) {
  const auto* open = state.open_preemptions(beneficiary);
  if (open == nullptr) return;
  for (const PreemptionId id : *open) {
    Preemption record = state.preemptions().at(id);
    if (change_record(record)) changes.emplace_back(PutPreemption{std::move(record)});
  }
}

void start(Transaction& tx, const Decision& d) {
  State& state = tx.state();
  if (tx.config().check_invariants) check_start(state, d);
  Job job = state.job(d.job);
  GPUQ_CHECK(job.state == JobState::kRunnable);
  Attempt attempt;
  attempt.id = AttemptId(state.mutable_counters().next_attempt++);
  attempt.job = job.id;
  attempt.number = ++job.attempt_count;
  attempt.share = d.share;
  attempt.unit = d.unit;
  attempt.demand = d.demand;
  attempt.scheduled_at = tx.now();
  for (const InstanceUse& use : d.uses) attempt.instances.push_back({use});
  job.attempt = attempt.id;
  job.state = JobState::kScheduled;
  job.status_reason.clear();
  Event event = tx.job_event(EventType::kAttemptScheduled, kScheduler, job);
  event.detail = numbers_text(state, d);
  if (d.borrows) event.detail += ", borrows";
  if (state.find_booking(d.job) != nullptr) event.changes.emplace_back(DropBooking{d.job});
  event.changes.emplace_back(PutAttempt{attempt});
  event.changes.emplace_back(PutJob{job});
  add_records(state, d.job, event.changes, [](Preemption& record) {
    record.end = PreemptionEnd::kGiven;
    return true;
  });
  // The attempt's holding needs its job's record, which is there; the job's index needs no attempt.
  tx.emit(std::move(event));
  for (std::size_t i = 0; i < attempt.instances.size(); ++i) {
    send_start(tx, attempt, static_cast<std::int32_t>(i));
  }
}

void evict(Transaction& tx, const Decision& d, const Eviction& eviction) {
  State& state = tx.state();
  const Attempt& attempt = state.attempt(eviction.attempt);
  Job victim = state.job(eviction.job);
  const char* reason = preemption_reason(eviction.rule);
  victim.status_reason = fmt::format("PREEMPTION_IN_PROGRESS: {}", reason);
  Preemption record;
  record.id = PreemptionId(state.mutable_counters().next_preemption++);
  record.attempt = eviction.attempt;
  record.job = eviction.job;
  record.beneficiary = d.job;
  record.rule = eviction.rule;
  record.at = tx.now();
  if (attempt.running_at != kNever) {
    record.lost_unit_ms = attempt.demand.milli * (tx.now() - attempt.running_at).count() / 1000;
  }
  Event event = tx.job_event(EventType::kPreemptionStarted, kScheduler, victim);
  event.detail = fmt::format("by job {} ({}), rule {}, {} unit-seconds lost", d.job.value,
                             to_string(eviction.rule), d.rule, record.lost_unit_ms / 1000);
  event.changes.emplace_back(PutPreemption{std::move(record)});
  tx.emit(std::move(event));
  const Duration grace = grace_of(tx.state(), victim);
  stop_attempt(tx, kScheduler, eviction.attempt, StopCause::kPreempted, grace, reason,
               {PutJob{victim}});
}

void book(Transaction& tx, const Decision& d) {
  for (const Eviction& eviction : d.evictions) evict(tx, d, eviction);
  State& state = tx.state();
  Booking booking;
  booking.job = d.job;
  booking.share = d.share;
  booking.unit = d.unit;
  booking.demand = d.demand;
  booking.made_at = tx.now();
  booking.instances = d.uses;
  booking.victims = d.awaits;
  Event event = tx.job_event(EventType::kBookingMade, kScheduler, state.job(d.job));
  event.detail = fmt::format("{}, waits for {} attempts, stops {}", numbers_text(state, d),
                             d.awaits.size(), d.evictions.size());
  event.changes.emplace_back(PutBooking{std::move(booking)});
  tx.emit(std::move(event));
}

void void_booking(Transaction& tx, const Decision& d) {
  const State& state = tx.state();
  Event event = tx.job_event(EventType::kBookingVoided, kScheduler, state.job(d.job));
  event.detail = fmt::format("rule {}", d.rule);
  if (d.handed_to.valid()) event.detail += fmt::format(", to job {}", d.handed_to.value);
  event.changes.emplace_back(DropBooking{d.job});
  add_records(state, d.job, event.changes, [&d](Preemption& record) {
    if (d.handed_to.valid()) {
      record.beneficiary = d.handed_to;
      ++record.handed;
    } else {
      record.end = PreemptionEnd::kVoided;
      record.end_rule = d.rule;
    }
    return true;
  });
  tx.emit(std::move(event));
}

void shrink_booking(Transaction& tx, const Decision& d) {
  const State& state = tx.state();
  const Booking* old = state.find_booking(d.job);
  GPUQ_CHECK(old != nullptr);
  Booking booking = *old;
  booking.lacking = true;
  booking.demand = d.demand;
  booking.instances = d.uses;
  booking.victims = d.awaits;
  Event event = tx.job_event(EventType::kBookingChanged, kScheduler, state.job(d.job));
  event.detail = fmt::format("rule {}: job {} takes what it needs, {} are kept", d.rule,
                             d.handed_to.value, to_string(d.demand));
  event.changes.emplace_back(PutBooking{std::move(booking)});
  add_records(state, d.job, event.changes, [&](Preemption& record) {
    const bool kept = std::find(d.awaits.begin(), d.awaits.end(), record.attempt) != d.awaits.end();
    if (kept) return false;
    record.beneficiary = d.handed_to;
    ++record.handed;
    return true;
  });
  tx.emit(std::move(event));
}

}  // namespace

void carry_out(Transaction& tx, const Decision& decision) {
  switch (decision.kind) {
    case DecisionKind::kStart:
      return start(tx, decision);
    case DecisionKind::kBook:
      return book(tx, decision);
    case DecisionKind::kVoidBooking:
      return void_booking(tx, decision);
    case DecisionKind::kShrinkBooking:
      return shrink_booking(tx, decision);
  }
}

}  // namespace gpuq
