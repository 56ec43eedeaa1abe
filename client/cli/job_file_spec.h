#pragma once
// A job file (YAML) as the job that is sent.
#include <string>
#include <vector>

#include "client/lib/client.h"
#include "common/policy/job_file.h"
#include "core/base/result.h"
#include "gpuq/v1/job.pb.h"

namespace gpuq::cli {

struct JobFileSpec {
  v1::JobSpec spec;
  std::vector<JobDependency> depends_on;  ///< Not yet in `spec`: names need a server.
};

/// kNotFound or kInvalidArgument; the message names file, line and key.
Result<JobFileSpec> read_job_file(const std::string& path);

/// Adds the dependencies to `spec`: an id as it is, any other word as the selectors of jobs, and
/// what is none of these as the name of one of the caller's jobs, the newest that has it.
Result<> resolve_dependencies(client::Client& client, const std::vector<JobDependency>& depends_on,
                              v1::JobSpec& spec);

}  // namespace gpuq::cli
