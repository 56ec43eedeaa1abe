// gpuq-agent: owns one node. Command line and life of the process; agent/agent.h is the agent
// itself.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "agent/agent.h"
#include "agent/config.h"
#include "common/runtime/clocks.h"
#include "common/runtime/config_file.h"
#include "common/runtime/defaults.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/files.h"
#include "common/runtime/log.h"

namespace {

using gpuq::agent::AgentConfig;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int fail(const gpuq::Error& error) {
  std::fprintf(stderr, "gpuq-agent: %s\n", error.message.c_str());
  return error.code == gpuq::ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

struct Flags {
  std::string config_file;
  std::string server, node_name, state_dir, devices, nvml_lib, checkpoint_root, address, memory;
  std::string log_level, log_format, shim;
  std::vector<std::string> labels;
  std::int64_t cpus = 0;
  bool allow_root = false;
  bool check_config = false;
};

void add_options(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", std::string("gpuq-agent ") + gpuq::version());
  app.add_option("--config", flags.config_file, "Configuration file (config/gpuq-agent.yaml)");
  app.add_option("--server", flags.server, "HOST:PORT of gpuqd (default 127.0.0.1:7070)");
  app.add_option("--node-name", flags.node_name, "Name of this node (default: host name)");
  app.add_option("--state-dir", flags.state_dir, "Directory of this agent's state");
  app.add_option("--devices", flags.devices, "auto, none or fake:COUNTxMODEL (fake:4xA10G)");
  app.add_option("--nvml-lib", flags.nvml_lib, "NVML library to load");
  app.add_option("--label", flags.labels, "NAME=VALUE; may be repeated");
  app.add_option("--cpus", flags.cpus, "CPUs to offer")->check(CLI::Range(1, 65536));
  app.add_option("--memory", flags.memory, "Memory to offer, for example 64GiB");
  app.add_option("--address", flags.address, "Address under which other nodes reach this one");
  app.add_option("--checkpoint-root", flags.checkpoint_root,
                 "Directory for checkpoints, best shared by all nodes");
  app.add_option("--log-level", flags.log_level, "debug, info, warning, error or off");
  app.add_option("--log-format", flags.log_format, "text or json");
  app.add_option("--shim", flags.shim, "gpuq-shim to use (default: beside gpuq-agent)");
  app.add_flag("--allow-root", flags.allow_root, "Run, and run every job, as root");
  app.add_flag("--check-config", flags.check_config, "Check the configuration and exit");
  app.footer("Example: gpuq-agent --server head:7070 --label pool=training");
}

void override_text(const std::string& flag, std::string& value) {
  if (!flag.empty()) value = flag;
}

gpuq::Result<void> apply_flags(const Flags& flags, AgentConfig& config) {
  override_text(flags.server, config.server);
  override_text(flags.node_name, config.node_name);
  override_text(flags.state_dir, config.state_dir);
  override_text(flags.nvml_lib, config.nvml_lib);
  override_text(flags.checkpoint_root, config.checkpoint_root);
  override_text(flags.address, config.address);
  override_text(flags.log_level, config.log_level);
  override_text(flags.log_format, config.log_format);
  override_text(flags.shim, config.shim_path);
  if (flags.cpus > 0) config.cpus = flags.cpus;
  if (flags.allow_root) config.allow_root = true;
  if (!flags.memory.empty()) {
    auto bytes = gpuq::parse_config_size(flags.memory);
    if (!bytes) return gpuq::Error{bytes.error().code, "--memory: " + bytes.error().message};
    config.memory_mib = *bytes >> 20;
  }
  for (const auto& label : flags.labels) {
    const auto equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return gpuq::Error{gpuq::ErrorCode::kInvalidArgument,
                         "--label '" + label + "' must be NAME=VALUE"};
    }
    config.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  if (flags.devices.empty()) return {};
  return gpuq::agent::set_devices(flags.devices, config);
}

gpuq::Result<AgentConfig> make_config(const Flags& flags) {
  AgentConfig config = gpuq::agent::default_agent_config();
  if (!flags.config_file.empty()) {
    auto loaded = gpuq::agent::load_agent_config(flags.config_file, config);
    if (!loaded) return loaded.error();
  }
  if (auto applied = apply_flags(flags, config); !applied) return applied.error();
  if (auto completed = gpuq::agent::complete_agent_config(config); !completed) {
    return completed.error();
  }
  return config;
}

int run(const AgentConfig& config) {
  std::signal(SIGPIPE, SIG_IGN);
  ::umask(077);
  const gpuq::BootClock clock;
  gpuq::EventLoop loop(clock);
  auto agent = gpuq::agent::Agent::create(loop, config);
  if (!agent) return fail(agent.error());
  // Supervisors detach from us and become ours again, so that nothing is left unreaped where
  // process 1 does not reap.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  loop.on_signals({SIGINT, SIGTERM, SIGCHLD}, [&loop](int signal) {
    if (signal == SIGCHLD) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      return;
    }
    gpuq::log_info("stopping; jobs go on");
    loop.stop();
  });
  loop.post([&agent] { (*agent)->start(); });
  loop.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs the jobs of one node for gpuqd."};
  Flags flags;
  add_options(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "gpuq-agent: %s; see gpuq-agent --help\n", e.what());
    return kUsage;
  }
  auto config = make_config(flags);
  if (!config) return fail(config.error());
  auto level = gpuq::parse_log_level(config->log_level);
  if (!level) return fail(level.error());
  auto format = gpuq::parse_log_format(config->log_format);
  if (!format) return fail(format.error());
  if (flags.check_config) {
    std::printf("configuration is valid\n");
    return 0;
  }
  gpuq::init_logging("gpuq-agent", *level, *format);
  return run(*config);
}
