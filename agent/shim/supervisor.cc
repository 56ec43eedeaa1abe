#include "agent/shim/supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <limits>

#include "agent/shim/process.h"

namespace gpuq::shim {
namespace {

constexpr std::int64_t kKillRepeatMs = 20;
// What a finished main process left behind gets at most so long after SIGTERM.
constexpr std::int64_t kLeftoverGraceMs = 10'000;
constexpr std::int64_t kTrimFastMs = 1'000;
constexpr std::int64_t kTrimSlowMs = 8'000;
constexpr const char* kTimeout = "TIMEOUT";

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

int make_signal_fd() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGUSR1);
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

std::int64_t start_ticks(pid_t pid) {
  const auto info = process_info(pid);
  return info ? info->start_ticks : 0;
}

}  // namespace

Supervisor::Supervisor(std::string dir) : dir_(std::move(dir)), signal_fd_(make_signal_fd()) {}

Supervisor::~Supervisor() {
  if (signal_fd_ >= 0) ::close(signal_fd_);
}

bool Supervisor::run() {
  if (!prepare()) return finish();
  read_orders();
  if (spec_.run_immediately && !released_ && !stop_) {
    released_ = true;
    launcher_.release();
  }
  while (children_left_) {
    pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {launcher_.status_fd(), POLLIN, 0}};
    ::poll(fds, 2, wait_ms());
    // The execution's outcome first: a command that ends at once has still run.
    if (launcher_.status_fd() >= 0 && released_ && fds[1].revents != 0) on_executed();
    if (fds[0].revents != 0) on_signal();
    on_timers();
  }
  return finish();
}

bool Supervisor::prepare() {
  auto spec = read_launch(dir_);
  if (!spec) {
    exit_.status_reason = spec.error().message;
    return false;
  }
  spec_ = std::move(*spec);
  if (auto failure = launcher_.prepare(spec_, dir_)) {
    exit_.exit_code = failure->exit_code;
    exit_.status_reason = failure->reason;
    return false;
  }
  main_alive_ = children_left_ = true;
  logs_ = {LogCap(launcher_.log_fd(0), spec_.log_cap_bytes),
           LogCap(launcher_.log_fd(1), spec_.log_cap_bytes)};
  trim_interval_ms_ = kTrimFastMs;
  trim_at_ms_ = boottime_ms() + trim_interval_ms_;
  RunRecord record;
  record.shim_pid = ::getpid();
  record.shim_start_ticks = start_ticks(::getpid());
  record.main_pid = launcher_.pid();
  record.main_start_ticks = start_ticks(launcher_.pid());
  record.boot_id = current_boot_id();
  record.prepared_wall_ms = wall_ms();
  // There before the command runs: within this boot, no run.json means that it never ran. Synced in
  // on_executed(), as a disk is slower than an execution.
  const bool in_a_hurry = spec_.run_immediately;
  if (auto written = write_record(dir_, kRunFile, to_json(record), !in_a_hurry); !written) {
    exit_.status_reason = written.error().message;
    kill_all(SIGKILL);
    ::waitpid(launcher_.pid(), nullptr, 0);
    return false;
  }
  return true;
}

void Supervisor::on_executed() {
  if (auto failure = launcher_.finish()) {
    exit_.status_reason = failure->reason;
    exit_.exit_code = failure->exit_code;
    return;  // the child ends by itself
  }
  exit_.started = true;
  exit_.running_wall_ms = wall_ms();
  running_boottime_ms_ = boottime_ms();
  if (spec_.timeout_ms > 0) timeout_at_ms_ = running_boottime_ms_ + spec_.timeout_ms;
  const RunningRecord record{exit_.running_wall_ms, running_boottime_ms_};
  (void)write_record(dir_, kRunningFile, to_json(record), false).has_value();
  if (spec_.run_immediately) (void)sync_record(dir_, kRunFile).has_value();
  read_orders();
}

