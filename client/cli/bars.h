#pragma once
// Shares as bars.
#include <cstdint>
#include <string>

#include "client/cli/terminal.h"

namespace gpuq::cli {

/// A share's amounts on one unit, in milli-units.
struct BarAmounts {
  std::int64_t own = 0;       ///< Of its cap, used by itself.
  std::int64_t lent = 0;      ///< Of its cap, used by others.
  std::int64_t idle = 0;      ///< Of its cap, used by nobody.
  std::int64_t borrowed = 0;  ///< Beyond its cap.
};

/// A bar in which `full` milli-units are `width` cells. Every part that is not 0 has a cell at
/// least; the length of the rest is to scale.
std::string share_bar(const Terminal& terminal, const BarAmounts& amounts, std::int64_t full,
                      int width);

/// What the cells mean, in one line.
std::string bar_legend(const Terminal& terminal);

}  // namespace gpuq::cli
