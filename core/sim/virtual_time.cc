#include "core/sim/virtual_time.h"

#include <algorithm>

namespace gpuq::sim {

void VirtualExecutor::call_at(Time when, Task task) {
  timers_.emplace(std::pair(std::max(when, clock_.now()), sequence_++), std::move(task));
}

bool VirtualExecutor::run_one() {
  if (ready_.empty()) {
    if (timers_.empty() || timers_.begin()->first.first > clock_.now()) return false;
    ready_.push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
  }
  Task task = std::move(ready_.front());
  ready_.pop_front();
  task();
  return true;
}

void VirtualExecutor::run() {
  while (run_one()) {
  }
}

Time VirtualExecutor::next_timer() const {
  return timers_.empty() ? kNever : timers_.begin()->first.first;
}

}  // namespace gpuq::sim
