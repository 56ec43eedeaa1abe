#pragma once
// The only ways to time and threads: everything that wants the time or wants to run something later
// takes these interfaces, so that virtual time can stand in for real time.
#include <functional>

#include "core/base/time.h"

namespace gpuq {

/// Source of core time. Never goes back. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const = 0;
};

/// One thread's (or the simulator's) run queue. Tasks run on the executor's own thread, one by one.
class Executor {
 public:
  using Task = std::function<void()>;
  virtual ~Executor() = default;
  /// Runs `task` soon, never inside this call. Thread-safe.
  virtual void post(Task task) = 0;
  /// Runs `task` once core time has reached `when`. Only from the executor's thread.
  virtual void call_at(Time when, Task task) = 0;
};

}  // namespace gpuq
