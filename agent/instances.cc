#include "agent/instances.h"

#include <pwd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "agent/environment.h"
#include "common/runtime/clocks.h"
#include "common/runtime/files.h"
#include "common/runtime/log.h"

namespace gpuq::agent {
namespace {

constexpr Duration kKillRepeat{20};
constexpr std::size_t kRememberedStops = 10'000;

std::string name_of(const Instance& instance) {
  const auto key = instance.order().key();
  return "attempt " + std::to_string(key.attempt_id) + " instance " + std::to_string(key.instance);
}

std::string variable_or(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

EnvironmentFacts account_facts() {
  EnvironmentFacts facts;
  if (const passwd* account = getpwuid(geteuid()); account != nullptr) {  // NOLINT: loop thread
    facts.user = account->pw_name;
    facts.home = account->pw_dir;
    facts.shell = account->pw_shell;
  }
  if (facts.home.empty()) facts.home = "/";
  facts.path = variable_or("PATH", "/usr/local/bin:/usr/bin:/bin");
  facts.lang = variable_or("LANG", "");
  return facts;
}

InstanceStatus refused(const StartOrder& order, std::string why) {
  InstanceStatus status;
  status.fence = order.fence;
  status.instance = order.instance;
  status.job_id = order.job_id;
  status.state = InstanceState::kRefused;
  status.status_reason = std::move(why);
  status.ended_at_ms = wall_now_ms();
  return status;
}

}  // namespace

struct Instances::Entry {
  explicit Entry(Instance i) : instance(std::move(i)) {}
  Instance instance;
  DirWatcher::WatchId watch = -1;
  bool ending = false;  // on_supervisor_gone() is at work
};

Instances::Instances(EventLoop& loop, DirWatcher& watcher, StateDir& state, Options options,
                     OnChange on_change, OnDiscard on_discard)
    : loop_(loop),
      watcher_(watcher),
      state_(state),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      on_discard_(std::move(on_discard)),
      alive_(std::make_shared<bool>(true)) {}

Instances::~Instances() {
  *alive_ = false;
  for (const auto& [key, entry] : instances_) {
    if (entry->watch >= 0) watcher_.unwatch(entry->watch);
  }
}

void Instances::recover() {
  for (const InstanceKey key : state_.instances()) recover_one(key);
  for (const auto& dir : state_.trash()) on_discard_(dir, InstanceStatus{});
}

void Instances::recover_one(InstanceKey key) {
  const std::string dir = state_.instance_dir(key);
  auto journaled = read_journal(dir);
  if (!journaled) {
    // An order that is not whole was never answered and nothing was started for it.
    if (!path_exists(dir + "/" + shim::kRunFile) && !is_locked(dir + "/" + shim::kLockFile)) {
      (void)remove_tree(dir).has_value();
    } else {
      log_error("{}; left alone, remove {} by hand", journaled.error().message, dir);
    }
    return;
  }
  auto entry = std::make_shared<Entry>(Instance(dir, std::move(*journaled)));
  Instance& instance = entry->instance;
  instances_[key] = entry;
  if (auto watched = watch(entry); !watched) log_error("{}", watched.error().message);
  const bool supervised = !instance.of_other_boot() && instance.supervised();
  instance.refresh();
  if (is_final(instance.state())) return;
  if (supervised) {
    log_info("adopted {} ({})", name_of(instance), to_string(instance.state()));
    return;
  }
  const bool never_ran = !instance.may_have_run() && !instance.of_other_boot();
  if (never_ran && !instance.stop_ordered()) {
    run_supervisor(entry);
  } else {
    on_supervisor_gone(entry);
  }
}

Result<void> Instances::watch(const std::shared_ptr<Entry>& entry) {
  auto id = watcher_.watch(entry->instance.dir(), IN_MOVED_TO | IN_CLOSE_WRITE,
                           [this, entry](std::uint32_t mask, const std::string& name) {
                             if ((mask & IN_Q_OVERFLOW) != 0) {
                               on_event(entry, shim::kLockFile, !entry->instance.supervised());
                             } else {
                               on_event(entry, name, (mask & IN_CLOSE_WRITE) != 0);
                             }
                           });
  if (!id) return id.error();
  entry->watch = *id;
  return {};
}

// The supervisor is the last to hold the lock file open for writing: its closing is the
// supervisor's end.
void Instances::on_event(const std::shared_ptr<Entry>& entry, const std::string& name,
                         bool closed) {
  if (name == shim::kLockFile) {
    refresh(entry);
    if (closed && !entry->ending && !is_final(entry->instance.state())) on_supervisor_gone(entry);
  } else if (!closed && name.size() > 5 && name.ends_with(".json")) {
    refresh(entry);
  }
}

void Instances::refresh(const std::shared_ptr<Entry>& entry) {
  if (entry->instance.refresh()) on_change_(entry->instance.status());
}

void Instances::on_supervisor_gone(const std::shared_ptr<Entry>& entry) {
  entry->ending = true;
  Instance& instance = entry->instance;
  if (!instance.kill_leftovers()) {
    loop_.timer_after(kKillRepeat, [this, entry, alive = alive_] {
      if (*alive) on_supervisor_gone(entry);
    });
    return;
  }
  const std::string why = instance.of_other_boot()  ? "the node was restarted"
                          : instance.may_have_run() ? "the supervisor died; exit unknown"
                          : instance.stop_ordered() ? "stopped before it was started"
                                                    : "the supervisor ended before the start";
  if (auto ended = instance.end_without_supervisor(why); !ended) {
    log_error("{}: {}", name_of(instance), ended.error().message);
    loop_.timer_after(std::chrono::seconds(5), [this, entry, alive = alive_] {
      if (*alive) on_supervisor_gone(entry);
    });
    return;
  }
  log_warning("{}: {}", name_of(instance), why);
  refresh(entry);
}

std::string Instances::device_conflict(const StartOrder& order) const {
  for (const auto& grant : order.devices) {
    const auto& own = options_.device_uuids;
    if (std::find(own.begin(), own.end(), grant.uuid) == own.end()) {
      return "this node has no device " + grant.uuid;
    }
    std::uint32_t used = grant.milli;
    for (const auto& [key, entry] : instances_) {
      if (is_final(entry->instance.state())) continue;
      for (const auto& held : entry->instance.order().devices) {
        if (held.uuid == grant.uuid) used += held.milli;
      }
    }
    if (used > 1000) return "device " + grant.uuid + " is still in use by another attempt";
  }
  return {};
}

shim::LaunchSpec Instances::make_launch(const StartOrder& order, const std::string& dir,
                                        const std::string& tag) const {
  EnvironmentFacts facts = account_facts();
  facts.temporary_dir = dir + "/" + shim::kTmpDir;
  facts.stop_reason_file = dir + "/" + shim::kStopReasonFile;
  facts.tag = tag;
  facts.checkpoint_dir = order.checkpoint_directory;
  if (facts.checkpoint_dir.empty() && !options_.checkpoint_root.empty()) {
    facts.checkpoint_dir = options_.checkpoint_root + "/" + std::to_string(order.job_id);
  }
  if (facts.checkpoint_dir.empty()) facts.checkpoint_dir = state_.checkpoint_dir(order.job_id);
  if (auto made = make_dirs(facts.checkpoint_dir); !made) {
    log_warning("job {}: checkpoint directory: {}", order.job_id, made.error().message);
  }
  shim::LaunchSpec spec;
  spec.command = order.command;
  spec.environment = make_environment(order, facts);
  spec.working_directory = order.working_directory.empty() ? facts.home : order.working_directory;
  spec.grace_ms = order.grace_ms;
  spec.timeout_ms = order.timeout_ms;
  spec.log_cap_bytes = order.log_cap_bytes > 0 ? order.log_cap_bytes : options_.log_cap_bytes;
  spec.run_immediately = order.run_immediately;
  spec.umask = options_.umask;
  return spec;
}

Result<void> Instances::journal(const StartOrder& order, const std::string& dir) {
  if (auto made = make_dirs(dir + "/" + shim::kTmpDir); !made) return made;
  // What ends an attempt must find room on a disk that it has filled.
  for (const char* record : {shim::kStopFile, shim::kExitFile}) {
    if (auto reserved = shim::reserve_record(dir, record); !reserved) return reserved;
  }
  JournalEntry entry{order, boot_id(), random_uuid(), wall_now_ms()};
  if (auto written = write_journal(dir, entry, make_launch(order, dir, entry.tag)); !written) {
    return written;
  }
  if (auto synced = sync_dir(state_.attempts_dir()); !synced) return synced;
  instances_[order.key()] = std::make_shared<Entry>(Instance(dir, std::move(entry)));
  return {};
}

InstanceStatus Instances::failed_to_begin(const StartOrder& order, const Error& why) {
  log_error("attempt {} can not be started: {}", order.fence.attempt_id, why.message);
  if (options_.on_node_fault) options_.on_node_fault(why.message);
  return refused(order, why.message);
}

InstanceStatus Instances::start(const StartOrder& order) {
  const InstanceKey key = order.key();
  if (const auto known = instances_.find(key); known != instances_.end()) {
    return known->second->instance.status();
  }
  if (stopped_unknown_.count(key.attempt_id) != 0) {
    return refused(order, "the attempt was stopped before it was started");
  }
  if (order.command.empty() || order.command.front().empty()) {
    return refused(order, "the command is empty");
  }
  if (std::string conflict = device_conflict(order); !conflict.empty()) {
    return refused(order, std::move(conflict));
  }
  const std::string dir = state_.instance_dir(key);
  if (auto journaled = journal(order, dir); !journaled) {
    (void)remove_tree(dir).has_value();
    return failed_to_begin(order, journaled.error());
  }
  const auto entry = instances_.at(key);
  if (auto watched = watch(entry); !watched) {
    // Nothing runs yet: better not to start what could not be watched.
    instances_.erase(key);
    (void)remove_tree(dir).has_value();
    return failed_to_begin(order, watched.error());
  }
  log_info("starting {} of job {}", name_of(entry->instance), order.job_id);
  run_supervisor(entry);
  return entry->instance.status();
}

void Instances::run_supervisor(const std::shared_ptr<Entry>& entry) {
  auto first = entry->instance.launch(options_.shim_path);
  if (!first) {
    log_error("{}: {}", name_of(entry->instance), first.error().message);
    const std::string why = first.error().message;
    if (options_.on_node_fault) options_.on_node_fault(why);
    if (auto ended = entry->instance.end_without_supervisor(why); !ended) {
      log_error("{}: {}", name_of(entry->instance), ended.error().message);
    }
    loop_.post([this, entry, alive = alive_] {
      if (*alive) refresh(entry);
    });
    return;
  }
  // Only to reap the first of the supervisor's two processes.
  auto fd = std::make_shared<UniqueFd>(std::move(*first));
  auto id = std::make_shared<EventLoop::WatchId>(0);
  *id = loop_.watch_readable(fd->get(), [&loop = loop_, fd, id] {
    siginfo_t info{};
    ::waitid(P_PIDFD, static_cast<id_t>(fd->get()), &info, WEXITED | WNOHANG);
    loop.unwatch(*id);
    fd->reset();
  });
}

std::vector<std::shared_ptr<Instances::Entry>> Instances::of_attempt(
    std::int64_t attempt_id) const {
  std::vector<std::shared_ptr<Entry>> out;
  for (auto it = instances_.lower_bound({attempt_id, 0});
       it != instances_.end() && it->first.attempt_id == attempt_id; ++it) {
    out.push_back(it->second);
  }
  return out;
}

std::vector<InstanceStatus> Instances::go(const GoOrder& order) {
  std::vector<InstanceStatus> out;
  for (const auto& entry : of_attempt(order.fence.attempt_id)) {
    if (!is_final(entry->instance.state())) {
      if (auto done = entry->instance.go(); !done) log_error("{}", done.error().message);
    }
    out.push_back(entry->instance.status());
  }
  return out;
}

std::vector<InstanceStatus> Instances::stop(const StopOrder& order) {
  std::vector<InstanceStatus> out;
  for (const auto& entry : of_attempt(order.fence.attempt_id)) {
    Instance& instance = entry->instance;
    if (!is_final(instance.state())) {
      log_info("stopping {}: {}", name_of(instance), to_string(order.reason));
      const auto grace = order.grace_ms.value_or(instance.order().grace_ms);
      if (auto done = instance.stop(order.reason, grace); !done) {
        log_error("{}: {}", name_of(instance), done.error().message);
      }
    }
    out.push_back(instance.status());
  }
  if (out.empty()) {
    if (stopped_unknown_.size() >= kRememberedStops)
      stopped_unknown_.erase(stopped_unknown_.begin());
    stopped_unknown_.insert(order.fence.attempt_id);
    InstanceStatus status;
    status.fence = order.fence;
    status.state = InstanceState::kLost;
    status.status_reason = "the attempt is not on this node";
    status.ended_at_ms = wall_now_ms();
    out.push_back(status);
  }
  return out;
}

void Instances::forget(const ForgetOrder& order) {
  for (const auto& entry : of_attempt(order.fence.attempt_id)) {
    const Instance& instance = entry->instance;
    if (!is_final(instance.state())) {
      log_debug("{} is not final and cannot be forgotten", name_of(instance));
      continue;
    }
    if (entry->watch >= 0) watcher_.unwatch(entry->watch);
    auto moved = state_.discard(instance.order().key());
    if (!moved) {
      log_error("{}", moved.error().message);
      continue;
    }
    const InstanceStatus status = instance.status();
    instances_.erase(instance.order().key());
    on_discard_(*moved, status);
  }
}

std::vector<InstanceStatus> Instances::list() const {
  std::vector<InstanceStatus> out;
  for (const auto& [key, entry] : instances_) out.push_back(entry->instance.status());
  return out;
}

const Instance* Instances::find(InstanceKey key) const {
  const auto it = instances_.find(key);
  return it == instances_.end() ? nullptr : &it->second->instance;
}

std::string Instances::forgotten_dir(InstanceKey key) const {
  for (const std::string& dir : state_.trash_of(key)) {
    const auto entry = read_journal(dir);
    if (entry && entry->order.fence.store_id == state_.seen().store_id) return dir;
  }
  return {};
}

}  // namespace gpuq::agent
