#pragma once
// Makes the main process of an instance in two steps: `prepare` forks it up to just before the
// execution, `release` lets it execute. What can be checked before is checked before the fork, with
// a message for people.
#include <sys/types.h>

#include <optional>
#include <string>

#include "agent/shim/records.h"

namespace gpuq::shim {

/// Why the command could not be executed.
struct LaunchFailure {
  int exit_code = 126;  ///< 127 = not found, 126 = found but not to be executed, as shells have it.
  std::string reason;
};

class Launcher {
 public:
  Launcher() = default;
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Checks directory and command, opens the output files in `dir` and forks. On success `pid()`
  /// waits for `release`.
  std::optional<LaunchFailure> prepare(const LaunchSpec& spec, const std::string& dir);
  /// Lets the process execute the command. Once.
  void release();
  /// Readable as soon as the execution has succeeded or failed; -1 after `finish`.
  [[nodiscard]] int status_fd() const { return status_read_; }
  /// After status_fd() is readable: nothing if the command runs, else why not.
  std::optional<LaunchFailure> finish();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Open for reading and writing, in order stdout and stderr; -1 before `prepare`.
  [[nodiscard]] int log_fd(int stream) const { return log_fds_[stream]; }

 private:
  pid_t pid_ = -1;
  int barrier_write_ = -1;
  int status_read_ = -1;
  int log_fds_[2] = {-1, -1};
  std::string program_;
};

/// Path of `command` as execvp would find it with the PATH of `environment`, relative to
/// `directory`. Fails with 127 (not found) or 126 (not executable).
std::optional<LaunchFailure> find_program(const LaunchSpec& spec, std::string& path);

}  // namespace gpuq::shim
