#include "common/runtime/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

namespace gpuq {
namespace {

Result<void> write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("cannot write", path);
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> write_content(const std::string& path, std::string_view content, Durability durability,
                           unsigned mode, int how) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, mode));
  if (!fd.valid()) return errno_error("cannot create", path);
  if (auto written = write_all(fd.get(), content, path); !written) return written;
  if (durability == Durability::kSynced && ::fdatasync(fd.get()) != 0) {
    return errno_error("cannot sync", path);
  }
  return {};
}

std::string parent_dir(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Error errno_error(std::string_view what, std::string_view path) {
  const int code = errno;
  std::string message(what);
  message.append(" ").append(path).append(": ").append(std::strerror(code));  // NOLINT
  return Error{code == ENOENT                     ? ErrorCode::kNotFound
               : code == ENOSPC || code == EDQUOT ? ErrorCode::kResourceExhausted
               : code == EACCES || code == EPERM  ? ErrorCode::kPermissionDenied
                                                  : ErrorCode::kInternal,
               std::move(message)};
}

Result<void> write_file(const std::string& path, std::string_view content, Durability durability,
                        unsigned mode) {
  const std::string temporary = path + ".tmp";
  auto written = write_content(temporary, content, durability, mode, O_TRUNC);
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    Error error = errno_error("cannot rename to", path);
    ::unlink(temporary.c_str());
    return error;
  }
  return durability == Durability::kSynced ? sync_dir(parent_dir(path)) : Result<void>();
}

Result<void> write_new_file(const std::string& path, std::string_view content, unsigned mode) {
  return write_content(path, content, Durability::kSynced, mode, O_EXCL);
}

Result<std::string> read_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("cannot open", path);
  std::string content;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("cannot read", path);
    if (n == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

Result<void> sync_dir(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno_error("cannot open directory", path);
  if (::fsync(fd.get()) != 0) return errno_error("cannot sync directory", path);
  return {};
}

Result<void> make_dirs(const std::string& path, unsigned mode) {
  std::size_t end = 0;
  while (end != std::string::npos) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (part.empty() || part == "/") continue;
    if (::mkdir(part.c_str(), mode) == 0 || errno == EEXIST) continue;
    const int failed = errno;
    if (path_exists(part)) continue;
    errno = failed;
    return errno_error("cannot make directory", part);
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno_error("cannot make directory", path);
  if (!S_ISDIR(info.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, path + " exists and is not a directory"};
  }
  return {};
}

Result<void> remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error || error == std::errc::no_such_file_or_directory) return {};
  return Error{ErrorCode::kInternal, "cannot remove " + path + ": " + error.message()};
}

bool path_exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

Result<UniqueFd> lock_file(const std::string& path, Duration patience) {
  constexpr Duration kStep{10};
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error("cannot open lock file", path);
  for (Duration waited{0};; waited += kStep) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK) return errno_error("cannot lock", path);
    if (waited >= patience) break;
    std::this_thread::sleep_for(kStep);
  }
  return Error{ErrorCode::kFailedPrecondition, path + " is locked by another process"};
}

bool is_locked(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return false;
  return ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string random_uuid() {
  std::array<unsigned char, 16> b{};
  if (::getrandom(b.data(), b.size(), 0) != static_cast<ssize_t>(b.size())) {
    GPUQ_CHECK_MSG(false, "getrandom failed");
  }
  b[6] = static_cast<unsigned char>((b[6] & 0x0f) | 0x40);
  b[8] = static_cast<unsigned char>((b[8] & 0x3f) | 0x80);
  std::array<char, 37> text{};
  std::snprintf(text.data(), text.size(),
                "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
                b[15]);
  return text.data();
}

unsigned random_below(unsigned bound) {
  if (bound == 0) return 0;
  unsigned value = 0;
  if (::getrandom(&value, sizeof(value), 0) != static_cast<ssize_t>(sizeof(value))) return 0;
  return value % bound;
}

}  // namespace gpuq
