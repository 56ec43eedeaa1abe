#pragma once
// The keys of a job file, read from any map that may hold them: job files and scenario submits.
#include <vector>

#include "common/policy/job_file.h"
#include "common/policy/yaml_reader.h"

namespace gpuq {

/// Reads every key of the job file from `map`; the caller finishes the map.
void read_job_keys(MapReader& map, JobFile& job, std::vector<FileIssue>& issues);

/// Reads the job's name from `key`: 1..128 bytes without control characters.
void read_job_name(MapReader& map, const std::string& key, JobFile& job);

/// Issue unless `key` (read before into `amount`) is unset or within (0, 1,000,000].
void check_count(MapReader& map, const std::string& key, const std::optional<Amount>& amount);

}  // namespace gpuq
