#include "core/model/usage.h"

#include <algorithm>
#include <array>

namespace gpuq {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kFactorBits = 63;
constexpr std::uint64_t kOne = std::uint64_t{1} << kFactorBits;
constexpr int kExponentBits = 48;
constexpr int kAmountBits = 32;
constexpr int kAdvanceBits = 5;

// The largest root with root x root <= square.
constexpr std::uint64_t root_of(Wide square) {
  std::uint64_t root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const std::uint64_t more = root | (std::uint64_t{1} << bit);
    if (Wide{more} * more <= square) root = more;
  }
  return root;
}

// 2^(-1/2), 2^(-1/4), 2^(-1/8), ...: one factor for each bit of the exponent after the point.
constexpr std::array<std::uint64_t, kExponentBits> make_factors() {
  std::array<std::uint64_t, kExponentBits> factors{};
  std::uint64_t factor = kOne / 2;
  for (std::uint64_t& next : factors) {
    factor = root_of(Wide{factor} << kFactorBits);
    next = factor;
  }
  return factors;
}

constexpr std::array<std::uint64_t, kExponentBits> kFactors = make_factors();

constexpr std::uint64_t times(std::uint64_t value, std::uint64_t factor) {
  return static_cast<std::uint64_t>((Wide{value} * factor + kOne / 2) >> kFactorBits);
}

// 2^(-elapsed / half_life).
std::uint64_t decay(Duration elapsed, Duration half_life) {
  const auto past = static_cast<std::uint64_t>(elapsed.count());
  const auto half = static_cast<std::uint64_t>(half_life.count());
  if (past / half > kFactorBits) return 0;
  const auto exponent =
      static_cast<std::uint64_t>(((Wide{past % half} << kExponentBits) + half / 2) / half);
  std::uint64_t factor = kOne >> (past / half);
  for (int bit = 0; bit < kExponentBits; ++bit) {
    const bool set = ((exponent >> (kExponentBits - 1 - bit)) & 1) != 0;
    if (set) factor = times(factor, kFactors[static_cast<std::size_t>(bit)]);
  }
  return factor;
}

}  // namespace

UsageValue usage_of(Amount amount) {
  return {std::clamp(amount, kZero, kMostUsage).milli << kAmountBits};
}

Amount to_amount(UsageValue usage) {
  return Amount((usage.fixed + (std::int64_t{1} << (kAmountBits - 1))) >> kAmountBits);
}

UsageValue usage_at(const UsageRecord& record, Time now, Duration half_life) {
  if (now <= record.charged_at) return record.value;
  const std::int64_t held = usage_of(record.held).fixed;
  const std::int64_t apart = record.value.fixed - held;
  const auto distance = static_cast<std::uint64_t>(apart < 0 ? -apart : apart);
  const auto left =
      static_cast<std::int64_t>(times(distance, decay(now - record.charged_at, half_life)));
  return {held + (apart < 0 ? -left : left)};
}

UsageValue with_advance(UsageValue usage, Amount held) {
  return {usage.fixed + (usage_of(held).fixed >> kAdvanceBits)};
}

}  // namespace gpuq
