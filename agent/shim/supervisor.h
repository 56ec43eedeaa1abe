#pragma once
// Supervises the processes of one attempt instance from start.json to exit.json. It alone enforces
// the stop and the time limit, so that both go on when the agent is not there.
//
//   prepared --go--> running --main process ends--> draining --no process left--> exit.json
//
// A stop writes the reason file, sends SIGTERM to the main process's group, and at the deadline
// SIGKILL to every descendant. The supervisor is the child subreaper of all of them, so "no child
// left" is exactly "no process of the instance is left". Single-threaded; blocks in run().
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/shim/launcher.h"
#include "agent/shim/log_cap.h"
#include "agent/shim/records.h"

namespace gpuq::shim {

class Supervisor {
 public:
  /// `dir`: directory of the instance. SIGCHLD and SIGUSR1 must be blocked; the calling process
  /// must be a subreaper.
  explicit Supervisor(std::string dir);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Returns once exit.json is on disk. False: it could not be written.
  bool run();

 private:
  struct Stop {
    std::string reason;
    std::int64_t deadline_ms = 0;  // boot time
  };

  bool prepare();
  void on_executed();
  void on_signal();
  void read_orders();
  void begin_stop(const std::string& reason, std::int64_t deadline_ms);
  void reap();
  void on_main_exit(int wait_status);
  void end_leftovers();
  void on_timers();
  void kill_all(int signal);
  [[nodiscard]] int wait_ms() const;
  bool finish();

  std::string dir_;
  LaunchSpec spec_;
  Launcher launcher_;
  std::array<LogCap, 2> logs_;
  ExitRecord exit_;
  std::optional<Stop> stop_;
  int signal_fd_ = -1;
  bool released_ = false;
  bool main_alive_ = false;
  bool children_left_ = false;
  std::int64_t running_boottime_ms_ = 0;
  std::int64_t timeout_at_ms_ = 0;  // 0 = none; all *_at_ms_ on boot time
  std::int64_t kill_at_ms_ = 0;     // 0 = none
  std::int64_t trim_at_ms_ = 0;
  std::int64_t trim_interval_ms_ = 0;
};

}  // namespace gpuq::shim
