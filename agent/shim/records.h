#pragma once
// The files by which agent and supervisor talk, in the directory of one attempt instance. Files and
// not a socket, because they outlive both: whoever starts anew reads where things stand. All are
// replaced atomically.
//
//   file           writer      meaning
//   start.json     agent       the order; on disk before anything is started
//   lock           agent       flock, handed to the supervisor: held as long as a supervisor lives
//   go             agent       gang barrier: execute the command
//   stop.json      agent       stop; the deadline may only come nearer
//   run.json       supervisor  prepared: pids and boot id; there before the command is executed
//   running.json   supervisor  the command has been executed
//   stopping.json  supervisor  the first signal is about to be sent
//   exit.json      supervisor  the end; no process is left (by the agent if the supervisor died)
//
// After writing `go` or `stop.json` the agent sends SIGUSR1 to the supervisor, which then reads
// both anew.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace gpuq::shim {

/// Raised when a reader of the former version could misread a record.
inline constexpr int kRecordVersion = 1;

inline constexpr const char* kStartFile = "start.json";
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kGoFile = "go";
inline constexpr const char* kStopFile = "stop.json";
inline constexpr const char* kRunFile = "run.json";
inline constexpr const char* kRunningFile = "running.json";
inline constexpr const char* kStoppingFile = "stopping.json";
inline constexpr const char* kExitFile = "exit.json";
inline constexpr const char* kStdoutFile = "stdout.log";
inline constexpr const char* kStderrFile = "stderr.log";
inline constexpr const char* kStopReasonFile = "stop-reason";
inline constexpr const char* kTmpDir = "tmp";

/// Environment variable that marks every process of one instance.
inline constexpr const char* kTagVariable = "GPUQ_INSTANCE_TAG";

/// What the supervisor is to run; part "launch" of start.json.
struct LaunchSpec {
  std::vector<std::string> command;      ///< Program and arguments, at least one.
  std::vector<std::string> environment;  ///< The whole environment as NAME=VALUE.
  std::string working_directory;         ///< Absolute.
  std::int64_t grace_ms = 30'000;        ///< SIGTERM to SIGKILL where no stop order says otherwise.
  std::int64_t timeout_ms = 0;           ///< From running to a stop with reason TIMEOUT; 0 = none.
  std::int64_t log_cap_bytes = 0;        ///< Of each output file; 0 = none.
  bool run_immediately = true;           ///< False: wait for `go`.
  unsigned umask = 022;
};

/// run.json.
struct RunRecord {
  std::int64_t shim_pid = 0;
  std::int64_t shim_start_ticks =
      0;                      ///< Field 22 of /proc/PID/stat: tells a pid from its next user.
  std::int64_t main_pid = 0;  ///< Also its session and process group.
  std::int64_t main_start_ticks = 0;
  std::string boot_id;
  std::int64_t prepared_wall_ms = 0;
};

/// running.json.
struct RunningRecord {
  std::int64_t running_wall_ms = 0;
  std::int64_t running_boottime_ms = 0;
};

/// stop.json.
struct StopRecord {
  std::string reason;  ///< PREEMPTED, TIMEOUT, TERMINATED, NODE_DRAIN, ...
  std::int64_t ordered_wall_ms = 0;
  std::int64_t deadline_boottime_ms = 0;  ///< When SIGKILL is due, on CLOCK_BOOTTIME.
};

/// stopping.json.
struct StoppingRecord {
  std::string reason;
  std::int64_t signal_wall_ms = 0;
  std::int64_t deadline_boottime_ms = 0;
};

/// exit.json.
struct ExitRecord {
  bool started = false;  ///< The command was executed.
  bool lost = false;     ///< Written by the agent: the supervisor died, the end is not known.
  std::optional<int> exit_code;    ///< Of the main process; 126/127 if it could not be executed.
  std::optional<int> term_signal;  ///< Signal that ended the main process.
  bool signal_sent_before_exit = false;
  bool killed_after_grace = false;
  std::string stop_reason;    ///< Empty: nobody asked it to stop.
  std::string status_reason;  ///< One line for people; may be empty.
  std::int64_t running_wall_ms = 0;
  std::int64_t ended_wall_ms = 0;
  std::int64_t ran_for_ms = 0;  ///< Running to the end of the main process, CLOCK_BOOTTIME.
};

std::string to_json(const LaunchSpec& spec);
std::string to_json(const RunRecord& record);
std::string to_json(const RunningRecord& record);
std::string to_json(const StopRecord& record);
std::string to_json(const StoppingRecord& record);
std::string to_json(const ExitRecord& record);

/// Read `DIR/file`. NOT_FOUND if it is not there, DATA_LOSS if it is no such record or of a later
/// version.
Result<LaunchSpec> read_launch(const std::string& dir);
Result<RunRecord> read_run(const std::string& dir);
Result<RunningRecord> read_running(const std::string& dir);
Result<StopRecord> read_stop(const std::string& dir);
Result<StoppingRecord> read_stopping(const std::string& dir);
Result<ExitRecord> read_exit(const std::string& dir);

/// Sets disk space aside for one later write_record() of `DIR/file` of up to 4 KiB, so that it
/// succeeds on a full disk.
Result<void> reserve_record(const std::string& dir, const char* file);

/// Replaces `DIR/file`. `synced`: survives power loss once the call returns.
Result<void> write_record(const std::string& dir, const char* file, const std::string& content,
                          bool synced);

/// Makes `DIR/file` and its name survive power loss.
Result<void> sync_record(const std::string& dir, const char* file);

}  // namespace gpuq::shim
