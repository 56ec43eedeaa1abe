#pragma once
// From options as written to the job that is sent.
#include <functional>
#include <optional>
#include <string>

#include "client/cli/options.h"
#include "core/base/result.h"
#include "core/model/array.h"
#include "gpuq/v1/job.pb.h"

namespace gpuq::cli {

/// Looks up an environment variable; nullopt if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;

/// What `above` says goes before what `below` says; lists of env and labels are joined.
JobOptions overlay(const JobOptions& above, const JobOptions& below);

/// GPUQ_QUEUE, GPUQ_SHARE, GPUQ_PRIORITY.
JobOptions options_from_environment(const Environment& environment);

/// Writes the options that are given into `spec`. kInvalidArgument names the option and the value.
Result<> apply_options(const JobOptions& options, const Environment& environment,
                       v1::JobSpec& spec);

void set_array(const ArrayRange& range, v1::JobSpec& spec);

/// What is wrong whatever the server's state: no command, text that is not UTF-8, a command that no
/// node can execute. Sizes as in job.proto.
Result<> check_spec(const v1::JobSpec& spec);

}  // namespace gpuq::cli
