#include "core/engine/transaction.h"

#include "core/base/check.h"

namespace gpuq {

Event Transaction::event(EventType type, const std::string& actor) const {
  Event made;
  made.type = type;
  made.actor = actor;
  made.at = now_;
  made.wall_ms = to_ms(now_) + config_.wall_offset_ms;
  return made;
}

Event Transaction::job_event(EventType type, const std::string& actor, const Job& job) const {
  Event made = event(type, actor);
  made.job = job.id;
  made.attempt = job.attempt;
  made.queue = job.queue;
  made.share = job.share;
  made.job_state = job.state;
  return made;
}

void Transaction::emit(Event made) {
  made.id = EventId(state_.mutable_counters().next_event++);
  state_.apply(made);
  if (config_.check_invariants) {
    const std::string fault = state_.sanity_check();
    GPUQ_CHECK_MSG(fault.empty(), fault);
  }
  made.changes.clear();
  events_.push_back(std::move(made));
}

void settle_waiting(Job& job, Time now) {
  job.state = waiting_state(job);
  if (job.state == JobState::kRunnable) job.runnable_since = now;
}

Fence Transaction::fence(AttemptId attempt) const {
  return {state_.identity().store_id, state_.identity().epoch, attempt};
}

}  // namespace gpuq
