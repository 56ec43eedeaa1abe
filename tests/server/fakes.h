#pragma once
// Stand-ins for time, threads and agents' streams.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/clock.h"

namespace gpuq::rpc {

class FakeClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return now_; }
  void set(Time time) { now_ = time; }

 private:
  Time now_ = time_from_ms(1'700'000'000'000);
};

/// Runs what was posted when told to; time moves only by advance().
class FakeExecutor final : public Executor {
 public:
  explicit FakeExecutor(FakeClock& clock) : clock_(clock) {}
  void post(Task task) override { tasks_.push_back(std::move(task)); }
  void call_at(Time when, Task task) override { timers_.emplace(when, std::move(task)); }

  void run() {
    while (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }
  void advance(Duration by) {
    const Time end = clock_.now() + by;
    run();
    while (!timers_.empty() && timers_.begin()->first <= end) {
      clock_.set(std::max(clock_.now(), timers_.begin()->first));
      Task task = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      task();
      run();
    }
    clock_.set(end);
  }

 private:
  FakeClock& clock_;
  std::deque<Task> tasks_;
  std::multimap<Time, Task> timers_;
};

}  // namespace gpuq::rpc
