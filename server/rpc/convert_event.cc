#include "server/rpc/convert_event.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/text.h"
#include "server/rpc/convert_job.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

constexpr std::string_view kAgentActor = "agent:";
constexpr std::size_t kStoreMark = 8;  // bytes of the store id in a token

v1::EventType type_of(EventType type) {
  switch (type) {
    case EventType::kServerStarted:
      return v1::EVENT_TYPE_SERVER_STARTED;
    case EventType::kPolicyApplied:
      return v1::EVENT_TYPE_POLICY_CHANGED;
    case EventType::kNodeRegistered:
    case EventType::kNodeChanged:
      return v1::EVENT_TYPE_NODE_CHANGED;
    case EventType::kJobSubmitted:
      return v1::EVENT_TYPE_JOB_SUBMITTED;
    case EventType::kJobUpdated:
    case EventType::kJobHeld:
    case EventType::kJobReleased:
      return v1::EVENT_TYPE_JOB_UPDATED;
    case EventType::kJobCancelRequested:
      return v1::EVENT_TYPE_JOB_CANCEL_REQUESTED;
    case EventType::kJobRequeued:
    case EventType::kJobRunnable:
      return v1::EVENT_TYPE_JOB_STATE_CHANGED;
    case EventType::kJobSucceeded:
    case EventType::kJobFailed:
      return v1::EVENT_TYPE_JOB_ENDED;
    case EventType::kBookingMade:
    case EventType::kBookingChanged:
      return v1::EVENT_TYPE_BOOKING_MADE;
    case EventType::kBookingVoided:
      return v1::EVENT_TYPE_BOOKING_ENDED;
    case EventType::kAttemptScheduled:
      return v1::EVENT_TYPE_ATTEMPT_SCHEDULED;
    case EventType::kAttemptStarting:
      return v1::EVENT_TYPE_ATTEMPT_STARTING;
    case EventType::kAttemptRunning:
      return v1::EVENT_TYPE_ATTEMPT_RUNNING;
    case EventType::kAttemptStopping:
    case EventType::kPreemptionStarted:
      return v1::EVENT_TYPE_ATTEMPT_STOPPING;
    case EventType::kAttemptEnded:
      return v1::EVENT_TYPE_ATTEMPT_ENDED;
    case EventType::kPreemptionEnded:
    case EventType::kJobsArchived:
    case EventType::kAccessDenied:
      return v1::EVENT_TYPE_UNSPECIFIED;
  }
  return v1::EVENT_TYPE_UNSPECIFIED;
}

void fill_attempt(const State& state, const Event& event, v1::Event& out) {
  const Attempt* attempt = state.find_attempt(event.attempt);
  if (attempt == nullptr) return;
  out.set_attempt(attempt->number);
  out.set_attempt_state(attempt_state(*attempt));
  std::set<NodeId> seen;
  for (const AttemptInstance& instance : attempt->instances) {
    const Node* node = state.find_node(instance.use.node);
    if (node != nullptr && seen.insert(node->id).second) out.add_node_names(node->name);
  }
}

void fill_preemption(const State& state, const Event& event, v1::Event& out) {
  if (event.type != EventType::kPreemptionStarted && event.type != EventType::kAttemptStopping) {
    return;
  }
  const auto records = state.preemptions_of(event.job);
  const auto it = std::ranges::find(records, event.attempt, &Preemption::attempt);
  if (it == records.end()) return;
  out.set_preemption_rule(to_proto((*it)->rule));
  out.set_by_job_id((*it)->beneficiary.value);
}

void fill_job(const State& state, const Event& event, v1::Event& out) {
  out.set_job_id(event.job.value);
  out.set_job_state(to_proto(event.job_state));
  const Job* job = state.find_job(event.job);
  if (job == nullptr) return;
  out.set_job_name(job->name);
  if (is_terminal(event.job_state)) {
    const auto attempts = state.attempts_of(job->id);
    if (const auto code = final_exit_code(*job, attempts.empty() ? nullptr : attempts.back())) {
      out.set_final_exit_code(*code);
    }
  }
}

}  // namespace

bool fill_event(const State& state, const Event& event, v1::Event& out) {
  out.set_type(type_of(event.type));
  if (out.type() == v1::EVENT_TYPE_UNSPECIFIED) return false;
  out.set_sequence(event.id.value);
  out.set_at_ms(event.wall_ms != 0 ? event.wall_ms : to_ms(event.at));
  if (event.job.valid()) fill_job(state, event, out);
  if (event.attempt.valid()) {
    fill_attempt(state, event, out);
    fill_preemption(state, event, out);
  }
  if (const Queue* queue = state.policy().queue(event.queue)) {
    out.set_job_queue(queue->def.name);
  }
  if (const Share* share = state.policy().share(event.share)) {
    out.set_quota_share_name(share->def.name);
  }
  const Node* node = state.find_node(event.node);
  if (node != nullptr && out.node_names().empty()) out.add_node_names(node->name);
  out.set_status_reason(event.detail);
  if (!event.actor.empty()) {
    v1::CallerInfo& caller = *out.mutable_caller();
    caller.set_user(event.actor);
    caller.set_method(event.actor.starts_with(kAgentActor) ? "agent" : "");
  }
  return true;
}

std::string resume_token(std::string_view store_id, EventId event) {
  return std::string(store_id.substr(0, kStoreMark)) + "." + std::to_string(event.value);
}

Result<EventId> read_resume_token(std::string_view store_id, std::string_view token) {
  const auto dot = token.rfind('.');
  std::int64_t value = -1;
  if (dot != std::string_view::npos) {
    const std::string_view digits = token.substr(dot + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) value = -1;
  }
  if (value < 0) {
    return invalid("resume_token " + quote(token) + " is no token of this service");
  }
  if (token.substr(0, dot) != store_id.substr(0, kStoreMark)) {
    return Error{ErrorCode::kOutOfRange,
                 "resume_token " + quote(token) + " is from another store: watch without a token"};
  }
  return EventId(value);
}

}  // namespace gpuq::rpc
