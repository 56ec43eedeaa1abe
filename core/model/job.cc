#include "core/model/job.h"

#include <algorithm>
#include <tuple>

namespace gpuq {

namespace {

auto class_key(const JobClass& c) {
  return std::tie(c.units, c.instances, c.cpus, c.memory_mib, c.topology_label, c.topology_required,
                  c.timeout, c.grace, c.preemptible, c.exit_zero_after_stop_succeeds,
                  c.preemption_retries, c.max_attempts, c.exit_rules, c.backoff);
}

}  // namespace

bool JobClass::same_as(const JobClass& other) const { return class_key(*this) == class_key(other); }
bool JobClass::before(const JobClass& other) const { return class_key(*this) < class_key(other); }

Duration backoff_after(const JobClass& cls, std::int32_t counted) {
  Duration wait = std::min(cls.backoff, kMaxBackoff);
  for (std::int32_t n = 1; n < counted && wait < kMaxBackoff; ++n) {
    wait = std::min(wait * 2, kMaxBackoff);
  }
  return wait;
}

std::optional<std::int32_t> final_exit_code(const Job& job, const Attempt* last) {
  if (!is_terminal(job.state)) return std::nullopt;
  if (job.state == JobState::kSucceeded) return 0;
  const AttemptOutcome outcome = last == nullptr ? AttemptOutcome::kNone : last->outcome;
  if (outcome == AttemptOutcome::kTimedOut) return 124;
  if (outcome == AttemptOutcome::kPreempted && !job.terminating) return 125;
  if (outcome == AttemptOutcome::kLost) return 125;
  const std::int32_t code =
      last != nullptr && last->exit_code >= 0 ? last->exit_code : job.exit_code;
  return code > 0 ? code : 1;
}

const char* to_string(JobState state) {
  switch (state) {
    case JobState::kSubmitted:
      return "SUBMITTED";
    case JobState::kPending:
      return "PENDING";
    case JobState::kRunnable:
      return "RUNNABLE";
    case JobState::kScheduled:
      return "SCHEDULED";
    case JobState::kStarting:
      return "STARTING";
    case JobState::kRunning:
      return "RUNNING";
    case JobState::kSucceeded:
      return "SUCCEEDED";
    case JobState::kFailed:
      return "FAILED";
  }
  return "UNKNOWN";
}

const char* to_string(DependencyCondition condition) {
  switch (condition) {
    case DependencyCondition::kSucceeded:
      return "SUCCEEDED";
    case DependencyCondition::kFailed:
      return "FAILED";
    case DependencyCondition::kEnded:
      return "ENDED";
  }
  return "UNKNOWN";
}

const char* to_string(InstanceState state) {
  switch (state) {
    case InstanceState::kSent:
      return "SENT";
    case InstanceState::kStarting:
      return "STARTING";
    case InstanceState::kPrepared:
      return "PREPARED";
    case InstanceState::kRunning:
      return "RUNNING";
    case InstanceState::kExited:
      return "EXITED";
  }
  return "UNKNOWN";
}

const char* to_string(StopCause cause) {
  switch (cause) {
    case StopCause::kNone:
      return "NONE";
    case StopCause::kPreempted:
      return "PREEMPTED";
    case StopCause::kTerminated:
      return "TERMINATED";
    case StopCause::kTimeout:
      return "TIMEOUT";
    case StopCause::kNodeDrain:
      return "NODE_DRAIN";
    case StopCause::kGangMember:
      return "GANG_MEMBER";
  }
  return "UNKNOWN";
}

const char* to_string(AttemptOutcome outcome) {
  switch (outcome) {
    case AttemptOutcome::kNone:
      return "NONE";
    case AttemptOutcome::kSucceeded:
      return "SUCCEEDED";
    case AttemptOutcome::kFailed:
      return "FAILED";
    case AttemptOutcome::kStartFailed:
      return "START_FAILED";
    case AttemptOutcome::kPreempted:
      return "PREEMPTED";
    case AttemptOutcome::kTerminated:
      return "TERMINATED";
    case AttemptOutcome::kTimedOut:
      return "TIMED_OUT";
    case AttemptOutcome::kLost:
      return "LOST";
  }
  return "UNKNOWN";
}

const char* to_string(PreemptRule rule) {
  switch (rule) {
    case PreemptRule::kCrossShare:
      return "CROSS_SHARE";
    case PreemptRule::kInShare:
      return "IN_SHARE";
  }
  return "UNKNOWN";
}

}  // namespace gpuq
