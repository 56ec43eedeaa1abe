#pragma once
// Moves committed pages from the write-ahead log to the database file, on a thread and connection
// of its own, so that no commit does it. Owned by the store. Sleeps without polling when nothing is
// written.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "server/store/db.h"

namespace gpuq::store {

struct CheckpointOptions {
  std::chrono::milliseconds interval{100};  ///< Between passive checkpoints while there is writing.
  int idle_rounds = 10;  ///< Intervals without writing after which the log is truncated.
  /// Size of the log at which commits wait for one full checkpoint.
  std::int64_t max_log_bytes = std::int64_t{256} << 20;
};

class Checkpointer {
 public:
  /// `when_idle` runs on the checkpointer's thread after each truncation.
  Checkpointer(const std::string& file, const std::string& vfs, CheckpointOptions options,
               std::function<void()> when_idle);
  /// Ends the thread. Leaves the rest of the log to the next open.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Tells that a commit has written. Thread-safe, never blocks for long.
  void note_commit();
  /// Size of the log at the last checkpoint. Thread-safe.
  [[nodiscard]] std::int64_t log_bytes() const { return log_bytes_.load(); }

 private:
  void loop();
  bool checkpoint(int mode);

  const CheckpointOptions options_;
  const std::function<void()> when_idle_;
  Connection db_;
  std::int64_t frame_bytes_ = 0;
  std::atomic<std::int64_t> log_bytes_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  bool written_ = true;  ///< Since the last round. True at first: a crash may have left a log.
  bool asleep_ = false;
  std::thread thread_;
};

}  // namespace gpuq::store
