#include "core/model/event.h"

namespace gpuq {

const char* to_string(EventType type) {
  switch (type) {
    case EventType::kServerStarted:
      return "SERVER_STARTED";
    case EventType::kPolicyApplied:
      return "POLICY_APPLIED";
    case EventType::kNodeRegistered:
      return "NODE_REGISTERED";
    case EventType::kNodeChanged:
      return "NODE_CHANGED";
    case EventType::kJobSubmitted:
      return "JOB_SUBMITTED";
    case EventType::kJobUpdated:
      return "JOB_UPDATED";
    case EventType::kJobCancelRequested:
      return "JOB_CANCEL_REQUESTED";
    case EventType::kJobRequeued:
      return "JOB_REQUEUED";
    case EventType::kJobSucceeded:
      return "JOB_SUCCEEDED";
    case EventType::kJobFailed:
      return "JOB_FAILED";
    case EventType::kJobHeld:
      return "JOB_HELD";
    case EventType::kJobReleased:
      return "JOB_RELEASED";
    case EventType::kJobRunnable:
      return "JOB_RUNNABLE";
    case EventType::kBookingMade:
      return "BOOKING_MADE";
    case EventType::kBookingChanged:
      return "BOOKING_CHANGED";
    case EventType::kBookingVoided:
      return "BOOKING_VOIDED";
    case EventType::kAttemptScheduled:
      return "ATTEMPT_SCHEDULED";
    case EventType::kAttemptStarting:
      return "ATTEMPT_STARTING";
    case EventType::kAttemptRunning:
      return "ATTEMPT_RUNNING";
    case EventType::kAttemptStopping:
      return "ATTEMPT_STOPPING";
    case EventType::kAttemptEnded:
      return "ATTEMPT_ENDED";
    case EventType::kPreemptionStarted:
      return "PREEMPTION_STARTED";
    case EventType::kPreemptionEnded:
      return "PREEMPTION_ENDED";
    case EventType::kJobsArchived:
      return "JOBS_ARCHIVED";
    case EventType::kAccessDenied:
      return "ACCESS_DENIED";
  }
  return "UNKNOWN";
}

}  // namespace gpuq
