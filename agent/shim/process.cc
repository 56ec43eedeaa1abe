#include "agent/shim/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>

namespace gpuq::shim {
namespace {

// Not by a file stream: that one throws when a process ends between open and read.
std::string slurp(const std::string& path) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(fd, buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return text;
}

std::int64_t clock_ms(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::int64_t{ts.tv_sec} * 1000 + ts.tv_nsec / 1'000'000;
}

bool has_variable(pid_t pid, const std::string& tag) {
  const std::string block = slurp("/proc/" + std::to_string(pid) + "/environ");
  for (std::size_t at = 0; at < block.size();) {
    const std::size_t end = std::min(block.find('\0', at), block.size());
    if (block.compare(at, end - at, tag) == 0) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::optional<ProcessInfo> process_info(pid_t pid) {
  const std::string text = slurp("/proc/" + std::to_string(pid) + "/stat");
  // The name in brackets may hold anything, brackets and spaces too.
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessInfo info;
  info.pid = pid;
  pid_t group = 0;
  fields >> info.state >> info.parent >> group >> info.session;
  std::int64_t skipped = 0;
  for (int field = 7; field < 22; ++field) fields >> skipped;
  fields >> info.start_ticks;
  if (!fields) return std::nullopt;
  return info;
}

std::vector<ProcessInfo> all_processes() {
  std::vector<ProcessInfo> out;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return out;
  while (const dirent* entry = ::readdir(proc)) {  // NOLINT: one thread per DIR
    const std::string name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (const auto info = process_info(pid)) out.push_back(*info);
  }
  ::closedir(proc);
  return out;
}

std::vector<ProcessInfo> descendants(pid_t ancestor) {
  std::multimap<pid_t, ProcessInfo> children;
  for (const auto& process : all_processes()) children.emplace(process.parent, process);
  std::vector<ProcessInfo> out;
  std::vector<pid_t> pending{ancestor};
  while (!pending.empty()) {
    const auto [begin, end] = children.equal_range(pending.back());
    pending.pop_back();
    for (auto it = begin; it != end; ++it) {
      pending.push_back(it->second.pid);
      if (it->second.state != 'Z') out.push_back(it->second);
    }
  }
  return out;
}

std::vector<ProcessInfo> leftovers(pid_t session, const std::string& tag) {
  std::vector<ProcessInfo> out;
  for (const auto& process : all_processes()) {
    if (process.state == 'Z' || process.pid == ::getpid()) continue;
    if ((session > 0 && process.session == session) || has_variable(process.pid, tag)) {
      out.push_back(process);
    }
  }
  return out;
}

bool signal_process(const ProcessInfo& process, int signal) {
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  if (fd < 0) return false;
  // The descriptor now pins whoever has the pid: was it the one we mean?
  const auto present = process_info(process.pid);
  const bool same = present && present->start_ticks == process.start_ticks;
  const bool sent = same && ::syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0) == 0;
  ::close(fd);
  return sent;
}

std::int64_t wall_ms() { return clock_ms(CLOCK_REALTIME); }

std::int64_t boottime_ms() { return clock_ms(CLOCK_BOOTTIME); }

std::string current_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace gpuq::shim
