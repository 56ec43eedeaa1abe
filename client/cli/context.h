#pragma once
// What every command gets: where to write, how to reach the server.
#include <memory>
#include <string>

#include "client/cli/exit_code.h"
#include "client/cli/job_options.h"
#include "client/cli/options.h"
#include "client/cli/terminal.h"
#include "client/lib/client.h"

namespace google::protobuf {
class Message;
}

namespace gpuq::cli {

/// Defaults from ~/.config/gpuq/config.yaml, and below it /etc/gpuq/config.yaml.
struct UserConfig {
  std::string server;
  JobOptions job;  ///< queue and share
};

/// Reads the two files; either may be missing. kInvalidArgument names file, line and key.
Result<UserConfig> load_user_config(const Environment& environment);

/// Owner: main(); one thread.
class Context {
 public:
  Context(Terminal terminal, GlobalOptions global, Environment environment)
      : terminal_(terminal), global_(std::move(global)), environment_(std::move(environment)) {}

  [[nodiscard]] const Terminal& terminal() const { return terminal_; }
  [[nodiscard]] bool json() const { return global_.json; }
  [[nodiscard]] const Environment& environment() const { return environment_; }

  /// Connects at the first call. Address: --server, GPUQ_SERVER, the configuration, the default.
  Result<client::Client*> client();
  Result<UserConfig> config() const { return load_user_config(environment_); }

  /// The message on standard error, one line whatever words it repeats, and the exit status that
  /// goes with it.
  int fail(const Error& error) const;
  /// The same for what a reader of files says: a line for each fault.
  int fail_each(const Error& error) const;
  /// "gpuq: TEXT" on standard error.
  void note(const std::string& text) const;
  /// One line of JSON on standard output.
  void print_json(const google::protobuf::Message& message) const;

  /// Whether all that went to standard output is written. The first time that it is not, says so:
  /// "WHAT could not be written: REASON".
  bool flush_output(const std::string& what = "standard output");

 private:
  Terminal terminal_;
  GlobalOptions global_;
  Environment environment_;
  std::unique_ptr<client::Client> client_;
  bool told_unwritten_ = false;
};

}  // namespace gpuq::cli
