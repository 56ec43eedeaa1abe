#pragma once
// Gather: group commit on a slow disk. The callers that a commit answers ask again at once, while
// those that came meanwhile wait for the next commit. Without a moment's patience the two halves
// take turns for ever, each commit with half of what it could carry. Owner: the engine; its thread.
#include <algorithm>
#include <cstddef>

#include "core/base/time.h"

namespace gpuq {

class Gather {
 public:
  /// A commit that took `took` answered `answered` commands; `queued` others wait.
  /// True: commands wait until done(), at the latest until until().
  bool begin(std::size_t answered, std::size_t queued, Duration took, Time now) {
    if (answered < kMany || queued == 0 || took < kSlow) return false;
    wanted_ = answered + queued;
    until_ = now + std::max(kShortest, took / 4);
    return true;
  }
  [[nodiscard]] bool done(std::size_t queued, Time now) const {
    return now >= until_ || queued >= wanted_;
  }
  [[nodiscard]] Time until() const { return until_; }

 private:
  // A few callers lose more by waiting than they win; a fast disk has no time to win.
  static constexpr std::size_t kMany = 8;
  static constexpr Duration kSlow{2};
  static constexpr Duration kShortest{1};

  std::size_t wanted_ = 0;
  Time until_{};
};

}  // namespace gpuq
