#pragma once
// The exit status of `gpuq`, see README "Exit codes".
#include "core/base/result.h"

namespace gpuq::v1 {
class Job;
}

namespace gpuq::cli {

enum ExitCode : int {
  kDone = 0,
  kFailed = 1,  ///< The job or the check failed.
  kUsage = 2,   ///< The command line or a file is wrong.
  kNotFound = 3,
  kRefused = 4,      ///< Rights, policy, state, or something is full.
  kNeverFits = 5,    ///< Can never be placed.
  kUnreachable = 6,  ///< No server.
  kTimedOut = 7,     ///< A wait of this program ended; the job goes on.
  kJobTimeLimit = 124,
  kJobLost = 125,  ///< Preempted for good, or lost with its node.
  kInterrupted = 130,
};

int exit_code(const Error& error);

/// What `wait` and `run` return for a job that has ended: its own code, 128 + signal, 124, 125, or
/// 1 when it failed without any.
int exit_code(const v1::Job& job);

}  // namespace gpuq::cli
