#pragma once
// Real clocks. Nothing outside common/runtime, the agent and the supervisor reads the time.
#include <cstdint>
#include <string>

#include "core/base/clock.h"

namespace gpuq {

/// Milliseconds since 1970-01-01 UTC; may step. For display and for the start of core time.
std::int64_t wall_now_ms();
/// Milliseconds of CLOCK_BOOTTIME: never steps, counts suspended time, restarts at boot.
std::int64_t boottime_now_ms();
/// Kernel boot id, a UUID in text form.
std::string boot_id();

/// Core time of a daemon: max(wall clock, `floor`) when made, then advanced by CLOCK_BOOTTIME. It
/// never goes back and sees no step of the wall clock. Thread-safe.
class BootClock final : public Clock {
 public:
  /// `floor`: last committed core time; kNoTime if there is none.
  explicit BootClock(Time floor = kNoTime);
  [[nodiscard]] Time now() const override;

 private:
  std::int64_t offset_ms_;  // core time - boot time
};

}  // namespace gpuq
