#include "client/cli/context.h"

#include <cerrno>
#include <optional>
#include <ostream>
#include <sstream>
#include <system_error>
#include <utility>

#include "client/cli/json_out.h"
#include "common/runtime/config_file.h"
#include "core/base/text.h"

namespace gpuq::cli {

namespace {

/// Reads one file; a missing one is empty.
Result<UserConfig> load(const std::string& path) {
  UserConfig config;
  auto reader = ConfigReader::load(path);
  if (!reader) {
    if (reader.error().code == ErrorCode::kNotFound) return config;
    return invalid(reader.error().message);
  }
  const auto read = [&](const char* key, std::optional<std::string>& into) {
    if (!reader->has(key)) return;
    std::string text;
    reader->read(key, text);
    into = std::move(text);
  };
  reader->read("server", config.server);
  read("queue", config.job.queue);
  read("share", config.job.share);
  if (auto done = reader->finish(); !done) return done.error();
  return config;
}

std::string user_config_path(const Environment& environment) {
  if (const auto xdg = environment("XDG_CONFIG_HOME"); xdg && !xdg->empty()) {
    return *xdg + "/gpuq/config.yaml";
  }
  if (const auto home = environment("HOME"); home && !home->empty()) {
    return *home + "/.config/gpuq/config.yaml";
  }
  return "";
}

}  // namespace

Result<UserConfig> load_user_config(const Environment& environment) {
  auto site = load("/etc/gpuq/config.yaml");
  if (!site) return site;
  const std::string path = user_config_path(environment);
  if (path.empty()) return site;
  auto user = load(path);
  if (!user) return user;
  if (user->server.empty()) user->server = site->server;
  user->job = overlay(user->job, site->job);
  return user;
}

Result<client::Client*> Context::client() {
  if (client_) return client_.get();
  client::ClientOptions options;
  const auto variable = environment_("GPUQ_SERVER");
  if (!global_.server.empty()) {
    options.target = global_.server;
  } else if (variable && !variable->empty()) {
    options.target = *variable;
  } else {
    auto user = config();
    if (!user) return user.error();
    if (!user->server.empty()) options.target = user->server;
  }
  auto connected = client::Client::connect(options);
  if (!connected) return connected.error();
  client_ = std::move(*connected);
  return client_.get();
}

int Context::fail(const Error& error) const {
  note(escape_controls(error.message));
  return exit_code(error);
}

int Context::fail_each(const Error& error) const {
  std::istringstream lines(error.message);
  for (std::string line; std::getline(lines, line);) note(line);
  return exit_code(error);
}

void Context::note(const std::string& text) const {
  terminal_.err << "gpuq: " << one_line(text) << std::endl;
}

void Context::print_json(const google::protobuf::Message& message) const {
  terminal_.out << to_json(message) << '\n';
}

bool Context::flush_output(const std::string& what) {
  const bool good = terminal_.out.good();
  errno = 0;
  const bool flushed = terminal_.out.rdbuf()->pubsync() == 0;
  const int reason = errno;
  if (good && flushed) return true;
  terminal_.out.setstate(std::ios::badbit);
  if (!std::exchange(told_unwritten_, true)) {
    note(what + " could not be written" +
         (reason == 0 ? "" : ": " + std::generic_category().message(reason)));
  }
  return false;
}

}  // namespace gpuq::cli
