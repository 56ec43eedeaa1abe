#pragma once
// The UUID of a job, computed from the store's identity and the job's number, and back. Nothing is
// stored. Two stores give one number different UUIDs. Pure.
#include <optional>
#include <string>
#include <string_view>

#include "core/base/ids.h"

namespace gpuq::rpc {

/// Text form, version 8 (RFC 9562).
std::string job_uuid(std::string_view store_id, JobId job);
/// Nothing if `uuid` is no UUID of a job of that store.
std::optional<JobId> job_of_uuid(std::string_view store_id, std::string_view uuid);

}  // namespace gpuq::rpc
