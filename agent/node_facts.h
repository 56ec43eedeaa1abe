#pragma once
// What this machine is: read once at start.
#include <cstdint>
#include <string>

namespace gpuq::agent {

/// Host name without domain.
std::string host_name();
/// CPUs that this process may use.
std::uint32_t cpu_count();
/// Memory in MiB; the smaller of the machine's and that of the cgroup (v2 or v1) where there is a
/// limit.
std::int64_t memory_mib();
/// Name of the account that we run as, or its number.
std::string account_name();
/// Own address on the way to `server` ("host:port"): the one under which the server's network sees
/// us. Host name if there is no way. May ask the resolver; call before the loop runs.
std::string address_towards(const std::string& server);

}  // namespace gpuq::agent
