#pragma once
// Submissions from the wire to the core: checks of shape, defaults, the opaque spec. Pure.
#include <cstdint>
#include <string>

#include "core/engine/command.h"
#include "gpuq/v1/job.pb.h"

namespace gpuq::rpc {

/// Limits of a request's shape; docs name them for users.
inline constexpr std::size_t kMaxCommandBytes = 1 << 20;
inline constexpr std::size_t kMaxEnvBytes = 1 << 20;
inline constexpr std::size_t kMaxUnits = 8;
inline constexpr std::size_t kMaxLabels = 50;
inline constexpr std::size_t kMaxExitRules = 5;
inline constexpr std::int64_t kMaxMilli = 1'000'000'000;
inline constexpr std::int64_t kMaxGraceMs = 86'400'000;
inline constexpr int kMaxBatchJobs = 5'000;

/// Everything that can be said without the state. kInvalidArgument with one sentence that names the
/// field and the value; kFailedPrecondition for what this release can not do.
Result<JobRequest> to_job_request(const v1::JobSpec& spec);

/// "" or a sentence.
std::string check_client_token(const std::string& token);

}  // namespace gpuq::rpc
