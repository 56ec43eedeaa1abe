#include "agent/shim/records.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include <nlohmann/json.hpp>

namespace gpuq::shim {
namespace {

using nlohmann::json;

json versioned() { return json{{"version", kRecordVersion}}; }

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Error unreadable(const std::string& path, const std::string& why) {
  return Error{ErrorCode::kDataLoss, path + ": " + why};
}

// Reads and parses `DIR/file` and hands it to `extract`, whose exceptions mean that the record is
// not what it should be.
template <typename T>
Result<T> read_json(const std::string& dir, const char* file,
                    const std::function<T(const json&)>& extract) {
  const std::string path = dir + "/" + file;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Error{ErrorCode::kNotFound, "cannot open " + path};
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  try {
    const json value = json::parse(text);
    const int version = value.at("version").get<int>();
    if (version < 1 || version > kRecordVersion) {
      return unreadable(path, "version " + std::to_string(version) + " is not known");
    }
    return extract(value);
  } catch (const json::exception& e) {
    return unreadable(path, e.what());
  }
}

int open_retrying(const char* path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path, flags, 0600);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

Error system_error(const std::string& what, const std::string& path) {
  return Error{ErrorCode::kInternal, what + " " + path + ": " + std::strerror(errno)};  // NOLINT
}

constexpr const char* kNewSuffix = ".new";
constexpr off_t kRecordSpace = 4096;

// Over what was set aside, so without truncating first.
Result<void> write_new(const std::string& path, const std::string& content, bool synced) {
  const int fd = open_retrying(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC);
  if (fd < 0) return system_error("cannot create", path);
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Error error = system_error("cannot write", path);
      ::close(fd);
      return error;
    }
    done += static_cast<std::size_t>(n);
  }
  if (::ftruncate(fd, static_cast<off_t>(content.size())) != 0 ||
      (synced && ::fdatasync(fd) != 0)) {
    Error error = system_error("cannot sync", path);
    ::close(fd);
    return error;
  }
  ::close(fd);
  return {};
}

Result<void> sync_directory(const std::string& dir) {
  const int fd = open_retrying(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open", dir);
  const int failed = ::fsync(fd);
  ::close(fd);
  if (failed != 0) return system_error("cannot sync", dir);
  return {};
}

}  // namespace

std::string to_json(const LaunchSpec& spec) {
  return dump(json{{"command", spec.command},
                   {"environment", spec.environment},
                   {"working_directory", spec.working_directory},
                   {"grace_ms", spec.grace_ms},
                   {"timeout_ms", spec.timeout_ms},
                   {"log_cap_bytes", spec.log_cap_bytes},
                   {"run_immediately", spec.run_immediately},
                   {"umask", spec.umask}});
}

std::string to_json(const RunRecord& record) {
  json value = versioned();
  value["shim_pid"] = record.shim_pid;
  value["shim_start_ticks"] = record.shim_start_ticks;
  value["main_pid"] = record.main_pid;
  value["main_start_ticks"] = record.main_start_ticks;
  value["boot_id"] = record.boot_id;
  value["prepared_wall_ms"] = record.prepared_wall_ms;
  return dump(value);
}

std::string to_json(const RunningRecord& record) {
  json value = versioned();
  value["running_wall_ms"] = record.running_wall_ms;
  value["running_boottime_ms"] = record.running_boottime_ms;
  return dump(value);
}

std::string to_json(const StopRecord& record) {
  json value = versioned();
  value["reason"] = record.reason;
  value["ordered_wall_ms"] = record.ordered_wall_ms;
  value["deadline_boottime_ms"] = record.deadline_boottime_ms;
  return dump(value);
}

std::string to_json(const StoppingRecord& record) {
  json value = versioned();
  value["reason"] = record.reason;
  value["signal_wall_ms"] = record.signal_wall_ms;
  value["deadline_boottime_ms"] = record.deadline_boottime_ms;
  return dump(value);
}

std::string to_json(const ExitRecord& record) {
  json value = versioned();
  value["started"] = record.started;
  value["lost"] = record.lost;
  if (record.exit_code) value["exit_code"] = *record.exit_code;
  if (record.term_signal) value["signal"] = *record.term_signal;
  value["signal_sent_before_exit"] = record.signal_sent_before_exit;
  value["killed_after_grace"] = record.killed_after_grace;
  value["stop_reason"] = record.stop_reason;
  value["status_reason"] = record.status_reason;
  value["running_wall_ms"] = record.running_wall_ms;
  value["ended_wall_ms"] = record.ended_wall_ms;
  value["ran_for_ms"] = record.ran_for_ms;
  return dump(value);
}

