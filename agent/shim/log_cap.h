#pragma once
// Keeps an output file within its cap by giving the oldest part back to the file system. The
// process writes straight to the file (so output survives the supervisor), and offsets stay what
// they were: a hole takes the place of what is dropped.
#include <cstdint>

namespace gpuq::shim {

class LogCap {
 public:
  LogCap() = default;
  /// `fd` open for writing, stays the caller's. `cap_bytes` 0 = no cap.
  LogCap(int fd, std::int64_t cap_bytes) : fd_(fd), cap_(cap_bytes) {}

  /// Drops what is beyond the cap. Returns whether the file has grown since the last call.
  bool trim();

 private:
  int fd_ = -1;
  std::int64_t cap_ = 0;
  std::int64_t size_ = 0;
  std::int64_t dropped_ = 0;
};

}  // namespace gpuq::shim
