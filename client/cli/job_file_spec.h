#pragma once
// A job file (YAML) as the job that is sent.
#include <string>

#include "core/base/result.h"
#include "gpuq/v1/job.pb.h"

namespace gpuq::cli {

/// kNotFound or kInvalidArgument; the message names file, line and key.
Result<v1::JobSpec> read_job_file(const std::string& path);

}  // namespace gpuq::cli