Result<LaunchSpec> read_launch(const std::string& dir) {
  return read_json<LaunchSpec>(dir, kStartFile, [](const json& value) {
    const json& launch = value.at("launch");
    LaunchSpec spec;
    launch.at("command").get_to(spec.command);
    launch.at("environment").get_to(spec.environment);
    launch.at("working_directory").get_to(spec.working_directory);
    launch.at("grace_ms").get_to(spec.grace_ms);
    launch.at("timeout_ms").get_to(spec.timeout_ms);
    launch.at("log_cap_bytes").get_to(spec.log_cap_bytes);
    launch.at("run_immediately").get_to(spec.run_immediately);
    launch.at("umask").get_to(spec.umask);
    return spec;
  });
}

Result<RunRecord> read_run(const std::string& dir) {
  return read_json<RunRecord>(dir, kRunFile, [](const json& value) {
    RunRecord record;
    value.at("shim_pid").get_to(record.shim_pid);
    value.at("shim_start_ticks").get_to(record.shim_start_ticks);
    value.at("main_pid").get_to(record.main_pid);
    value.at("main_start_ticks").get_to(record.main_start_ticks);
    value.at("boot_id").get_to(record.boot_id);
    value.at("prepared_wall_ms").get_to(record.prepared_wall_ms);
    return record;
  });
}

Result<RunningRecord> read_running(const std::string& dir) {
  return read_json<RunningRecord>(dir, kRunningFile, [](const json& value) {
    return RunningRecord{value.at("running_wall_ms").get<std::int64_t>(),
                         value.at("running_boottime_ms").get<std::int64_t>()};
  });
}

Result<StopRecord> read_stop(const std::string& dir) {
  return read_json<StopRecord>(dir, kStopFile, [](const json& value) {
    return StopRecord{value.at("reason").get<std::string>(),
                      value.at("ordered_wall_ms").get<std::int64_t>(),
                      value.at("deadline_boottime_ms").get<std::int64_t>()};
  });
}

Result<StoppingRecord> read_stopping(const std::string& dir) {
  return read_json<StoppingRecord>(dir, kStoppingFile, [](const json& value) {
    return StoppingRecord{value.at("reason").get<std::string>(),
                          value.at("signal_wall_ms").get<std::int64_t>(),
                          value.at("deadline_boottime_ms").get<std::int64_t>()};
  });
}

Result<ExitRecord> read_exit(const std::string& dir) {
  return read_json<ExitRecord>(dir, kExitFile, [](const json& value) {
    ExitRecord record;
    value.at("started").get_to(record.started);
    value.at("lost").get_to(record.lost);
    if (value.contains("exit_code")) record.exit_code = value.at("exit_code").get<int>();
    if (value.contains("signal")) record.term_signal = value.at("signal").get<int>();
    value.at("signal_sent_before_exit").get_to(record.signal_sent_before_exit);
    value.at("killed_after_grace").get_to(record.killed_after_grace);
    value.at("stop_reason").get_to(record.stop_reason);
    value.at("status_reason").get_to(record.status_reason);
    value.at("running_wall_ms").get_to(record.running_wall_ms);
    value.at("ended_wall_ms").get_to(record.ended_wall_ms);
    value.at("ran_for_ms").get_to(record.ran_for_ms);
    return record;
  });
}

Result<void> reserve_record(const std::string& dir, const char* file) {
  const std::string path = dir + "/" + file + kNewSuffix;
  const int fd = open_retrying(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC);
  if (fd < 0) return system_error("cannot create", path);
  const bool full = ::fallocate(fd, 0, 0, kRecordSpace) != 0 && errno != EOPNOTSUPP;
  Result<void> result;
  if (full) result = system_error("cannot set space aside in", path);
  ::close(fd);
  return result;
}

Result<void> write_record(const std::string& dir, const char* file, const std::string& content,
                          bool synced) {
  const std::string path = dir + "/" + file;
  const std::string temporary = path + kNewSuffix;
  if (auto written = write_new(temporary, content, synced); !written) return written;
  if (::rename(temporary.c_str(), path.c_str()) != 0) return system_error("cannot rename to", path);
  return synced ? sync_directory(dir) : Result<void>();
}

Result<void> sync_record(const std::string& dir, const char* file) {
  const std::string path = dir + "/" + file;
  const int fd = open_retrying(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open", path);
  const int failed = ::fdatasync(fd);
  ::close(fd);
  if (failed != 0) return system_error("cannot sync", path);
  return sync_directory(dir);
}

}  // namespace gpuq::shim
