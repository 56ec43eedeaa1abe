#include "agent/instance.h"

#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "agent/shim/process.h"
#include "common/runtime/clocks.h"
#include "common/runtime/files.h"
#include "common/runtime/log.h"

namespace gpuq::agent {
namespace {

// posix_spawn of `argv` with `lock_fd` left open. Returns the pid or minus the error number.
pid_t spawn_with_lock(const std::vector<std::string>& words, int lock_fd) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Onto itself: the only way to hand over one descriptor of a program whose all others are
  // close-on-exec.
  posix_spawn_file_actions_adddup2(&actions, lock_fd, lock_fd);
  pid_t pid = -1;
  char* const empty[] = {nullptr};
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), empty);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -error;
}

}  // namespace

Instance::Instance(std::string dir, JournalEntry entry)
    : dir_(std::move(dir)), entry_(std::move(entry)) {
  status_.fence = entry_.order.fence;
  status_.instance = entry_.order.instance;
  status_.job_id = entry_.order.job_id;
  status_.starting_at_ms = entry_.received_wall_ms;
  for (const auto& grant : entry_.order.devices) status_.device_uuids.push_back(grant.uuid);
}

InstanceStatus Instance::status() const {
  InstanceStatus status = status_;
  if (running_ && !is_final(status.state)) {
    status.ran_for_ms =
        std::max<std::int64_t>(0, boottime_now_ms() - running_->running_boottime_ms);
  }
  return status;
}

bool Instance::of_other_boot() const { return entry_.boot_id != boot_id(); }

bool Instance::supervised() const { return is_locked(dir_ + "/" + shim::kLockFile); }

bool Instance::refresh() {
  if (is_final(status_.state)) return false;
  const InstanceState state_before = status_.state;
  const StopReason stop_before = status_.stop_reason;
  if (!stop_) {
    if (auto stop = shim::read_stop(dir_)) {
      stop_ = *stop;
      status_.stop_reason = parse_stop_reason(stop_->reason);
      status_.stop_at_ms = stop_->ordered_wall_ms;
    }
  }
  go_ = go_ || path_exists(dir_ + "/" + shim::kGoFile);
  if (!run_) {
    if (auto run = shim::read_run(dir_)) {
      run_ = *run;
      if (!entry_.order.run_immediately) status_.state = InstanceState::kPrepared;
      // Orders given before the supervisor could be woken.
      if (stop_ || go_) wake();
    }
  }
  if (auto running = running_ ? Result<shim::RunningRecord>(*running_) : shim::read_running(dir_)) {
    running_ = *running;
    status_.state = InstanceState::kRunning;
    status_.running_at_ms = running_->running_wall_ms;
    if (run_) status_.pid = run_->main_pid;
  }
  if (auto stopping = shim::read_stopping(dir_)) {
    status_.stop_reason = parse_stop_reason(stopping->reason);
    status_.stop_at_ms = stopping->signal_wall_ms;
  }
  if (auto exit = shim::read_exit(dir_)) apply(*exit);
  return status_.state != state_before || status_.stop_reason != stop_before;
}

void Instance::apply(const shim::ExitRecord& record) {
  status_.state = record.lost      ? InstanceState::kLost
                  : record.started ? InstanceState::kExited
                                   : InstanceState::kStartFailed;
  status_.exit_code = record.exit_code;
  status_.term_signal = record.term_signal;
  status_.signal_sent_before_exit = record.signal_sent_before_exit;
  status_.killed_after_grace = record.killed_after_grace;
  status_.status_reason = record.status_reason;
  status_.stop_reason = parse_stop_reason(record.stop_reason);
  if (record.running_wall_ms != 0) status_.running_at_ms = record.running_wall_ms;
  status_.ended_at_ms = record.ended_wall_ms;
  status_.ran_for_ms = record.ran_for_ms;
}

Result<UniqueFd> Instance::launch(const std::string& shim_path) {
  auto lock = lock_file(dir_ + "/" + shim::kLockFile);
  if (!lock) return lock.error();
  const pid_t pid = spawn_with_lock({shim_path, dir_, std::to_string(lock->get())}, lock->get());
  if (pid < 0) {
    return Error{ErrorCode::kInternal,
                 "cannot execute " + shim_path + ": " + std::strerror(-pid)};  // NOLINT
  }
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

void Instance::wake() {
  if (!run_) return;  // refresh() wakes as soon as run.json is there
  shim::ProcessInfo supervisor;
  supervisor.pid = static_cast<pid_t>(run_->shim_pid);
  supervisor.start_ticks = run_->shim_start_ticks;
  if (!of_other_boot()) shim::signal_process(supervisor, SIGUSR1);
}

Result<void> Instance::go() {
  if (go_) return {};
  auto written = write_file(dir_ + "/" + shim::kGoFile, "", Durability::kAtomicOnly);
  if (!written) return written;
  go_ = true;
  wake();
  return {};
}

Result<void> Instance::stop(StopReason reason, std::int64_t grace_ms) {
  shim::StopRecord record;
  record.reason = to_string(reason);
  record.ordered_wall_ms = wall_now_ms();
  record.deadline_boottime_ms = boottime_now_ms() + std::max<std::int64_t>(0, grace_ms);
  if (stop_) {
    if (record.deadline_boottime_ms >= stop_->deadline_boottime_ms) return {};
    record.reason = stop_->reason;
    record.ordered_wall_ms = stop_->ordered_wall_ms;
  }
  auto written = shim::write_record(dir_, shim::kStopFile, shim::to_json(record), true);
  if (!written) return written;
  stop_ = record;
  if (status_.stop_reason == StopReason::kNone) {
    status_.stop_reason = parse_stop_reason(record.reason);
    status_.stop_at_ms = record.ordered_wall_ms;
  }
  wake();
  return {};
}

bool Instance::kill_leftovers() {
  if (of_other_boot()) return true;
  const pid_t session = run_ ? static_cast<pid_t>(run_->main_pid) : 0;
  const auto rest = shim::leftovers(session, std::string(shim::kTagVariable) + "=" + entry_.tag);
  for (const auto& process : rest) shim::signal_process(process, SIGKILL);
  return rest.empty();
}

Result<void> Instance::end_without_supervisor(const std::string& why) {
  shim::ExitRecord record;
  record.started = running_.has_value();
  record.lost = true;
  record.stop_reason = to_string(status_.stop_reason);
  record.signal_sent_before_exit = path_exists(dir_ + "/" + shim::kStoppingFile);
  record.status_reason = why;
  record.running_wall_ms = status_.running_at_ms;
  record.ended_wall_ms = wall_now_ms();
  if (running_ && !of_other_boot()) record.ran_for_ms = status().ran_for_ms;
  return shim::write_record(dir_, shim::kExitFile, shim::to_json(record), true);
}

}  // namespace gpuq::agent
