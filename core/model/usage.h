#pragma once
// Usage: how much somebody held on average, where the past counts less the longer ago it is: what
// lies one half-life back counts half. Whole numbers only, so that equal histories give equal
// usage on every machine. Values; no owner, any thread.
//
// With r held since the last charge, at which the usage was u, it is
//   r + (u - r) x 2^(-elapsed / half_life)
// after `elapsed`: between u and r, so it never goes below zero and never above the most that was
// ever held, however many years pass. The factor is rounded to 2^-63 and its exponent to 2^-48;
// each charge rounds to the nearest 2^-32 of a milli-unit. Usage decays when it is charged
// or looked at, and how often that happens changes no more than these roundings.
#include <compare>
#include <cstdint>
#include <string>

#include "core/base/amount.h"
#include "core/base/ids.h"
#include "core/base/time.h"

namespace gpuq {

inline constexpr Duration kDefaultHalfLife{std::chrono::hours(24)};
inline constexpr Duration kMinHalfLife{std::chrono::minutes(1)};
inline constexpr Duration kMaxHalfLife{std::chrono::hours(24) * 365};
/// More of a unit than that counts as that much: a million.
inline constexpr Amount kMostUsage{std::int64_t{1} << 30};

/// An amount of one unit in fixed point: 2^-32 of a milli-unit.
struct UsageValue {
  std::int64_t fixed = 0;
  auto operator<=>(const UsageValue&) const = default;
};

UsageValue usage_of(Amount amount);
/// To the nearest milli-unit, for people.
Amount to_amount(UsageValue usage);

/// What a record counts. Numbers are stored: never renumber, only append.
enum class UsageKind : std::uint8_t {
  kBorrowed = 1,  ///< What a share holds above its cap.
  kUser = 2,      ///< What a user holds in a share; `name` is the user.
};

/// Whose usage, and of what. `name` tells apart those within the share that the kind speaks of.
struct UsageKey {
  ShareId share;
  UsageKind kind = UsageKind::kBorrowed;
  UnitId unit;
  std::string name;
  auto operator<=>(const UsageKey&) const = default;
};

struct UsageRecord {
  UsageKey key;
  UsageValue value;  ///< At `charged_at`.
  Time charged_at{};
  Amount held;  ///< Since then.
  bool operator==(const UsageRecord&) const = default;
};

/// The usage at `now`; a time before the last charge counts as that.
UsageValue usage_at(const UsageRecord& record, Time now, Duration half_life);

/// What two usages of one time are compared by: a 32nd of what is held now, or is about to be, is
/// charged in advance. So a start counts at once, for as much as it is charged in the first 22nd of
/// a half-life, and one that ends early has been charged for no more than it held.
UsageValue with_advance(UsageValue usage, Amount held);

}  // namespace gpuq
