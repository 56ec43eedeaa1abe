#include "client/cli/exit_code.h"

#include "gpuq/v1/job.pb.h"

namespace gpuq::cli {

int exit_code(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kOutOfRange:
      return kUsage;
    case ErrorCode::kNotFound:
      return kNotFound;
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kFailedPrecondition:
    case ErrorCode::kPermissionDenied:
    case ErrorCode::kUnauthenticated:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kAborted:
      return kRefused;
    case ErrorCode::kNeverFits:
      return kNeverFits;
    case ErrorCode::kUnavailable:
      return kUnreachable;
    case ErrorCode::kDataLoss:
    case ErrorCode::kInternal:
      break;
  }
  return kFailed;
}

int exit_code(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_SUCCEEDED) return kDone;
  if (job.has_final_exit_code() && job.final_exit_code() != 0) return job.final_exit_code();
  if (job.attempts().empty()) return kFailed;
  const v1::Attempt& last = job.attempts(job.attempts_size() - 1);
  switch (last.state()) {
    case v1::ATTEMPT_STATE_TIMED_OUT:
      return kJobTimeLimit;
    case v1::ATTEMPT_STATE_PREEMPTED:
    case v1::ATTEMPT_STATE_LOST:
      return kJobLost;
    default:
      break;
  }
  return last.has_exit_code() && last.exit_code() != 0 ? last.exit_code() : kFailed;
}

}  // namespace gpuq::cli
