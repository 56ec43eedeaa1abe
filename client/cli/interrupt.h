#pragma once
// Ctrl-C as a call. Made before any other thread starts, so that only this object gets the signal.
#include <csignal>
#include <functional>
#include <thread>

#include "common/runtime/unique_fd.h"

namespace gpuq::cli {

/// Calls `handler` on a thread of its own for the first SIGINT or SIGTERM; a second one ends the
/// program at once with status 130.
class InterruptWatcher {
 public:
  explicit InterruptWatcher(std::function<void()> handler);
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

 private:
  void watch();

  std::function<void()> handler_;
  sigset_t previous_{};
  UniqueFd signals_;
  UniqueFd wake_;
  std::thread calls_;
  std::thread thread_;
};

}  // namespace gpuq::cli
