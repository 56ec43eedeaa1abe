#pragma once
// Virtual time: a clock that moves when told and an executor that runs its tasks in order. Single
// thread; owner: the simulation.
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "core/base/clock.h"

namespace gpuq::sim {

class VirtualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return now_; }
  void set(Time now) { now_ = now; }

 private:
  Time now_{};
};

class VirtualExecutor final : public Executor {
 public:
  explicit VirtualExecutor(const VirtualClock& clock) : clock_(clock) {}
  void post(Task task) override { ready_.push_back(std::move(task)); }
  void call_at(Time when, Task task) override;

  /// Runs posted tasks and due timers until none is left at the present time.
  void run();
  /// Runs one task; false when none is ready.
  bool run_one();
  /// When the next timer is due; kNever when there is none.
  [[nodiscard]] Time next_timer() const;

 private:
  const VirtualClock& clock_;
  std::deque<Task> ready_;
  std::map<std::pair<Time, std::uint64_t>, Task> timers_;
  std::uint64_t sequence_ = 0;
};

}  // namespace gpuq::sim
