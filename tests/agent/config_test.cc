// Configuration and discovery of devices.
#include "agent/config.h"

#include <gmock/gmock.h>

#include "agent/devices/nvml.h"
#include "tests/agent/support.h"

namespace gpuq::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConfigTest : public ::testing::Test {
 protected:
  Result<void> load(const std::string& text) {
    path = dir.path() + "/agent.yaml";
    EXPECT_TRUE(write_file(path, text, Durability::kAtomicOnly).has_value());
    config = default_agent_config();
    return load_agent_config(path, config);
  }
  std::string error_of(const std::string& text) {
    auto loaded = load(text);
    if (loaded) return "no error";
    return loaded.error().message.substr(path.size());
  }
  // Builds the stand-in for NVML; returns its path.
  std::string build_nvml(const std::string& flags) {
    const std::string library = dir.path() + "/libfake-nvml.so";
    const std::string command = "cc -shared -fPIC " + flags + " -o " + library + " " +
                                GPUQ_SOURCE_DIR + "/tests/agent/fake_nvml.c";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return library;
  }

  TempDir dir;
  std::string path;
  AgentConfig config;
};

TEST_F(ConfigTest, NeedsNoFile) {
  config = default_agent_config();
  EXPECT_EQ(config.server, "127.0.0.1:7070");
  config.allow_root = true;
  config.shim_path = bin("gpuq-shim");
  ASSERT_TRUE(complete_agent_config(config).has_value());
  EXPECT_FALSE(config.node_name.empty());
  EXPECT_GT(config.cpus, 0);
  EXPECT_GT(config.memory_mib, 0);
  EXPECT_EQ(config.address, "127.0.0.1");
}

TEST_F(ConfigTest, ReadsEveryKey) {
  ASSERT_TRUE(load("server: head:7071\nnode_name: n1\nstate_dir: /s\nlabels: {pool: training}\n"
                   "cpus: 8\nmemory: 16GiB\nallow_root: true\noutput_cap: 1MiB\numask: \"077\"\n"
                   "devices: {kind: fake, model: A10G, count: 2, memory: 24GiB}\n"
                   "log: {level: debug, format: json}\n")
                  .has_value());
  EXPECT_EQ(config.server, "head:7071");
  EXPECT_EQ(config.memory_mib, 16384);
  EXPECT_EQ(config.umask, 077);
  EXPECT_EQ(config.labels.at("pool"), "training");
  ASSERT_EQ(config.fake.size(), 1U);
  EXPECT_EQ(config.fake[0].count, 2U);
  EXPECT_EQ(config.fake[0].memory_mib, 24576);
}

TEST_F(ConfigTest, TheShippedFileIsValid) {
  config = default_agent_config();
  const auto loaded =
      load_agent_config(std::string(GPUQ_SOURCE_DIR) + "/config/gpuq-agent.yaml", config);
  EXPECT_TRUE(loaded.has_value());
}

TEST_F(ConfigTest, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(error_of("server: a\nnode_nam: x\n"), HasSubstr(":2: node_nam: unknown key; known"));
  EXPECT_THAT(error_of("cpus: many\n"), HasSubstr(":1: cpus: 'many' must be a whole number"));
  EXPECT_THAT(error_of("cpus: 0\n"), HasSubstr(":1: cpus: '0'"));
  EXPECT_THAT(error_of("memory: 16GB\n"), HasSubstr(":1: memory: '16GB' is no size"));
  EXPECT_THAT(error_of("devices: fake:x\n"), HasSubstr(":1: devices: 'x' names no fake devices"));
  EXPECT_THAT(error_of("labels: [a]\n"), HasSubstr(":1: labels: must be a map"));
  EXPECT_THAT(error_of("\nlog:\n  level: loud\n"), HasSubstr(":3: log.level: log level 'loud'"));
  EXPECT_THAT(error_of("log: {colour: red}\n"), HasSubstr(":1: log.colour: unknown key"));
  EXPECT_THAT(error_of("umask: \"999\"\n"), HasSubstr(":1: umask: '999'"));
  EXPECT_THAT(error_of("a: [\n"), HasSubstr("no valid YAML"));
  EXPECT_THAT(error_of("just text\n"), HasSubstr(":1: the file must be a map"));
}

TEST_F(ConfigTest, AMissingFileIsAnError) {
  config = default_agent_config();
  const auto loaded = load_agent_config(dir.path() + "/none.yaml", config);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, ErrorCode::kNotFound);
}

TEST_F(ConfigTest, RefusesRootUnlessTold) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  config = default_agent_config();
  config.shim_path = bin("gpuq-shim");
  const auto done = complete_agent_config(config);
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message, HasSubstr("--allow-root"));
}

TEST_F(ConfigTest, FakeDevicesKeepTheirUuids) {
  config = default_agent_config();
  config.node_name = "n1";
  ASSERT_TRUE(set_devices("fake:2xA10G,1xH100", config).has_value());
  const auto devices = find_devices(config).value();
  const auto again = find_devices(config).value();
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[0].uuid, again[0].uuid);
  EXPECT_NE(devices[0].uuid, devices[1].uuid);
  EXPECT_EQ(devices[2].model, "H100");
  EXPECT_EQ(devices[0].uuid.size(), 40U);
  EXPECT_EQ(devices[0].uuid.substr(0, 4), "GPU-");
  config.node_name = "n2";
  EXPECT_NE(find_devices(config).value()[0].uuid, devices[0].uuid);
}

TEST_F(ConfigTest, FindsDevicesThroughNvml) {
  const auto devices = discover_nvml(build_nvml("")).value();
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[0].model, "A100");
  EXPECT_EQ(devices[0].memory_mib, 81920);
  EXPECT_EQ(devices[0].pci_address, "00000000:01:00.0");
  EXPECT_THAT(devices[0].link_peers, ElementsAre(devices[1].uuid));
  EXPECT_THAT(devices[1].link_peers, ElementsAre(devices[0].uuid));
  EXPECT_TRUE(devices[0].usable);
  EXPECT_FALSE(devices[2].usable);
  EXPECT_EQ(devices[2].unusable_reason, "its memory cannot be read: GPU is lost");
}

TEST_F(ConfigTest, ADriverThatDoesNotStartIsAnError) {
  const auto devices = discover_nvml(build_nvml("-DBROKEN"));
  ASSERT_FALSE(devices.has_value());
  EXPECT_EQ(devices.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(devices.error().message, HasSubstr("version mismatch"));
}

TEST_F(ConfigTest, ANamedLibraryMustExistButNoDriverMeansNoDevices) {
  config = default_agent_config();
  config.nvml_lib = dir.path() + "/none.so";
  EXPECT_FALSE(find_devices(config).has_value());
  EXPECT_EQ(discover_nvml(config.nvml_lib).error().code, ErrorCode::kNotFound);
}

TEST(ShortModel, FollowsTheNamesPeopleUse) {
  EXPECT_EQ(short_model("NVIDIA A10G"), "A10G");
  EXPECT_EQ(short_model("NVIDIA A100-SXM4-80GB"), "A100");
  EXPECT_EQ(short_model("NVIDIA H100 80GB HBM3"), "H100");
  EXPECT_EQ(short_model("Tesla V100-SXM2-16GB"), "V100");
  EXPECT_EQ(short_model("NVIDIA GeForce RTX 3090"), "RTX3090");
}

}  // namespace
}  // namespace gpuq::agent
