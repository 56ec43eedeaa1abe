#include "core/model/usage.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>

namespace gpuq {
namespace {

constexpr Duration kDay{std::chrono::hours(24)};

UsageRecord record(UsageValue value, Amount held) {
  return {{ShareId(1), UsageKind::kBorrowed, UnitId(2), {}}, value, time_from_ms(1'000), held};
}

UsageRecord charged(UsageRecord record, Time now, Amount held) {
  record.value = usage_at(record, now, kDay);
  record.charged_at = now;
  record.held = held;
  return record;
}

Amount after(const UsageRecord& record, Duration elapsed) {
  return to_amount(usage_at(record, record.charged_at + elapsed, kDay));
}

TEST(Usage, HalvesInAHalfLifeWhileNothingIsHeld) {
  const UsageRecord eight = record(usage_of(Amount::units(8)), kZero);
  EXPECT_EQ(after(eight, Duration(0)), Amount::units(8));
  EXPECT_EQ(after(eight, kDay), Amount::units(4));
  EXPECT_EQ(after(eight, 2 * kDay), Amount::units(2));
  EXPECT_EQ(after(eight, kDay / 2), Amount(5'657));            // 8 / sqrt(2) = 5.65685
  EXPECT_EQ(after(eight, kDay - Duration(1)), Amount(4'000));  // 32 micro-units more than half
  EXPECT_GT(usage_at(eight, time_from_ms(1'000) + kDay - Duration(1), kDay),
            usage_of(Amount::units(4)));
}

TEST(Usage, ComesHalfwayToWhatIsHeldInAHalfLife) {
  const UsageRecord from_zero = record({}, Amount::units(8));
  EXPECT_EQ(after(from_zero, kDay), Amount::units(4));
  EXPECT_EQ(after(from_zero, 2 * kDay), Amount::units(6));
  const UsageRecord from_above = record(usage_of(Amount::units(8)), Amount::units(2));
  EXPECT_EQ(after(from_above, kDay), Amount::units(5));
  const UsageRecord steady = record(usage_of(Amount(250)), Amount(250));
  EXPECT_EQ(usage_at(steady, time_from_ms(987'654'321), kDay), usage_of(Amount(250)));
}

TEST(Usage, ATimeBeforeTheChargeCountsAsThat) {
  const UsageRecord one = record(usage_of(Amount::units(1)), Amount::units(9));
  EXPECT_EQ(usage_at(one, time_from_ms(0), kDay), usage_of(Amount::units(1)));
}

TEST(Usage, StaysInBoundsForAsLongAsTimeGoes) {
  const UsageValue most = usage_of(kMostUsage);
  for (const Duration half_life : {kMinHalfLife, kDefaultHalfLife, kMaxHalfLife}) {
    for (const Amount held : {kZero, Amount(1), kMostUsage, kUnlimited}) {
      for (int bit = 0; bit < 46; ++bit) {
        const Time now = time_from_ms(1'000) + Duration(std::int64_t{1} << bit);
        const UsageValue from_most = usage_at(record(most, held), now, half_life);
        const UsageValue from_none = usage_at(record({}, held), now, half_life);
        ASSERT_GE(from_none, UsageValue()) << bit;
        ASSERT_LE(from_none, from_most) << bit;
        ASSERT_LE(from_most, most) << bit;
      }
    }
  }
  const Time late = time_from_ms(1'000) + 64 * kMaxHalfLife;
  EXPECT_EQ(usage_at(record(most, kZero), late, kMaxHalfLife), UsageValue());
  EXPECT_EQ(usage_at(record({}, Amount(7)), late, kMaxHalfLife), usage_of(Amount(7)));
}

TEST(Usage, IsWhatTheFormulaSays) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'000; ++i) {
    const UsageRecord one = record(usage_of(Amount(static_cast<std::int64_t>(random() % 100'000))),
                                   Amount(static_cast<std::int64_t>(random() % 100'000)));
    const auto elapsed = Duration(static_cast<std::int64_t>(random() % 1'000'000'000));
    const double u = static_cast<double>(one.value.fixed);
    const double r = static_cast<double>(usage_of(one.held).fixed);
    const double d =
        std::exp2(-static_cast<double>(elapsed.count()) / static_cast<double>(kDay.count()));
    const UsageValue found = usage_at(one, one.charged_at + elapsed, kDay);
    ASSERT_NEAR(static_cast<double>(found.fixed), r + (u - r) * d, 1e-11 * (u + r)) << i;
  }
}

// A day charged in 10,000 parts of any length differs from one charge by less than a millionth of
// a milli-unit: 10,000 roundings of 2^-33 at most are 1.2e-6, and each is halved in a half-life.
TEST(Usage, HowOftenItIsChargedDoesNotMatter) {
  std::mt19937_64 random(2);
  for (const Amount held : {kZero, Amount(1), Amount::units(300)}) {
    const UsageRecord once = record(usage_of(Amount::units(77)), held);
    UsageRecord often = once;
    for (int part = 0; part < 10'000; ++part) {
      often = charged(often, often.charged_at + Duration(random() % 17'280), held);
    }
    const UsageValue expected = usage_at(once, often.charged_at, kDay);
    EXPECT_LE(std::abs(often.value.fixed - expected.fixed), std::int64_t{1} << 12);
  }
}

TEST(Usage, DecaysAlsoWhenItIsChargedEveryMillisecond) {
  UsageRecord often = record(usage_of(Amount::units(8)), kZero);
  const UsageRecord once = often;
  for (int i = 0; i < 100'000; ++i) often = charged(often, often.charged_at + Duration(1), kZero);
  const UsageValue expected = usage_at(once, often.charged_at, kDay);
  EXPECT_LT(expected, once.value);
  EXPECT_LE(std::abs(often.value.fixed - expected.fixed), 100'000);
}

TEST(Usage, AnAmountGoesInAndComesOutAsItWas) {
  for (const std::int64_t milli : {0, 1, 250, 999, 1'000, 1 << 30}) {
    EXPECT_EQ(to_amount(usage_of(Amount(milli))), Amount(milli));
  }
  EXPECT_EQ(to_amount(usage_of(Amount(-5))), kZero);
  EXPECT_EQ(to_amount(usage_of(kUnlimited)), kMostUsage);
  EXPECT_EQ(to_amount({std::int64_t{1} << 31}), Amount(1));        // Half of one rounds up,
  EXPECT_EQ(to_amount({(std::int64_t{1} << 31) - 1}), Amount(0));  // less does not.
}

TEST(Usage, AThirtySecondOfWhatIsHeldIsChargedInAdvance) {
  const UsageValue two = usage_of(Amount::units(2));
  const UsageValue one = usage_of(Amount::units(1));
  EXPECT_LT(with_advance(one, Amount::units(31)), two);
  EXPECT_EQ(with_advance(one, Amount::units(32)), two);
  EXPECT_GT(with_advance(one, Amount::units(33)), two);
  EXPECT_GT(with_advance({}, Amount(1)), UsageValue());
  // As much as a job is charged in the first 22nd of a half-life: 1 - 2^(-1/22) = 0.03102.
  EXPECT_NEAR(static_cast<double>(after(record({}, Amount::units(1'000)), kDay / 22).milli), 31'250,
              250);
  EXPECT_LT(with_advance(usage_of(kMostUsage), kUnlimited).fixed,
            std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace gpuq
