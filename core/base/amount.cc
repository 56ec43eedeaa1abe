#include "core/base/amount.h"

#include <fmt/format.h>

namespace gpuq {

bool ratio_less(Amount a, Amount b, Amount c, Amount d) {
  if (b.milli == 0) return false;
  if (d.milli == 0) return true;
  __extension__ using Wide = __int128;
  return static_cast<Wide>(a.milli) * d.milli < static_cast<Wide>(c.milli) * b.milli;
}

std::string to_string(Amount amount) {
  const std::int64_t abs = amount.milli < 0 ? -amount.milli : amount.milli;
  std::string text = fmt::format("{}{}.{:03}", amount.milli < 0 ? "-" : "", abs / 1000, abs % 1000);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace gpuq
