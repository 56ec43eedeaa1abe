#pragma once
// A child process of the tests: started with an environment of its own, output to files, killed and
// reaped at the latest by the destructor. Used by the thread that made it.
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuq::e2e {

using Millis = std::chrono::milliseconds;

/// How long a test waits for what must happen: enough for a machine with ten times the load.
inline constexpr Millis kPatience{60'000};

inline constexpr int kNoNetwork = 77;

/// Asks `condition` again and again until it is true; false if it never was within `limit`.
bool eventually(const std::function<bool()>& condition, Millis limit = kPatience);

struct ProcessSpec {
  std::vector<std::string> argv;           ///< A path first.
  std::map<std::string, std::string> env;  ///< The whole environment.
  std::string workdir;
  std::string out_path;          ///< Appended to.
  std::string err_path;          ///< Appended to.
  bool ends_with_tests = false;  ///< Killed when the thread that started it ends.
  /// Under an account without rights, in a network of its own with nothing but a loopback device.
  /// Ends with kNoNetwork where the system does not allow that.
  bool isolated = false;
};

class Process {
 public:
  Process() = default;
  /// Aborts if it can not be forked; a program that is not there ends with 127.
  static Process start(const ProcessSpec& spec);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// False before the start and after the end.
  bool running();
  void signal(int number) const;
  /// The exit code, 128 + signal for a killed one; nullopt if it still runs after `limit`.
  std::optional<int> wait(Millis limit = kPatience);
  /// SIGKILL, and gone on return.
  void kill();

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;
};

struct Output {
  int code = -1;  ///< -1: did not end.
  std::string out;
  std::string err;
};

/// Live processes whose command line or environment holds `text`.
std::vector<pid_t> processes_with(const std::string& text);

/// Whole content; empty if there is no such file.
std::string slurp(const std::string& path);
/// Without line ends; an unfinished last line counts.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace gpuq::e2e
