#include "server/store/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace gpuq::store {
namespace {

Error system_error(const std::string& what, int number) {
  const ErrorCode code = number == EACCES || number == EPERM || number == EROFS
                             ? ErrorCode::kPermissionDenied
                         : number == ENOSPC || number == EDQUOT ? ErrorCode::kResourceExhausted
                                                                : ErrorCode::kUnavailable;
  return {code, what + ": " + std::strerror(number)};  // NOLINT(concurrency-mt-unsafe)
}

Result<void> make_directory(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return system_error("cannot make directory " + parent.string(), error.value());
  if (::mkdir(path.c_str(), 0700) == 0) return sync_path(parent.empty() ? "." : parent.string());
  if (errno != EEXIST) return system_error("cannot make data directory " + path, errno);
  if (!std::filesystem::is_directory(path, error)) {
    return Error{ErrorCode::kFailedPrecondition,
                 "data directory " + path + " is not a directory; name another one"};
  }
  return {};
}

/// Process id in the lock file, for the message to whoever comes second.
std::string holder_of(int fd) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  const std::string pid(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return pid.empty() ? "another server" : "another server (process " + pid + ")";
}

}  // namespace

Result<void> sync_path(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open " + path, errno);
  const int failed = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (failed != 0) return system_error("cannot sync " + path, failed);
  return {};
}

Result<DataDir> DataDir::open(const std::string& path, std::int64_t reserve_bytes) {
  if (auto made = make_directory(path); !made) return made.error();
  const std::string lock_file = path + "/lock";
  // Close-on-exec: a lock inherited by a child would outlive the server.
  const int fd = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return system_error("cannot open " + lock_file, errno);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int failed = errno;
    const std::string holder = holder_of(fd);
    ::close(fd);
    if (failed != EWOULDBLOCK) return system_error("cannot lock " + lock_file, failed);
    return Error{ErrorCode::kFailedPrecondition, "data directory " + path + " is in use by " +
                                                     holder +
                                                     "; stop that one or name another directory"};
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    // Only the message of the next comer would miss it.
  }
  return DataDir(path, fd, reserve_bytes);
}

DataDir::DataDir(std::string path, int lock_fd, std::int64_t reserve_bytes)
    : path_(std::move(path)), lock_fd_(lock_fd), reserve_bytes_(reserve_bytes) {}

DataDir::DataDir(DataDir&& other) noexcept
    : path_(std::move(other.path_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      database_inode_(other.database_inode_),
      reserve_bytes_(other.reserve_bytes_) {}

DataDir::~DataDir() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

Result<> DataDir::check_in_place() {
  struct stat held {};
  struct stat named {};
  struct stat database {};
  const bool in_place = ::fstat(lock_fd_, &held) == 0 &&
                        ::stat((path_ + "/lock").c_str(), &named) == 0 &&
                        held.st_ino == named.st_ino && held.st_dev == named.st_dev &&
                        ::stat(database_file().c_str(), &database) == 0 &&
                        (database_inode_ == 0 || database.st_ino == database_inode_);
  if (in_place) {
    database_inode_ = database.st_ino;
    return {};
  }
  return Error{ErrorCode::kAborted,
               "data directory " + path_ +
                   " was removed or replaced under this server: put it back and start the server "
                   "again"};
}

void DataDir::ensure_reserve() {
  if (reserve_bytes_ <= 0 || has_reserve()) return;
  struct statvfs disk {};
  if (::statvfs(path_.c_str(), &disk) != 0) return;
  const auto free_bytes = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (free_bytes / 4 < static_cast<std::uint64_t>(reserve_bytes_)) return;
  const int fd = ::open(reserve_file().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const bool full = ::posix_fallocate(fd, 0, reserve_bytes_) == 0;
  ::close(fd);
  if (!full) ::unlink(reserve_file().c_str());
}

bool DataDir::release_reserve() { return ::unlink(reserve_file().c_str()) == 0; }

bool DataDir::has_reserve() const { return ::access(reserve_file().c_str(), F_OK) == 0; }

}  // namespace gpuq::store
