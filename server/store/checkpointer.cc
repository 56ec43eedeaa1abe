#include "server/store/checkpointer.h"

#include <sqlite3.h>

#include <utility>

namespace gpuq::store {
namespace {

constexpr std::int64_t kFrameHeaderBytes = 24;
/// How long a full checkpoint holds up commits for the sake of readers that are still busy.
constexpr std::chrono::milliseconds kFullPatience{1000};

}  // namespace

Checkpointer::Checkpointer(const std::string& file, const std::string& vfs,
                           CheckpointOptions options, std::function<void()> when_idle)
    : options_(options), when_idle_(std::move(when_idle)), db_(file, Access::kReadWrite, vfs) {
  db_.exec("PRAGMA wal_autocheckpoint = 0");
  db_.exec("PRAGMA synchronous = FULL");
  frame_bytes_ = db_.query_int("PRAGMA page_size").value_or(4096) + kFrameHeaderBytes;
  thread_ = std::thread([this] { loop(); });
}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Checkpointer::note_commit() {
  const std::lock_guard lock(mutex_);
  written_ = true;
  if (asleep_) wake_.notify_one();
}

void Checkpointer::loop() {
  int quiet_rounds = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, options_.interval, [this] { return stop_; });
    if (stop_) return;
    const bool written = std::exchange(written_, false);
    quiet_rounds = written ? 0 : quiet_rounds + 1;
    lock.unlock();
    bool clean = false;
    if (written) {
      checkpoint(SQLITE_CHECKPOINT_PASSIVE);
      if (log_bytes() > options_.max_log_bytes) {
        db_.set_busy_timeout(kFullPatience);
        checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
        db_.set_busy_timeout({});
      }
    } else if (quiet_rounds >= options_.idle_rounds) {
      clean = checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
      if (clean) when_idle_();
    }
    lock.lock();
    if (clean) {
      asleep_ = true;
      wake_.wait(lock, [this] { return stop_ || written_; });
      asleep_ = false;
    }
  }
}

/// True when the whole log is in the database file. A failure leaves the log as it is: the next
/// round tries again, and a lasting fault of the disk shows in the commits.
bool Checkpointer::checkpoint(int mode) {
  int frames = 0;
  int moved = 0;
  const int code = sqlite3_wal_checkpoint_v2(db_.raw(), nullptr, mode, &frames, &moved);
  if (frames >= 0) log_bytes_.store(frames * frame_bytes_);
  return code == SQLITE_OK && frames == moved;
}

}  // namespace gpuq::store