void Supervisor::on_signal() {
  signalfd_siginfo info{};
  bool orders = false;
  while (::read(signal_fd_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    orders = orders || info.ssi_signo == SIGUSR1;
  }
  reap();
  if (orders && children_left_) read_orders();
}

void Supervisor::read_orders() {
  if (const auto stop = read_stop(dir_)) {
    const bool sooner = stop_ && stop->deadline_boottime_ms < stop_->deadline_ms;
    if (!stop_) {
      begin_stop(stop->reason, stop->deadline_boottime_ms);
    } else if (sooner) {
      stop_->deadline_ms = stop->deadline_boottime_ms;
      kill_at_ms_ = std::min(kill_at_ms_, stop->deadline_boottime_ms);
    }
  }
  if (!released_ && !stop_ && exists(dir_ + "/" + kGoFile)) {
    released_ = true;
    launcher_.release();
  }
}

void Supervisor::begin_stop(const std::string& reason, std::int64_t deadline_ms) {
  // Between the release and the execution nothing could catch SIGTERM: on_executed() comes back
  // here.
  if (released_ && launcher_.status_fd() >= 0) return;
  reap();
  if (!children_left_) return;
  stop_ = Stop{reason, deadline_ms};
  if (!main_alive_) {
    kill_at_ms_ = std::min(kill_at_ms_, deadline_ms);
    return;
  }
  exit_.stop_reason = reason;
  exit_.signal_sent_before_exit = exit_.started;
  (void)write_record(dir_, kStopReasonFile, reason + "\n", false).has_value();
  const StoppingRecord record{reason, wall_ms(), deadline_ms};
  (void)write_record(dir_, kStoppingFile, to_json(record), false).has_value();
  kill_at_ms_ = deadline_ms;
  if (!released_) {
    exit_.status_reason = "stopped before it was started: " + reason;
    kill_at_ms_ = boottime_ms();
  } else if (deadline_ms > boottime_ms()) {
    // The main process is not reaped, so its group's number cannot belong to anybody else.
    ::kill(-launcher_.pid(), SIGTERM);
    ::kill(-launcher_.pid(), SIGCONT);
  }
}

void Supervisor::reap() {
  const bool main_was_alive = main_alive_;
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) children_left_ = false;
    if (pid <= 0) break;
    if (pid == launcher_.pid()) on_main_exit(status);
  }
  if (main_was_alive && !main_alive_ && children_left_) end_leftovers();
}

void Supervisor::on_main_exit(int wait_status) {
  // Its death closed the status pipe: whether the command ran can be read without waiting.
  if (launcher_.status_fd() >= 0 && released_) on_executed();
  main_alive_ = false;
  timeout_at_ms_ = 0;
  if (exit_.started) {
    if (WIFEXITED(wait_status)) exit_.exit_code = WEXITSTATUS(wait_status);
    if (WIFSIGNALED(wait_status)) exit_.term_signal = WTERMSIG(wait_status);
    exit_.ran_for_ms = boottime_ms() - running_boottime_ms_;
  }
}

// What the main process left behind is asked to end, and made to.
void Supervisor::end_leftovers() {
  for (const auto& process : descendants(::getpid())) {
    signal_process(process, SIGTERM);
    signal_process(process, SIGCONT);
  }
  const std::int64_t latest = boottime_ms() + std::min(spec_.grace_ms, kLeftoverGraceMs);
  kill_at_ms_ = kill_at_ms_ != 0 ? std::min(kill_at_ms_, latest) : latest;
}

void Supervisor::on_timers() {
  const std::int64_t now = boottime_ms();
  if (timeout_at_ms_ != 0 && now >= timeout_at_ms_) {
    timeout_at_ms_ = 0;
    if (!stop_) begin_stop(kTimeout, now + spec_.grace_ms);
  }
  if (kill_at_ms_ != 0 && now >= kill_at_ms_ && children_left_) {
    reap();
    if (main_alive_ && exit_.started) {
      exit_.signal_sent_before_exit = true;
      exit_.killed_after_grace = true;
    }
    kill_all(SIGKILL);
    kill_at_ms_ = now + kKillRepeatMs;  // new ones may be forked meanwhile
  }
  if (now >= trim_at_ms_) {
    bool grown = logs_[0].trim();
    grown = logs_[1].trim() || grown;
    trim_interval_ms_ = grown ? kTrimFastMs : std::min(trim_interval_ms_ * 2, kTrimSlowMs);
    trim_at_ms_ = now + trim_interval_ms_;
  }
}

void Supervisor::kill_all(int signal) {
  if (main_alive_) ::kill(-launcher_.pid(), signal);
  for (const auto& process : descendants(::getpid())) signal_process(process, signal);
}

int Supervisor::wait_ms() const {
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t at : {timeout_at_ms_, kill_at_ms_}) {
    if (at != 0) next = std::min(next, at);
  }
  if (spec_.log_cap_bytes > 0) next = std::min(next, trim_at_ms_);
  if (next == std::numeric_limits<std::int64_t>::max()) return -1;
  return static_cast<int>(std::clamp<std::int64_t>(next - boottime_ms(), 0, 3'600'000));
}

bool Supervisor::finish() {
  logs_[0].trim();
  logs_[1].trim();
  exit_.ended_wall_ms = wall_ms();
  return write_record(dir_, kExitFile, to_json(exit_), true).has_value();
}

}  // namespace gpuq::shim
