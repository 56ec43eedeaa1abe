#pragma once
// Amount: an exact quantity of one capacity unit in milli-units (one GPU = 1000). No floating point
// anywhere in the core; ratios are compared by cross-multiplication in 128 bits.
#include <compare>
#include <cstdint>
#include <string>

namespace gpuq {

struct Amount {
  std::int64_t milli = 0;

  constexpr Amount() = default;
  constexpr explicit Amount(std::int64_t milli_units) : milli(milli_units) {}
  static constexpr Amount units(std::int64_t whole) { return Amount(whole * 1000); }

  constexpr auto operator<=>(const Amount&) const = default;
  constexpr Amount operator-() const { return Amount(-milli); }
  constexpr Amount& operator+=(Amount other) {
    milli += other.milli;
    return *this;
  }
  constexpr Amount& operator-=(Amount other) {
    milli -= other.milli;
    return *this;
  }
};

constexpr Amount operator+(Amount a, Amount b) { return Amount(a.milli + b.milli); }
constexpr Amount operator-(Amount a, Amount b) { return Amount(a.milli - b.milli); }
constexpr Amount operator*(Amount a, std::int64_t n) { return Amount(a.milli * n); }

inline constexpr Amount kZero{};
/// Larger than any capacity; used for "no ceiling". Half the range, so that sums do not overflow.
inline constexpr Amount kUnlimited{std::int64_t{1} << 61};

/// a/b < c/d for b, d >= 0 in exact arithmetic; x/0 counts as infinite (equal to any other x/0).
bool ratio_less(Amount a, Amount b, Amount c, Amount d);

/// "8", "0.25", "7.5", "-1": units with at most three decimals.
std::string to_string(Amount amount);

}  // namespace gpuq
