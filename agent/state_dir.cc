#include "agent/state_dir.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include <nlohmann/json.hpp>

#include "common/runtime/files.h"

namespace gpuq::agent {
namespace {

namespace fs = std::filesystem;

constexpr Duration kLockPatience{500};

std::optional<InstanceKey> parse_key(const std::string& name) {
  InstanceKey key;
  const char* end = name.data() + name.size();
  const auto first = std::from_chars(name.data(), end, key.attempt_id);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, key.instance);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return key;
}

std::string dir_name(InstanceKey key) {
  return std::to_string(key.attempt_id) + "." + std::to_string(key.instance);
}

std::vector<std::string> names_in(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<StateDir> StateDir::open(const std::string& path) {
  StateDir dir;
  std::error_code error;
  dir.path_ = fs::absolute(path, error).string();
  if (error) return Error{ErrorCode::kInvalidArgument, path + ": " + error.message()};
  for (const char* part : {"", "/attempts", "/trash", "/checkpoints"}) {
    if (auto made = make_dirs(dir.path_ + part); !made) return made.error();
  }
  auto lock = lock_file(dir.path_ + "/lock", kLockPatience);
  if (!lock && lock.error().code == ErrorCode::kFailedPrecondition) {
    return Error{ErrorCode::kFailedPrecondition,
                 "state directory " + dir.path_ +
                     " is used by another gpuq-agent; give this one its own --state-dir"};
  }
  if (!lock) return lock.error();
  dir.lock_ = std::move(*lock);
  if (auto loaded = dir.load(); !loaded) return loaded.error();
  return dir;
}

Result<void> StateDir::load() {
  auto id = read_file(path_ + "/id");
  if (!id && id.error().code != ErrorCode::kNotFound) return id.error();
  if (id) {
    id_ = *id;
    while (!id_.empty() && id_.back() == '\n') id_.pop_back();
  } else {
    id_ = random_uuid();
    if (auto written = write_file(path_ + "/id", id_ + "\n"); !written) return written;
  }
  auto seen = read_file(path_ + "/seen.json");
  if (!seen) return seen.error().code == ErrorCode::kNotFound ? Result<void>() : seen.error();
  try {
    const auto value = nlohmann::json::parse(*seen);
    seen_.store_id = value.at("store_id").get<std::string>();
    seen_.epoch = value.at("epoch").get<std::uint64_t>();
  } catch (const nlohmann::json::exception& e) {
    return Error{ErrorCode::kDataLoss, path_ + "/seen.json is damaged: " + e.what()};
  }
  return {};
}

Result<void> StateDir::set_seen(const std::string& store_id, std::uint64_t epoch) {
  const nlohmann::json value{{"store_id", store_id}, {"epoch", epoch}};
  auto written = write_file(path_ + "/seen.json", value.dump() + "\n");
  if (!written) return written;
  seen_.store_id = store_id;
  seen_.epoch = epoch;
  return {};
}

std::string StateDir::instance_dir(InstanceKey key) const {
  return attempts_dir() + "/" + dir_name(key);
}

std::string StateDir::checkpoint_dir(std::int64_t job_id) const {
  return path_ + "/checkpoints/" + std::to_string(job_id);
}

std::vector<InstanceKey> StateDir::instances() const {
  std::vector<InstanceKey> keys;
  for (const auto& name : names_in(attempts_dir())) {
    if (const auto key = parse_key(name)) keys.push_back(*key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

Result<std::string> StateDir::discard(InstanceKey key) {
  // A name of its own: the next store may count attempts from 1 again while this one is being
  // uploaded.
  const std::string target = path_ + "/trash/" + dir_name(key) + "-" + random_uuid();
  std::error_code error;
  fs::rename(instance_dir(key), target, error);
  if (error) {
    return Error{ErrorCode::kInternal,
                 "cannot move " + instance_dir(key) + " to the trash: " + error.message()};
  }
  return target;
}

std::vector<std::string> StateDir::trash_of(InstanceKey key) const {
  std::vector<std::string> paths;
  const std::string prefix = dir_name(key) + "-";
  for (const auto& name : names_in(path_ + "/trash")) {
    if (name.rfind(prefix, 0) == 0) paths.push_back(path_ + "/trash/" + name);
  }
  return paths;
}

std::vector<std::string> StateDir::trash() const {
  std::vector<std::string> paths;
  for (const auto& name : names_in(path_ + "/trash")) paths.push_back(path_ + "/trash/" + name);
  return paths;
}

}  // namespace gpuq::agent
