#pragma once
// Common to the store's tests: a directory that goes with the test, an executor that the test
// pumps, and calls that wait for their answer.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "server/store/sqlite_store.h"

namespace gpuq::store {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpuq-store-XXXXXX").string();
    const char* made = ::mkdtemp(pattern.data());
    GPUQ_CHECK(made != nullptr);
    path_ = made;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string data() const { return path_ + "/data"; }

 private:
  std::string path_;
};

/// Runs what is posted on the thread that waits for it.
class PumpedExecutor final : public Executor {
 public:
  void post(Task task) override {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    ready_.notify_one();
  }
  void call_at(Time, Task) override { GPUQ_CHECK_MSG(false, "the store needs no timers"); }

  void run_until(const std::function<bool()>& finished) {
    while (!finished()) {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [this] { return !tasks_.empty(); });
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Task> tasks_;
};

inline Result<void> commit_and_wait(Store& store, PumpedExecutor& executor, CommitBatch batch) {
  std::optional<Result<void>> answer;
  store.commit(std::move(batch), [&](Result<void> result) { answer = std::move(result); });
  executor.run_until([&] { return answer.has_value(); });
  return *answer;
}

inline Result<void> probe_and_wait(Store& store, PumpedExecutor& executor) {
  std::optional<Result<void>> answer;
  store.probe([&](Result<void> result) { answer = std::move(result); });
  executor.run_until([&] { return answer.has_value(); });
  return *answer;
}

/// For GoogleTest's output.
inline std::string message_of(const Result<void>& result) {
  return result ? "success"
                : std::string(to_string(result.error().code)) + ": " + result.error().message;
}

}  // namespace gpuq::store
