#pragma once
// The one thread of a daemon on which its state lives: runs posted tasks, timers, and reactions to
// file descriptors and signals, one by one.
//
// Owner: main(). `post` and `stop` may be called from any thread; everything else from the loop's
// thread, or before `run`. A task may destroy what it likes except the loop itself.
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/clock.h"

namespace gpuq {

/// A timer that is so late shows that this process did not run.
inline constexpr Duration kStall{1'000};

class EventLoop final : public Executor {
 public:
  using TimerId = std::uint64_t;
  using WatchId = std::uint64_t;

  /// `clock` must outlive the loop; timers follow it, with a resolution of one millisecond. When
  /// timers are late by `stall_grace` or more, the process or the machine stood still: they wait
  /// that long once more, so that what came meanwhile is heard before anybody is judged by his
  /// silence. 0: never.
  explicit EventLoop(const Clock& clock, Duration stall_grace = Duration(0));
  ~EventLoop() override;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void post(Task task) override;
  void call_at(Time when, Task task) override { timer_at(when, std::move(task)); }

  /// As call_at, with an id to cancel it by. Timers of one time run in the order they were set.
  TimerId timer_at(Time when, Task task);
  TimerId timer_after(Duration delay, Task task);
  /// Does nothing for a timer that has run. The id 0 is never given.
  void cancel_timer(TimerId id);

  /// Calls `ready` whenever `fd` is readable (or hung up), until unwatched. The fd stays the
  /// caller's and must stay open until `unwatch`.
  WatchId watch_readable(int fd, std::function<void()> ready);
  void unwatch(WatchId id);

  /// Calls `handler(signal)` on the loop for each of `signals`. Replaces an earlier handler.
  void on_signals(const std::vector<int>& signals, std::function<void(int)> handler);

  /// Runs until `stop`, on the calling thread. May be called again after it returned.
  void run();
  /// Runs tasks that are ready, without waiting; returns how many. For tests.
  std::size_t run_ready();
  /// Makes `run` return after the present task; tasks not yet run stay queued.
  void stop();

  [[nodiscard]] Time now() const { return clock_.now(); }

 private:
  struct Impl;
  const Clock& clock_;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuq
