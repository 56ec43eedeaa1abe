#pragma once
// StartHealth: whether attempts can start on this node: space on the state directory's disk, and
// what the last start that could not even begin ran into. An agent that goes on taking attempts
// which it can not start empties the queue. Loop thread only. Owner: the agent's wiring.
#include <cstdint>
#include <string>
#include <utility>

namespace gpuq::agent {

class StartHealth {
 public:
  /// `min_free` bytes, >= 0: with less nothing new starts, until there is twice as much.
  StartHealth(std::string dir, std::int64_t min_free);

  /// Why nothing new can start, one sentence; empty = it can. Asks the disk. `now_ms` on
  /// CLOCK_BOOTTIME.
  [[nodiscard]] std::string check(std::int64_t now_ms);

  /// A start could not begin, for no fault of the job: `why` is the trouble for a while, and then
  /// until something can be written.
  void failed(std::string why, std::int64_t now_ms);

 private:
  [[nodiscard]] std::string check_disk();
  [[nodiscard]] bool can_write() const;

  std::string dir_;
  std::int64_t min_free_;
  bool low_ = false;
  std::string failure_;
  std::int64_t failed_at_ms_ = 0;
};

}  // namespace gpuq::agent
