#include "agent/shim/log_cap.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace gpuq::shim {

bool LogCap::trim() {
  constexpr std::int64_t kBlock = 4096;
  struct stat info {};
  if (fd_ < 0 || cap_ <= 0 || ::fstat(fd_, &info) != 0) return false;
  const bool grown = info.st_size != size_;
  // A command may truncate its own output.
  if (info.st_size < size_) dropped_ = 0;
  size_ = info.st_size;
  const std::int64_t drop = (size_ - cap_) / kBlock * kBlock;
  if (drop > dropped_ && ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, dropped_,
                                     drop - dropped_) == 0) {
    dropped_ = drop;
  }
  return grown;
}

}  // namespace gpuq::shim
