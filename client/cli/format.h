#pragma once
// Values as people read them.
#include <cstdint>
#include <string>

#include "gpuq/v1/job.pb.h"

namespace gpuq::cli {

/// "0s", "45s", "12m05s", "3h20m", "4d06h": two figures at most. Negative counts as 0.
std::string format_duration(std::int64_t ms);
/// "3m12s ago"; "" for a time that has not happened (0).
std::string format_ago(std::int64_t at_ms, std::int64_t now_ms);
/// "2026-03-01T12:00:00.123Z", "" for 0.
std::string format_rfc3339(std::int64_t at_ms);
/// "8", "0.25", "-1".
std::string format_milli(std::int64_t milli);
/// "16 GiB", "512 MiB".
std::string format_memory(std::int64_t mib);

/// "RUNNING", without the enum's prefix; "" for UNSPECIFIED.
std::string format_state(v1::JobState state);
std::string format_state(v1::AttemptState state);

/// "4x8 a100", "2 a100", "0.25 a100": instances only when more than one.
std::string format_request(std::int32_t instances, std::int64_t count_milli,
                           const std::string& unit);

/// "n-0,n-1", with more than three names "n-0,n-1,n-2+5".
std::string format_nodes(const google::protobuf::RepeatedPtrField<std::string>& names);

/// Program and arguments, quoted as a shell would need it.
std::string format_command(const google::protobuf::RepeatedPtrField<std::string>& words);

/// "17"; "17.3" for a member of an array. `Job` is a whole job or a row.
template <typename Job>
std::string format_id(const Job& job) {
  if (!job.has_member_of()) return std::to_string(job.job_id());
  return std::to_string(job.member_of().array_job_id()) + "." +
         std::to_string(job.member_of().index());
}
/// "0-99%10: 10 running, 85 pending, 5 succeeded".
std::string format_array(const v1::ArrayInfo& array);

bool is_terminal(v1::JobState state);
bool is_waiting(v1::JobState state);

}  // namespace gpuq::cli
