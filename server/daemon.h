#pragma once
// The daemon: store, engine and RPC server around one event loop, from start to graceful stop.
#include <string>

#include "core/base/result.h"
#include "server/config.h"

namespace gpuq {

/// Runs until SIGTERM or SIGINT, on the calling thread. `port_file` ("" = none) gets the port of
/// the first address once calls are taken. kFailedPrecondition: the data directory is in use or of
/// a newer release; kUnavailable: an address is taken; kDataLoss.
Result<> run_daemon(const ServerConfig& config, const std::string& port_file);

}  // namespace gpuq
