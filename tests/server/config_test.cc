#include "server/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/runtime/defaults.h"

namespace gpuq {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ServerConfig, WorksWithoutAFile) {
  const ServerConfig config = default_config();
  EXPECT_EQ(config.listen, std::vector<std::string>{default_server_address()});
  EXPECT_FALSE(config.data_dir.empty());
  EXPECT_TRUE(check_config(config));
}

TEST(ServerConfig, TheShippedFileHoldsTheDefaults) {
  const auto config = load_config(GPUQ_SOURCE_DIR "/config/gpuqd.yaml");
  ASSERT_TRUE(config) << config.error().message;
  const ServerConfig defaults = default_config();
  EXPECT_EQ(config->listen, defaults.listen);
  EXPECT_EQ(config->data_dir, defaults.data_dir);
  EXPECT_EQ(config->node_lost_timeout, defaults.node_lost_timeout);
  EXPECT_EQ(config->heartbeat_interval, defaults.heartbeat_interval);
  EXPECT_EQ(config->unreachable_after, defaults.unreachable_after);
  EXPECT_EQ(config->output_cap_mib, defaults.output_cap_mib);
  EXPECT_EQ(config->ended_jobs_in_memory, defaults.ended_jobs_in_memory);
  EXPECT_EQ(config->unconfirmed_stop_margin, defaults.unconfirmed_stop_margin);
}

TEST(ServerConfig, ReadsEveryKey) {
  const auto config = parse_config(
      "data_dir: /srv/gpuq\n"
      "listen: ['127.0.0.1:1', '[::1]:2']\n"
      "log: {level: debug, format: json}\n"
      "agents: {heartbeat_interval: 1s, unreachable_after: 3s, node_lost_timeout: 10s}\n"
      "output: {cap_mib: 1}\n"
      "history: {ended_jobs_in_memory: 5}\n"
      "limits: {shares_per_queue: 100, units_per_share: 9}\n"
      "stopping: {default_grace: 1s, unconfirmed_after: 2s}\n",
      "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->data_dir, "/srv/gpuq");
  EXPECT_EQ(config->listen.size(), 2U);
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
  EXPECT_EQ(config->log_format, LogFormat::kJson);
  EXPECT_EQ(config->node_lost_timeout, Duration(10'000));
  EXPECT_EQ(config->max_shares_per_queue, 100);
  EXPECT_EQ(config->max_units_per_share, 9);
  EXPECT_EQ(config->default_grace, Duration(1'000));
}

TEST(ServerConfig, ErrorsNameFileLineAndKey) {
  const std::pair<const char*, const char*> cases[] = {
      {"data_dir: /x\nlissen: 1\n", "f:2: lissen"},
      {"log:\n  level: loud\n", "f:2: "},
      {"agents:\n  node_lost_timeout: soon\n", "f:2: "},
      {"listen: nowhere\n", "f:1: listen"},
      {"output: {cap_mib: -1}\n", "f:1: "},
      {"agents: {unreachable_after: 1s}\n", "f:1: "},
  };
  for (const auto& [text, expected] : cases) {
    const auto config = parse_config(text, "f");
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(config.error().message, StartsWith(expected)) << text;
  }
  EXPECT_EQ(load_config("/does/not/exist.yaml").error().code, ErrorCode::kNotFound);
}

TEST(ServerConfig, OtherMachinesAreLetInOnlyWhenToldTo) {
  ServerConfig config = default_config();
  for (const char* address : {"0.0.0.0:7070", "10.0.0.1:7070", "[::]:7070", "head:7070"}) {
    config.insecure = false;
    config.listen = {address};
    auto checked = check_config(config);
    ASSERT_FALSE(checked) << address;
    EXPECT_EQ(checked.error().code, ErrorCode::kPermissionDenied);
    EXPECT_THAT(checked.error().message, HasSubstr("--insecure"));
    config.insecure = true;
    EXPECT_TRUE(check_config(config)) << address;
  }
  config.insecure = false;
  for (const char* address : {"127.0.0.1:0", "localhost:7070", "[::1]:7070", "127.9.9.9:1"}) {
    config.listen = {address};
    EXPECT_TRUE(check_config(config)) << address;
  }
  for (const char* address : {"7070", ":7070", "127.0.0.1:", "127.0.0.1:70000", "[::1:7"}) {
    config.listen = {address};
    EXPECT_EQ(check_config(config).error().code, ErrorCode::kInvalidArgument) << address;
  }
}

}  // namespace
}  // namespace gpuq
