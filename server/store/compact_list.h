#pragma once
// Lists of integer tuples as text, "1:2:3,4:5:6", for columns that are only read and written whole.
// Readable in a shell, and a migration can still take them apart. Pure functions; any thread.
#include <string>
#include <string_view>
#include <vector>

#include "core/model/job.h"

namespace gpuq::store {

/// "device:milli" or, where an exit is awaited, "device:milli:attempt".
std::string pack(const std::vector<DeviceUse>& devices);
/// "attempt:cpus:memory_mib".
std::string pack(const std::vector<AwaitedHost>& hosts);
/// "attempt".
std::string pack(const std::vector<AttemptId>& attempts);
/// "job:condition".
std::string pack(const std::vector<Dependency>& dependencies);
/// Runs of consecutive ids: "first:count".
std::string pack(const std::vector<JobId>& jobs);

/// The inverses. False when the text is not what pack() makes; then the list is unspecified.
[[nodiscard]] bool unpack(std::string_view text, std::vector<DeviceUse>& devices);
[[nodiscard]] bool unpack(std::string_view text, std::vector<AwaitedHost>& hosts);
[[nodiscard]] bool unpack(std::string_view text, std::vector<AttemptId>& attempts);
[[nodiscard]] bool unpack(std::string_view text, std::vector<Dependency>& dependencies);
[[nodiscard]] bool unpack(std::string_view text, std::vector<JobId>& jobs);

}  // namespace gpuq::store
