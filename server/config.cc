#include "server/config.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "common/runtime/config_file.h"
#include "common/runtime/defaults.h"
#include "core/base/text.h"

namespace gpuq {

namespace {

struct HostPort {
  std::string host;
  int port = 0;
};

// "host:port" or "[v6]:port".
Result<HostPort> split_address(const std::string& address) {
  const auto colon = address.rfind(':');
  const Error wrong{ErrorCode::kInvalidArgument,
                    fmt::format("listen: {} is no address: write HOST:PORT, for instance {}",
                                quote(address), default_server_address())};
  if (colon == std::string::npos || colon == 0) return wrong;
  HostPort result;
  result.host = address.substr(0, colon);
  const std::string_view digits = std::string_view(address).substr(colon + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), result.port);
  if (error != std::errc() || end != digits.data() + digits.size() || result.port < 0 ||
      result.port > 65535) {
    return wrong;
  }
  if (result.host.starts_with('[') != result.host.ends_with(']')) return wrong;
  if (result.host.starts_with('[')) result.host = result.host.substr(1, result.host.size() - 2);
  return result;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return false;
}

void read_log(ConfigReader log, ServerConfig& config) {
  std::string text;
  log.read("level", text);
  if (!text.empty()) {
    if (auto level = parse_log_level(text)) {
      config.log_level = *level;
    } else {
      log.fail("level", level.error().message);
    }
  }
  text.clear();
  log.read("format", text);
  if (!text.empty()) {
    if (auto format = parse_log_format(text)) {
      config.log_format = *format;
    } else {
      log.fail("format", format.error().message);
    }
  }
}

void read_agents(ConfigReader agents, ServerConfig& config) {
  using std::chrono::hours, std::chrono::milliseconds, std::chrono::seconds;
  agents.read("heartbeat_interval", config.heartbeat_interval, milliseconds(100), seconds(60));
  agents.read("unreachable_after", config.unreachable_after, milliseconds(200), hours(24));
  agents.read("node_lost_timeout", config.node_lost_timeout, milliseconds(400), hours(24 * 30));
  if (config.unreachable_after < 2 * config.heartbeat_interval) {
    agents.fail("unreachable_after", "must be at least two heartbeat_intervals");
  }
  if (config.node_lost_timeout <= config.unreachable_after) {
    agents.fail("node_lost_timeout", "must be longer than unreachable_after");
  }
}

Result<ServerConfig> read_config(ConfigReader reader) {
  ServerConfig config = default_config();
  reader.read("data_dir", config.data_dir);
  if (config.data_dir.empty()) reader.fail("data_dir", "is empty: name a directory");
  reader.read("listen", config.listen);
  if (config.listen.empty()) reader.fail("listen", "is empty: name at least one address");
  for (const std::string& address : config.listen) {
    if (auto split = split_address(address); !split) {
      reader.fail("listen", fmt::format("{} is no address: write HOST:PORT", quote(address)));
    }
  }
  read_log(reader.section("log"), config);
  read_agents(reader.section("agents"), config);
  ConfigReader output = reader.section("output");
  output.read("cap_mib", config.output_cap_mib, 0, std::int64_t{1} << 30);
  ConfigReader history = reader.section("history");
  history.read("ended_jobs_in_memory", config.ended_jobs_in_memory, 0, 10'000'000);
  ConfigReader limits = reader.section("limits");
  limits.read("shares_per_queue", config.max_shares_per_queue, 1, 100'000);
  limits.read("units_per_share", config.max_units_per_share, 1, 1'000);
  ConfigReader stopping = reader.section("stopping");
  using std::chrono::hours;
  stopping.read("default_grace", config.default_grace, Duration(0), hours(24));
  stopping.read("unconfirmed_after", config.unconfirmed_stop_margin, Duration(100), hours(24));
  if (auto done = reader.finish(); !done) return done.error();
  return config;
}

}  // namespace

ServerConfig default_config() {
  ServerConfig config;
  config.data_dir = default_server_data_dir();
  config.listen = {default_server_address()};
  return config;
}

Result<ServerConfig> load_config(const std::string& path) {
  auto reader = ConfigReader::load(path);
  if (!reader) return reader.error();
  return read_config(std::move(*reader));
}

Result<ServerConfig> parse_config(const std::string& text, const std::string& name) {
  auto reader = ConfigReader::parse(text, name);
  if (!reader) return reader.error();
  return read_config(std::move(*reader));
}

Result<> check_config(const ServerConfig& config) {
  for (const std::string& address : config.listen) {
    auto split = split_address(address);
    if (!split) return split.error();
    if (config.insecure || is_loopback(split->host)) continue;
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("listen: {} can be reached from other machines, and callers are not "
                             "authenticated: listen on {} or accept the risk with --insecure",
                             quote(address), default_server_address())};
  }
  return {};
}

}  // namespace gpuq
