#pragma once
// Job files: one job as YAML, to a plain struct. What the file leaves out stays unset, so that
// other sources (command line, environment, site defaults) can be laid over it. Pure; any thread.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/policy/file_issue.h"
#include "core/base/amount.h"
#include "core/base/time.h"
#include "core/model/array.h"
#include "core/model/job.h"

namespace gpuq {

struct JobDependency {
  std::string job;  ///< Id or name.
  DependencyCondition condition = DependencyCondition::kSucceeded;
  bool operator==(const JobDependency&) const = default;
};

struct JobFile {
  std::optional<std::string> name;
  std::optional<std::string> queue;
  std::optional<std::string> share;
  std::optional<std::int32_t> priority;  ///< 0..9999

  // resources, all per instance but `instances`
  std::vector<std::string> units;  ///< In order of preference; `unit: NAME` or `unit: [NAMES]`.
  std::optional<Amount> count;     ///< Of each unit; > 0. Only with units.
  std::optional<Amount> gpus;      ///< Any of the queue's GPU units; > 0. Excludes units.
  std::optional<std::int32_t> instances;  ///< 1..100000
  std::optional<std::int32_t> cpus;
  std::optional<std::int64_t> memory_mib;
  std::optional<std::string> topology_label;  ///< `topology: {label: NAME, required: true}`
  bool topology_required = false;

  std::vector<std::string> command;
  std::optional<std::string> image;
  std::optional<std::string> workdir;
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> labels;

  std::optional<Duration> timeout;            ///< Per attempt, 1 s .. 365 days.
  std::optional<Duration> expected_run_time;  ///< Likewise; at most the timeout.
  std::optional<std::int32_t> attempts;       ///< 1..10
  std::optional<Duration> backoff;            ///< At most 10 min.
  std::vector<ExitRule> exit_rules;           ///< At most 5.
  std::optional<bool> preemptible;
  std::optional<std::int32_t> preemption_retries;  ///< Before termination; unset = no limit.
  std::optional<Duration> grace;                   ///< At most 24 h.
  std::optional<bool> exit_zero_after_stop_succeeds;
  std::optional<ArrayRange> array;  ///< `array: 0-99%10`
  bool hold = false;
  std::vector<JobDependency> depends_on;
  bool operator==(const JobFile&) const = default;
};

struct ParsedJob {
  JobFile job;  ///< Incomplete where `issues` has errors.
  std::vector<FileIssue> issues;
};

/// Strict keys, types and ranges; all errors at once. Whether the parts suffice for a submission
/// (a command, say) is for the caller to judge.
ParsedJob parse_job_text(std::string_view text);

/// parse_job_text of a file. The Error is what read_policy_file says, or all errors of the file.
Result<JobFile> parse_job_file(const std::string& path);

}  // namespace gpuq
