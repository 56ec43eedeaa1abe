#pragma once
// Addresses and directories that server, agent and command line agree on without any file.
#include <cstdint>
#include <string>

namespace gpuq {

/// gRPC port of gpuqd.
inline constexpr std::uint16_t kDefaultPort = 7070;
/// Address that gpuqd listens on and clients call.
inline constexpr const char* kDefaultHost = "127.0.0.1";

/// "127.0.0.1:7070".
std::string default_server_address();
/// /var/lib/gpuq as root, else $XDG_DATA_HOME/gpuq or ~/.local/share/gpuq.
std::string default_server_data_dir();
/// /var/lib/gpuq-agent as root, else $XDG_DATA_HOME/gpuq-agent or ~/.local/share/gpuq-agent.
std::string default_agent_state_dir();
/// Directory of the running executable, without trailing slash.
std::string executable_dir();
/// The release, as `--version` prints it.
const char* version();

}  // namespace gpuq
