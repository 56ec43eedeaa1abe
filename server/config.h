#pragma once
// gpuqd's configuration: a YAML file over defaults that work without one. Values.
#include <cstdint>
#include <string>
#include <vector>

#include "common/runtime/log.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace gpuq {

/// Every field has its default here; config/gpuqd.yaml describes them.
struct ServerConfig {
  std::string data_dir;             ///< Set by default_config().
  std::vector<std::string> listen;  ///< "host:port"; port 0 = any free one.
  bool insecure = false;            ///< Only from the command line.
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;

  Duration heartbeat_interval{5'000};   ///< 100 ms .. 60 s
  Duration unreachable_after{30'000};   ///< Longer than two heartbeats.
  Duration node_lost_timeout{300'000};  ///< Longer than unreachable_after.

  std::int64_t output_cap_mib = 1024;  ///< Output of ended attempts, on disk.
  std::int64_t ended_jobs_in_memory = 10'000;
  std::int64_t max_shares_per_queue = 20;
  std::int64_t max_units_per_share = 5;
  Duration default_grace{30'000};
  Duration unconfirmed_stop_margin{60'000};
};

ServerConfig default_config();

/// Reads `path` over the defaults. kNotFound, or kInvalidArgument "FILE:LINE: KEY: what is wrong".
Result<ServerConfig> load_config(const std::string& path);
/// The same from text; `name` stands for the file in errors.
Result<ServerConfig> parse_config(const std::string& text, const std::string& name);

/// What can only be said when file and command line are put together: addresses. kInvalidArgument,
/// kPermissionDenied for an address of other machines without `insecure`.
Result<> check_config(const ServerConfig& config);

}  // namespace gpuq
