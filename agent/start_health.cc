#include "agent/start_health.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/runtime/files.h"

namespace gpuq::agent {
namespace {

// Files and directories of a few attempts.
constexpr fsfilcnt_t kMinInodes = 64;
// So long a failed start keeps others away: its cause may be one that a write does not show.
constexpr std::int64_t kFailureMs = 30'000;
constexpr std::int64_t kMib = 1024 * 1024;
constexpr std::size_t kProbeBytes = 64 * 1024;

}  // namespace

StartHealth::StartHealth(std::string dir, std::int64_t min_free)
    : dir_(std::move(dir)), min_free_(min_free) {}

std::string StartHealth::check_disk() {
  struct statvfs disk {};
  if (::statvfs(dir_.c_str(), &disk) != 0)
    return errno_error("cannot ask for space of", dir_).message;
  if ((disk.f_flag & ST_RDONLY) != 0)
    return "state directory " + dir_ + ": file system is read-only";
  if (disk.f_files > 0 && disk.f_favail < kMinInodes) {
    return "state directory " + dir_ + ": the disk has no more inodes";
  }
  const auto free_bytes =
      static_cast<std::int64_t>(disk.f_bavail) * static_cast<std::int64_t>(disk.f_frsize);
  const std::int64_t needed = low_ ? 2 * min_free_ : min_free_;
  low_ = free_bytes < needed;
  if (low_) {
    return "state directory " + dir_ + ": the disk has " + std::to_string(free_bytes / kMib) +
           " MiB left, new jobs need " + std::to_string(needed / kMib);
  }
  return {};
}

std::string StartHealth::check(std::int64_t now_ms) {
  if (std::string trouble = check_disk(); !trouble.empty()) return trouble;
  if (!failure_.empty() && now_ms - failed_at_ms_ >= kFailureMs && can_write()) failure_.clear();
  return failure_;
}

void StartHealth::failed(std::string why, std::int64_t now_ms) {
  failure_ = std::move(why);
  failed_at_ms_ = now_ms;
}

bool StartHealth::can_write() const {
  const std::string probe = dir_ + "/probe";
  const bool written = write_file(probe, std::string(kProbeBytes, 'x')).has_value();
  ::unlink(probe.c_str());
  return written;
}

}  // namespace gpuq::agent
