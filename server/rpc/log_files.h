#pragma once
// LogFiles: output of ended attempts, handed in by agents, as files under DIR/JOB/ATTEMPT. A cap on
// the sum; what is oldest goes first. Blocking: only on the worker pool. Thread-safe.
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "common/runtime/unique_fd.h"
#include "core/base/ids.h"
#include "core/base/result.h"

namespace gpuq::rpc {

struct LogKey {
  JobId job;
  AttemptId attempt;
  std::int32_t instance = 0;
  bool is_stderr = false;
};

struct LogPart {
  std::int64_t offset = 0;  ///< Of the first byte of `data` in the whole output.
  std::string data;
  bool end = false;  ///< Nothing follows.
};

class LogFiles {
 public:
  /// One output being handed in; removed again unless commit() is called.
  class Upload {
   public:
    ~Upload();
    Result<> append(const std::string& data);
    /// Makes it readable, in place of an earlier one. Returns the bytes stored.
    Result<std::int64_t> commit();

   private:
    friend class LogFiles;
    Upload(LogFiles& files, UniqueFd fd, std::string temporary, std::string final_path)
        : files_(files),
          fd_(std::move(fd)),
          temporary_(std::move(temporary)),
          final_(std::move(final_path)) {}
    LogFiles& files_;
    UniqueFd fd_;
    std::string temporary_, final_;
    std::int64_t bytes_ = 0;
  };

  /// `dir` is made when first needed. `cap_bytes` >= 0.
  LogFiles(std::string dir, std::int64_t cap_bytes) : dir_(std::move(dir)), cap_(cap_bytes) {}

  /// `offset`: position of the first byte that will be appended.
  Result<std::unique_ptr<Upload>> begin(const LogKey& key, std::int64_t offset);
  /// At most `max` bytes from `offset` on (negative: that many before the end), or from the first
  /// one kept. kNotFound: was never handed in; kOutOfRange: was removed to keep the cap.
  Result<LogPart> read(const LogKey& key, std::int64_t offset, std::size_t max);
  /// Removes the oldest attempts until the cap holds.
  void prune();

 private:
  [[nodiscard]] std::string folder(const LogKey& key) const;
  [[nodiscard]] static std::string prefix(const LogKey& key);
  /// Attempts up to this one may have been removed; kept in a file.
  [[nodiscard]] std::int64_t removed_up_to() const;

  const std::string dir_;
  const std::int64_t cap_;
  std::mutex pruning_;
};

}  // namespace gpuq::rpc
