#pragma once
// Processes of this machine: what /proc says of them, and signals that never hit a recycled pid.
// Blocking, short; any thread.
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::shim {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';              ///< As in /proc/PID/stat; 'Z' = a zombie.
  std::int64_t start_ticks = 0;  ///< With the pid it names the process for the life of the boot.
};

/// Nothing if there is no such process.
std::optional<ProcessInfo> process_info(pid_t pid);
/// Every process visible here.
std::vector<ProcessInfo> all_processes();
/// Descendants of `ancestor`, zombies left out.
std::vector<ProcessInfo> descendants(pid_t ancestor);
/// Living processes of session `session`, or whose environment holds `tag` ("NAME=VALUE"). For an
/// instance whose supervisor is gone.
std::vector<ProcessInfo> leftovers(pid_t session, const std::string& tag);
/// Sends `signal` to exactly this process; false if it is gone.
bool signal_process(const ProcessInfo& process, int signal);

/// Wall clock and CLOCK_BOOTTIME in milliseconds.
std::int64_t wall_ms();
std::int64_t boottime_ms();
/// Kernel boot id.
std::string current_boot_id();

}  // namespace gpuq::shim
