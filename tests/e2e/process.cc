#include "tests/e2e/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "core/base/check.h"

namespace gpuq::e2e {

namespace {

constexpr Millis kPause{5};
constexpr int kNobody = 65534;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (auto& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

void redirect(const std::string& path, int to) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(126);
  if (fd != to) ::close(fd);
}

bool isolate() {
  const bool root = ::geteuid() == 0;
  if (::unshare(CLONE_NEWNET | (root ? 0 : CLONE_NEWUSER)) != 0) return false;
  ifreq loopback{};
  loopback.ifr_name[0] = 'l';
  loopback.ifr_name[1] = 'o';
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0 || ::ioctl(fd, SIOCSIFFLAGS, &loopback) != 0) return false;
  ::close(fd);
  return !root ||
         (::setgroups(0, nullptr) == 0 && ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0);
}

/// In the child: only calls that are safe after a fork of many threads.
[[noreturn]] void run_child(const ProcessSpec& spec, char* const* argv, char* const* env) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  if (spec.ends_with_tests) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, 0) < 0) ::_exit(126);
  redirect(spec.out_path, 1);
  redirect(spec.err_path, 2);
  for (int fd = 3; fd < 1024; ++fd) ::close(fd);
  if (spec.isolated && !isolate()) ::_exit(kNoNetwork);
  if (::chdir(spec.workdir.c_str()) != 0) ::_exit(126);
  ::execve(argv[0], argv, env);
  ::_exit(127);
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

bool eventually(const std::function<bool()>& condition, Millis limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return condition();
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

Process Process::start(const ProcessSpec& spec) {
  std::vector<std::string> words = spec.argv;
  std::vector<std::string> settings;
  for (const auto& [name, value] : spec.env) settings.push_back(name + "=" + value);
  const auto argv = pointers(words);
  const auto env = pointers(settings);
  const pid_t pid = ::fork();
  GPUQ_CHECK_MSG(pid >= 0, "fork failed");
  if (pid == 0) run_child(spec, argv.data(), env.data());
  Process process;
  process.pid_ = pid;
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), code_(std::exchange(other.code_, std::nullopt)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  kill();
  pid_ = std::exchange(other.pid_, -1);
  code_ = std::exchange(other.code_, std::nullopt);
  return *this;
}

Process::~Process() { kill(); }

bool Process::running() {
  if (pid_ < 0 || code_) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) code_ = code_of(status);
  return !code_;
}

void Process::signal(int number) const {
  if (pid_ > 0 && !code_) ::kill(pid_, number);
}

std::optional<int> Process::wait(Millis limit) {
  (void)eventually([this] { return !running(); }, limit);
  return code_;
}

void Process::kill() {
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  code_ = code_of(status);
}

std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  DIR* proc = ::opendir("/proc");
  GPUQ_CHECK(proc != nullptr);
  while (const dirent* entry = ::readdir(proc)) {
    char* end = nullptr;
    const long pid = std::strtol(entry->d_name, &end, 10);
    if (pid <= 0 || *end != '\0' || pid == ::getpid()) continue;
    const std::string dir = std::string("/proc/") + entry->d_name;
    const bool holds = slurp(dir + "/environ").find(text) != std::string::npos ||
                       slurp(dir + "/cmdline").find(text) != std::string::npos;
    if (holds) found.push_back(static_cast<pid_t>(pid));
  }
  ::closedir(proc);
  return found;
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace gpuq::e2e
