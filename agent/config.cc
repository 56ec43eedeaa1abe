#include "agent/config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "agent/node_facts.h"
#include "common/runtime/config_file.h"
#include "common/runtime/defaults.h"
#include "common/runtime/log.h"

namespace gpuq::agent {
namespace {

constexpr std::int64_t kMostCpus = 65'536;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::size_t kLongestName = 253;

void read_devices(ConfigReader& file, AgentConfig& config) {
  if (!file.is_map("devices")) {
    std::string text;
    file.read("devices", text);
    if (text.empty()) return;
    if (auto set = set_devices(text, config); !set) file.fail("devices", set.error().message);
    return;
  }
  ConfigReader section = file.section("devices");
  std::string kind;
  section.read("kind", kind);
  if (kind != "fake") section.fail("kind", "'" + kind + "' must be fake");
  FakeGroup group;
  std::int64_t count = 1;
  std::int64_t memory = 0;
  section.read("model", group.model);
  section.read("count", count, 1, 64);
  section.read_size("memory", memory, std::int64_t{1} << 20, kMostBytes);
  if (group.model.empty()) section.fail("model", "must be given, for example A10G");
  group.count = static_cast<std::uint32_t>(count);
  group.memory_mib = memory >> 20;
  config.devices = AgentConfig::Devices::kFake;
  config.fake = {group};
}

void read_umask(ConfigReader& file, AgentConfig& config) {
  std::string text;
  file.read("umask", text);
  if (text.empty()) return;
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, 8);
  if (error != std::errc() || rest != end || value < 0 || value > 0777) {
    return file.fail("umask", "'" + text + "' must be an octal number from 000 to 777");
  }
  config.umask = value;
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

AgentConfig default_agent_config() {
  AgentConfig config;
  config.server = default_server_address();
  config.state_dir = default_agent_state_dir();
  config.shim_path = executable_dir() + "/gpuq-shim";
  return config;
}

Result<void> load_agent_config(const std::string& path, AgentConfig& config) {
  auto file = ConfigReader::load(path);
  if (!file) return file.error();
  file->read("server", config.server);
  file->read("node_name", config.node_name);
  file->read("address", config.address);
  file->read("state_dir", config.state_dir);
  file->read("checkpoint_root", config.checkpoint_root);
  file->read("labels", config.labels);
  file->read("cpus", config.cpus, 1, kMostCpus);
  std::int64_t memory = config.memory_mib << 20;
  file->read_size("memory", memory, std::int64_t{1} << 20, kMostBytes);
  config.memory_mib = memory >> 20;
  file->read("allow_root", config.allow_root);
  read_devices(*file, config);
  file->read("nvml_lib", config.nvml_lib);
  file->read_size("output_cap", config.output_cap_bytes, 4096, kMostBytes);
  file->read_size("upload", config.upload_bytes, 0, kMostBytes);
  file->read_size("min_free", config.min_free_bytes, 0, kMostBytes);
  read_umask(*file, config);
  ConfigReader log = file->section("log");
  log.read("level", config.log_level);
  if (auto level = parse_log_level(config.log_level); !level) {
    log.fail("level", level.error().message);
  }
  log.read("format", config.log_format);
  if (auto format = parse_log_format(config.log_format); !format) {
    log.fail("format", format.error().message);
  }
  return file->finish();
}

Result<void> set_devices(const std::string& text, AgentConfig& config) {
  constexpr std::string_view kFake = "fake:";
  if (text == "auto") {
    config.devices = AgentConfig::Devices::kAuto;
  } else if (text == "none") {
    config.devices = AgentConfig::Devices::kNone;
  } else if (text.starts_with(kFake)) {
    auto groups = parse_fake_groups(text.substr(kFake.size()));
    if (!groups) return groups.error();
    config.devices = AgentConfig::Devices::kFake;
    config.fake = std::move(*groups);
  } else {
    return invalid("devices '" + text + "' must be auto, none or fake:COUNTxMODEL");
  }
  return {};
}

Result<void> complete_agent_config(AgentConfig& config) {
  if (config.node_name.empty()) config.node_name = host_name();
  if (!is_name(config.node_name)) {
    return invalid("node name '" + config.node_name +
                   "' must be 1 to 253 letters, digits, '-', '_' or '.'");
  }
  if (config.server.empty()) return invalid("server is empty; write HOST:PORT");
  if (config.server.find(':') == std::string::npos) {
    config.server += ":" + std::to_string(kDefaultPort);
  }
  if (config.cpus == 0) config.cpus = cpu_count();
  if (config.memory_mib == 0) config.memory_mib = memory_mib();
  if (config.address.empty()) config.address = address_towards(config.server);
  if (::geteuid() == 0 && !config.allow_root) {
    return Error{ErrorCode::kFailedPrecondition,
                 "gpuq-agent runs jobs under its own account and so refuses to be root; start it "
                 "as another user, or "
                 "with --allow-root if every job may be root"};
  }
  if (::access(config.shim_path.c_str(), X_OK) != 0) {
    return Error{ErrorCode::kNotFound, "supervisor " + config.shim_path +
                                           " is missing; install gpuq-shim beside gpuq-agent"};
  }
  return {};
}

Result<std::vector<Device>> find_devices(const AgentConfig& config) {
  if (config.devices == AgentConfig::Devices::kNone) return std::vector<Device>{};
  if (config.devices == AgentConfig::Devices::kFake) {
    return make_fake_devices(config.node_name, config.fake);
  }
  auto devices = discover_nvml(config.nvml_lib);
  if (devices || config.nvml_lib != kNvmlLibrary) return devices;
  log_info("no GPUs: {}; this node offers CPUs only", devices.error().message);
  return std::vector<Device>{};
}

}  // namespace gpuq::agent
