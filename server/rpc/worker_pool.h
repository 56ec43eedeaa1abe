#pragma once
// WorkerPool: a few threads for what may block (history, log files), away from the core loop.
// Owner: the server's wiring. Thread-safe.
#include <cstddef>
#include <functional>
#include <memory>

namespace gpuq::rpc {

class WorkerPool {
 public:
  explicit WorkerPool(std::size_t threads);
  ~WorkerPool();  ///< As stop().
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void post(std::function<void()> task);
  /// Runs what is queued, then ends the threads; later posts are dropped.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuq::rpc
