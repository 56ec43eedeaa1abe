#include "common/runtime/clocks.h"

#include <algorithm>
#include <ctime>
#include <fstream>

namespace gpuq {
namespace {

std::int64_t read_clock_ms(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return std::int64_t{ts.tv_sec} * 1000 + ts.tv_nsec / 1'000'000;
}

}  // namespace

std::int64_t wall_now_ms() { return read_clock_ms(CLOCK_REALTIME); }

std::int64_t boottime_now_ms() { return read_clock_ms(CLOCK_BOOTTIME); }

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

BootClock::BootClock(Time floor) {
  std::int64_t start_ms = wall_now_ms();
  if (floor != kNoTime) start_ms = std::max(start_ms, to_ms(floor));
  offset_ms_ = start_ms - boottime_now_ms();
}

Time BootClock::now() const { return time_from_ms(boottime_now_ms() + offset_ms_); }

}  // namespace gpuq
