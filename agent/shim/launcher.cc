#include "agent/shim/launcher.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace gpuq::shim {
namespace {

// What the child sends through the status pipe when a step fails.
enum class Step : int { kDirectory = 1, kOutput, kExecute };
struct ChildFailure {
  Step step;
  int error;
};

std::string error_text(int error) { return std::strerror(error); }  // NOLINT: one thread

std::string variable(const LaunchSpec& spec, const std::string& name) {
  const std::string prefix = name + "=";
  for (const auto& entry : spec.environment) {
    if (entry.compare(0, prefix.size(), prefix) == 0) return entry.substr(prefix.size());
  }
  return {};
}

std::vector<std::string> candidates(const LaunchSpec& spec) {
  const std::string& command = spec.command.front();
  if (command.find('/') != std::string::npos) {
    return {command.front() == '/' ? command : spec.working_directory + "/" + command};
  }
  std::string search = variable(spec, "PATH");
  if (search.empty()) search = "/usr/local/bin:/usr/bin:/bin";
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= search.size();) {
    const std::size_t end = std::min(search.find(':', at), search.size());
    const std::string part = search.substr(at, end - at);
    if (part.empty() || part.front() != '/') {
      out.push_back(spec.working_directory + "/" + (part.empty() ? "" : part + "/") + command);
    } else {
      out.push_back(part + "/" + command);
    }
    at = end + 1;
  }
  return out;
}

std::optional<LaunchFailure> check_directory(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return LaunchFailure{126, "working directory " + path + ": " + error_text(errno)};
  }
  if (!S_ISDIR(info.st_mode)) {
    return LaunchFailure{126, "working directory " + path + " is not a directory"};
  }
  if (::access(path.c_str(), X_OK) != 0) {
    return LaunchFailure{126, "working directory " + path + ": " + error_text(errno)};
  }
  return std::nullopt;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const auto& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

// Everything between fork and execve; only async-signal-safe calls, no allocation.
struct Child {
  const char* program;
  const char* directory;
  char** argv;
  char** envp;
  unsigned umask_bits;
  pid_t parent;
  int barrier;
  int status;
  int out;
  int err;

  [[noreturn]] void fail(Step step) const {
    const ChildFailure failure{step, errno};
    (void)!::write(status, &failure, sizeof(failure));
    ::_exit(126);
  }

  void reset_signals() const {
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  [[noreturn]] void run() const {
    ::setsid();
    // A supervisor that is killed takes the main process along: nobody could say any more how it
    // ended.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);
    reset_signals();
    ::umask(umask_bits);
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (::chdir(directory) != 0) fail(Step::kDirectory);
    char go = 0;
    ssize_t n = 0;
    do {
      n = ::read(barrier, &go, 1);
    } while (n < 0 && errno == EINTR);
    if (n != 1) ::_exit(126);
    if (::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0) fail(Step::kOutput);
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execve(program, argv, envp);
    fail(Step::kExecute);
  }
};

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

std::optional<LaunchFailure> find_program(const LaunchSpec& spec, std::string& path) {
  const std::string& command = spec.command.front();
  int seen = 0;
  for (const auto& candidate : candidates(spec)) {
    struct stat info {};
    if (::stat(candidate.c_str(), &info) != 0) continue;
    if (S_ISREG(info.st_mode) && ::access(candidate.c_str(), X_OK) == 0) {
      path = candidate;
      return std::nullopt;
    }
    seen = S_ISDIR(info.st_mode) ? EISDIR : EACCES;
  }
  if (seen != 0) {
    return LaunchFailure{126, "command '" + command + "' cannot be executed: " + error_text(seen)};
  }
  if (command.find('/') != std::string::npos) {
    return LaunchFailure{127, "command '" + command + "' not found"};
  }
  return LaunchFailure{127, "command '" + command + "' not found in PATH"};
}

Launcher::~Launcher() {
  close_fd(barrier_write_);
  close_fd(status_read_);
  close_fd(log_fds_[0]);
  close_fd(log_fds_[1]);
}

std::optional<LaunchFailure> Launcher::prepare(const LaunchSpec& spec, const std::string& dir) {
  if (auto failure = check_directory(spec.working_directory)) return failure;
  if (auto failure = find_program(spec, program_)) return failure;
  const char* names[2] = {kStdoutFile, kStderrFile};
  for (int i = 0; i < 2; ++i) {
    const std::string path = dir + "/" + names[i];
    log_fds_[i] = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fds_[i] < 0) return LaunchFailure{126, "output " + path + ": " + error_text(errno)};
  }
  int barrier[2];
  int status[2];
  if (::pipe2(barrier, O_CLOEXEC) != 0) return LaunchFailure{126, "pipe: " + error_text(errno)};
  if (::pipe2(status, O_CLOEXEC) != 0) {
    LaunchFailure failure{126, "pipe: " + error_text(errno)};
    ::close(barrier[0]);
    ::close(barrier[1]);
    return failure;
  }
  auto argv = pointers(spec.command);
  auto envp = pointers(spec.environment);
  const Child child{program_.c_str(), spec.working_directory.c_str(),
                    argv.data(),      envp.data(),
                    spec.umask,       ::getpid(),
                    barrier[0],       status[1],
                    log_fds_[0],      log_fds_[1]};
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(barrier[1]);
    child.run();
  }
  const int fork_error = errno;
  ::close(barrier[0]);
  ::close(status[1]);
  barrier_write_ = barrier[1];
  status_read_ = status[0];
  if (pid_ < 0) return LaunchFailure{126, "fork: " + error_text(fork_error)};
  return std::nullopt;
}

void Launcher::release() {
  (void)!::write(barrier_write_, "g", 1);
  close_fd(barrier_write_);
}

std::optional<LaunchFailure> Launcher::finish() {
  ChildFailure failure{};
  ssize_t n = 0;
  do {
    n = ::read(status_read_, &failure, sizeof(failure));
  } while (n < 0 && errno == EINTR);
  close_fd(status_read_);
  if (n != static_cast<ssize_t>(sizeof(failure))) return std::nullopt;
  const std::string why = error_text(failure.error);
  if (failure.step == Step::kDirectory) return LaunchFailure{126, "working directory: " + why};
  if (failure.step == Step::kOutput) return LaunchFailure{126, "output files: " + why};
  std::string reason = "command '" + program_ + "' cannot be executed: " + why;
  if (failure.error == ENOEXEC) reason += "; does the script begin with a #! line?";
  return LaunchFailure{failure.error == ENOENT ? 127 : 126, reason};
}

}  // namespace gpuq::shim
