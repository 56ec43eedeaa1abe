// gpuqd: the server.
#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpc/support/log.h>

#include <cstdio>

#include <CLI/CLI.hpp>

#include "common/runtime/defaults.h"
#include "server/config.h"
#include "server/daemon.h"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct Flags {
  std::string config, data_dir, log_level, port_file;
  std::vector<std::string> listen;
  bool insecure = false;
  bool check = false;
};

int fail(const gpuq::Error& error, int code) {
  fmt::print(stderr, "gpuqd: {}\n", error.message);
  return code;
}

gpuq::Result<gpuq::ServerConfig> assemble(const Flags& flags) {
  gpuq::ServerConfig config = gpuq::default_config();
  if (!flags.config.empty()) {
    auto loaded = gpuq::load_config(flags.config);
    if (!loaded) return loaded.error();
    config = std::move(*loaded);
  }
  if (!flags.data_dir.empty()) config.data_dir = flags.data_dir;
  if (!flags.listen.empty()) config.listen = flags.listen;
  config.insecure = flags.insecure;
  if (!flags.log_level.empty()) {
    auto level = gpuq::parse_log_level(flags.log_level);
    if (!level) return level.error();
    config.log_level = *level;
  }
  if (auto fine = gpuq::check_config(config); !fine) return fine.error();
  return config;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "The gpuq server: keeps jobs and policy, schedules, and talks to the agents.\n"
      "Example: gpuqd --data-dir /srv/gpuq --listen 127.0.0.1:7070");
  Flags flags;
  app.add_option("--config", flags.config, "YAML file; without it the defaults hold");
  app.add_option("--data-dir", flags.data_dir, "Where the database and job output are kept");
  app.add_option("--listen", flags.listen, "HOST:PORT, repeatable; port 0 takes a free one");
  app.add_flag("--insecure", flags.insecure,
               "Let in callers from other machines although nobody is authenticated");
  app.add_flag("--check-config", flags.check, "Check configuration and flags, then leave");
  app.add_option("--log-level", flags.log_level, "debug, info, warning, error or off");
  app.add_option("--port-file", flags.port_file, "Write the port here once calls are taken");
  app.set_version_flag("--version", std::string("gpuqd ") + gpuq::version());
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& call) {
    return app.exit(call);
  } catch (const CLI::ParseError& error) {
    return fail(
        {gpuq::ErrorCode::kInvalidArgument, std::string(error.what()) + "; see gpuqd --help"},
        kUsage);
  }
  auto config = assemble(flags);
  if (!config) return fail(config.error(), kUsage);
  if (flags.check) {
    fmt::print("configuration is fine: data in {}, listening on {}\n", config->data_dir,
               fmt::join(config->listen, ", "));
    return 0;
  }
  gpuq::init_logging("gpuqd", config->log_level, config->log_format);
  // Debian's abseil looks for deadlocks at every lock that gRPC takes: a debugging aid.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // What gRPC has to say comes back as a status, too.
  gpr_set_log_function([](gpr_log_func_args* args) { gpuq::log_debug("grpc: {}", args->message); });
  if (auto done = gpuq::run_daemon(*config, flags.port_file); !done) {
    return fail(done.error(), kFailed);
  }
  return 0;
}
