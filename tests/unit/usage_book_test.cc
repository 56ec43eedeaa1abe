#include "core/state/usage_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/core_case.h"

namespace gpuq::core_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Duration kDay{std::chrono::hours(24)};

Time day(int n) { return time_from_ms(0) + n * kDay; }

/// One queue whose policy counts what is borrowed; shares a and b.
struct UsageCase {
  UsageCase() {
    a = c.borrow("a", 1);
    b = c.borrow("b", 1);
    c.stored.policy.policies.front().def.idle_order = IdleOrder::kDecayedUsage;
    book.set_policy(c.stored.policy, day(0));
  }
  [[nodiscard]] UsageKey key(ShareId share) const {
    return {share, UsageKind::kBorrowed, c.unit, {}};
  }
  [[nodiscard]] Amount at(ShareId share, Time now) const {
    return to_amount(book.at(key(share), now));
  }

  Case c;
  ShareId a;
  ShareId b;
  UsageBook book;
};

TEST(UsageBook, ChargesWhatWasHeldUntilItChanges) {
  UsageCase t;
  t.book.charge(t.key(t.a), Amount::units(8), day(0));
  EXPECT_EQ(t.at(t.a, day(0)), kZero);
  EXPECT_EQ(t.at(t.a, day(1)), Amount::units(4));
  t.book.charge(t.key(t.a), kZero, day(1));
  EXPECT_EQ(t.at(t.a, day(1)), Amount::units(4));
  EXPECT_EQ(t.at(t.a, day(2)), Amount::units(2));
  EXPECT_EQ(t.at(t.b, day(2)), kZero);
}

TEST(UsageBook, OnlyWhatChangedIsTouched) {
  UsageCase t;
  t.book.charge(t.key(t.b), kZero, day(0));
  EXPECT_THAT(t.book.take_touched(), IsEmpty());
  t.book.charge(t.key(t.a), Amount::units(1), day(0));
  EXPECT_THAT(t.book.take_touched(), ElementsAre(t.key(t.a)));
  t.book.charge(t.key(t.a), Amount::units(1), day(1));
  EXPECT_THAT(t.book.take_touched(), IsEmpty());
}

TEST(UsageBook, AnotherHalfLifeHoldsFromThenOn) {
  UsageCase t;
  t.book.charge(t.key(t.a), Amount::units(8), day(0));
  t.c.stored.policy.policies.front().def.half_life = 2 * kDay;
  t.book.set_policy(t.c.stored.policy, day(1));
  EXPECT_EQ(t.at(t.a, day(1)), Amount::units(4));
  EXPECT_EQ(t.at(t.a, day(3)), Amount::units(6));
}

TEST(UsageBook, WhatThePolicyDoesNotCountIsForgotten) {
  UsageCase t;
  t.book.charge(t.key(t.a), Amount::units(8), day(0));
  t.book.charge(t.key(t.b), Amount::units(8), day(0));
  (void)t.book.take_touched();
  const Share gone = t.c.stored.policy.shares.front();
  t.c.stored.policy.shares.erase(t.c.stored.policy.shares.begin());
  t.book.set_policy(t.c.stored.policy, day(1));
  EXPECT_FALSE(t.book.counts(gone.id, UsageKind::kBorrowed));
  EXPECT_EQ(t.book.records().size(), 1u);
  EXPECT_THAT(t.book.take_touched(), ElementsAre(t.key(t.a), t.key(t.b)));
  t.c.stored.policy.policies.front().def.idle_order = IdleOrder::kLeastBorrowed;
  t.book.set_policy(t.c.stored.policy, day(1));
  EXPECT_THAT(t.book.records(), IsEmpty());
}

TEST(UsageBook, WhatHasDecayedToNothingIsForgottenWithTheNextPolicy) {
  UsageCase t;
  t.book.charge(t.key(t.a), Amount::units(8), day(0));
  t.book.charge(t.key(t.a), kZero, day(1));
  t.book.set_policy(t.c.stored.policy, day(40));  // 2^-39 of 4 units: 31 of 2^-32 of a milli-unit.
  EXPECT_EQ(t.book.records().size(), 1u);
  t.book.set_policy(t.c.stored.policy, day(60));
  EXPECT_THAT(t.book.records(), IsEmpty());
}

TEST(UsageBook, SaysWhatCanNotBe) {
  UsageCase t;
  t.book.load({t.key(t.a), usage_of(kMostUsage), day(1), Amount::units(1)});
  EXPECT_EQ(t.book.fault_at(day(1)), "");
  EXPECT_NE(t.book.fault_at(day(0)), "");
  t.book.load({t.key(t.a), {-1}, day(1), Amount::units(1)});
  EXPECT_NE(t.book.fault_at(day(1)), "");
  t.book.load({t.key(t.a), {usage_of(kMostUsage).fixed + 1}, day(1), Amount::units(1)});
  EXPECT_NE(t.book.fault_at(day(1)), "");
  t.book.load({t.key(t.a), {}, day(1), Amount(-1)});
  EXPECT_NE(t.book.fault_at(day(1)), "");
}

TEST(UsageOfAState, IsRefusedWhereItIsNotOfWhatIsBorrowed) {
  UsageCase t;
  const NodeId node = t.c.node(2);
  (void)t.c.run(t.a, {Case::use(node, {0, 1})});  // Cap 1: one is borrowed.
  EXPECT_FALSE(State::from_stored(t.c.stored).has_value());
  t.c.stored.usage = {{t.key(t.a), {}, time_from_ms(0), Amount::units(1)}};
  EXPECT_TRUE(State::from_stored(t.c.stored).has_value());
  t.c.stored.usage = {{t.key(t.a), {}, time_from_ms(0), Amount::units(2)}};
  EXPECT_FALSE(State::from_stored(t.c.stored).has_value());
}

}  // namespace
}  // namespace gpuq::core_test
