#pragma once
// Removes the directories of forgotten instances, after the last part of their output has gone to
// the server. On a thread of its own, as both may take long.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "agent/types.h"
#include "core/base/result.h"

namespace gpuq::agent {

/// One output of one ended instance.
struct LogUpload {
  Fence fence;
  std::int64_t job_id = 0;
  std::uint32_t instance = 0;
  bool stderr_stream = false;
  std::string path;
  std::int64_t max_bytes = 0;  ///< Only the last so many.
};

/// Blocks until the server has it. UNAVAILABLE = try again later; any other error = give up.
using LogUploader = std::function<Result<void>(const LogUpload&)>;

class Disposer {
 public:
  /// `upload_bytes`: of each output, the last so many; 0 = nothing is uploaded.
  explicit Disposer(std::int64_t upload_bytes);
  /// Finishes the directory at hand and leaves the others for the next agent.
  ~Disposer();
  Disposer(const Disposer&) = delete;
  Disposer& operator=(const Disposer&) = delete;

  /// Takes over a directory. If its upload is UNAVAILABLE it stays, to be tried again by retry().
  /// Any thread.
  void dispose(const std::string& dir);
  /// Tries anew, from now on through `uploader`. Any thread.
  void retry(LogUploader uploader);

 private:
  void run();
  bool upload(const std::string& dir, const LogUploader& uploader) const;

  const std::int64_t upload_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> queue_;
  std::set<std::string> waiting_;  // for retry()
  LogUploader uploader_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace gpuq::agent
