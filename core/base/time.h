#pragma once
// Core time. A Time is milliseconds since the Unix epoch in the daemon and since the start of the
// scenario in simulation. It never goes back and never steps; where it comes from is the Clock's
// matter (common/runtime, core/sim). The core takes it as an argument.
#include <chrono>
#include <cstdint>

namespace gpuq {

using Duration = std::chrono::milliseconds;

/// Tag clock for std::chrono::time_point; it has no now() on purpose.
struct CoreClock {
  using rep = std::int64_t;
  using period = std::milli;
  using duration = Duration;
  using time_point = std::chrono::time_point<CoreClock, Duration>;
  static constexpr bool is_steady = true;
};

using Time = CoreClock::time_point;

constexpr Time time_from_ms(std::int64_t ms) { return Time(Duration(ms)); }
constexpr std::int64_t to_ms(Time time) { return time.time_since_epoch().count(); }

/// "Not yet": larger than every real time.
inline constexpr Time kNever = Time::max();
/// "No value": smaller than every real time.
inline constexpr Time kNoTime = Time::min();

}  // namespace gpuq
