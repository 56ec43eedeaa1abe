#include "server/rpc/log_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "common/runtime/files.h"
#include "common/runtime/log.h"

namespace gpuq::rpc {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTemporary = ".part";
constexpr const char* kRemoved = "removed-up-to";
std::atomic<unsigned> upload_counter{0};

struct Stored {
  std::string path;
  std::int64_t offset = 0;
};

// Files of one output: PREFIX.OFFSET; the newest wins should a crash have left two.
std::vector<Stored> stored_files(const std::string& folder, const std::string& prefix) {
  std::vector<Stored> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || name.ends_with(kTemporary)) continue;
    Stored stored{entry.path().string(), 0};
    const char* digits = name.data() + prefix.size();
    const auto [end, parsed] = std::from_chars(digits, name.data() + name.size(), stored.offset);
    if (parsed == std::errc() && end == name.data() + name.size()) found.push_back(stored);
  }
  std::ranges::sort(found, {}, [](const Stored& s) { return s.path; });
  return found;
}

}  // namespace

LogFiles::Upload::~Upload() {
  if (fd_.valid()) ::unlink(temporary_.c_str());
}

Result<> LogFiles::Upload::append(const std::string& data) {
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t n = ::write(fd_.get(), data.data() + done, data.size() - done);
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno_error("write", temporary_);
    }
    done += static_cast<std::size_t>(n);
  }
  bytes_ += static_cast<std::int64_t>(data.size());
  return {};
}

Result<std::int64_t> LogFiles::Upload::commit() {
  if (::rename(temporary_.c_str(), final_.c_str()) != 0) return errno_error("rename", temporary_);
  fd_.reset();
  const std::string prefix = fs::path(final_).filename().string().substr(
      0, fs::path(final_).filename().string().rfind('.') + 1);
  for (const Stored& other : stored_files(fs::path(final_).parent_path().string(), prefix)) {
    if (other.path != final_) ::unlink(other.path.c_str());
  }
  files_.prune();
  return bytes_;
}

std::string LogFiles::folder(const LogKey& key) const {
  return dir_ + "/" + std::to_string(key.job.value) + "/" + std::to_string(key.attempt.value);
}

std::string LogFiles::prefix(const LogKey& key) {
  return std::to_string(key.instance) + (key.is_stderr ? ".stderr." : ".stdout.");
}

Result<std::unique_ptr<LogFiles::Upload>> LogFiles::begin(const LogKey& key, std::int64_t offset) {
  const std::string where = folder(key);
  if (auto made = make_dirs(where); !made) return made.error();
  const std::string final_path = where + "/" + prefix(key) + std::to_string(offset);
  const std::string temporary =
      final_path + "." + std::to_string(upload_counter.fetch_add(1)) + kTemporary;
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error("open", temporary);
  return std::unique_ptr<Upload>(new Upload(*this, std::move(fd), temporary, final_path));
}

Result<LogPart> LogFiles::read(const LogKey& key, std::int64_t offset, std::size_t max) {
  const auto files = stored_files(folder(key), prefix(key));
  if (files.empty()) {
    if (key.attempt.value > removed_up_to()) {
      return Error{ErrorCode::kNotFound, "no output of this attempt was handed in"};
    }
    return Error{ErrorCode::kOutOfRange, "the output of this attempt is no longer kept"};
  }
  const Stored& stored = files.back();
  const UniqueFd fd(::open(stored.path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return errno_error("open", stored.path);
  const std::int64_t end = stored.offset + info.st_size;
  if (offset < 0) offset = end + offset;
  LogPart part;
  part.offset = std::clamp(offset, stored.offset, end);
  part.data.resize(std::min(max, static_cast<std::size_t>(end - part.offset)));
  const ssize_t n =
      ::pread(fd.get(), part.data.data(), part.data.size(), part.offset - stored.offset);
  if (n < 0) return errno_error("read", stored.path);
  part.data.resize(static_cast<std::size_t>(n));
  part.end = part.offset + n >= end || n == 0;
  return part;
}

std::int64_t LogFiles::removed_up_to() const {
  const auto text = read_file(dir_ + "/" + kRemoved);
  std::int64_t value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

void LogFiles::prune() {
  const std::unique_lock lock(pruning_, std::try_to_lock);
  if (!lock) return;
  struct AttemptFolder {
    fs::path path;
    fs::file_time_type time;
    std::int64_t bytes = 0;
  };
  std::vector<AttemptFolder> folders;
  std::int64_t total = 0;
  std::error_code error;
  for (const auto& job : fs::directory_iterator(dir_, error)) {
    if (!job.is_directory(error)) continue;
    for (const auto& attempt : fs::directory_iterator(job.path(), error)) {
      AttemptFolder folder{attempt.path(), attempt.last_write_time(error), 0};
      for (const auto& file : fs::directory_iterator(attempt.path(), error)) {
        folder.bytes += static_cast<std::int64_t>(file.file_size(error));
      }
      total += folder.bytes;
      folders.push_back(std::move(folder));
    }
  }
  if (total <= cap_) return;
  std::ranges::sort(folders, {}, [](const AttemptFolder& f) { return std::pair(f.time, f.path); });
  std::int64_t removed = removed_up_to();
  for (const AttemptFolder& folder : folders) {
    if (total <= cap_) break;
    if (auto gone = remove_tree(folder.path.string()); !gone) {
      log_warning("old output stays: {}", gone.error().message);
      continue;
    }
    total -= folder.bytes;
    removed = std::max(removed, std::int64_t{std::atoll(folder.path.filename().c_str())});
    fs::remove(folder.path.parent_path(), error);  // only where it is empty
  }
  if (auto kept =
          write_file(dir_ + "/" + kRemoved, std::to_string(removed), Durability::kAtomicOnly);
      !kept) {
    log_warning("{}", kept.error().message);
  }
}

}  // namespace gpuq::rpc
