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
  std::map<JobId, std::int32_t> arrays;  // What they had on offer.
  for (const JobId id : arrays_touched(state_, made)) {
    arrays[id] = state_.on_offer(*state_.find_array(id));
  }
  make_members(state_, made);
  state_.apply(made);
  for (const auto& [id, before] : arrays) renew_offer(made, id, before);
  if (config_.check_invariants) {
    const std::string fault = state_.sanity_check();
    GPUQ_CHECK_MSG(fault.empty(), fault);
  }
  made.changes.clear();
  events_.push_back(std::move(made));
  if (letting_in_) return;
  letting_in_ = true;
  for (const auto& [id, before] : arrays) let_members_in(*this, id);
  letting_in_ = false;
}

// Members without a record count as RUNNABLE since there was last none on offer.
void Transaction::renew_offer(const Event& cause, JobId id, std::int32_t before) {
  const JobArray* array = state_.find_array(id);
  if (before > 0 || array == nullptr || state_.on_offer(*array) == 0) return;
  Event change;
  change.at = cause.at;
  Job job = state_.job(id);
  job.runnable_since = now_;
  change.changes.emplace_back(PutJob{std::move(job)});
  state_.apply(change);
}

void settle_waiting(const State& state, Job& job, Time now) {
  job.over_array_limit = false;
  const JobArray* array = state.array_of(job.id);
  if (array != nullptr && waiting_state(job) == JobState::kRunnable) {
    // One that waits or runs already has its place.
    const JobState known = state.job(job.id).state;
    job.over_array_limit = known == JobState::kPending && !state.lets_in(*array, wait_key(job));
  }
  job.state = waiting_state(job);
  if (job.state == JobState::kRunnable) job.runnable_since = now;
}

Fence Transaction::fence(AttemptId attempt) const {
  return {state_.identity().store_id, state_.identity().epoch, attempt};
}

}  // namespace gpuq
