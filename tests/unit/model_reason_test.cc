#include <gtest/gtest.h>

#include <string>

#include "core/model/policy.h"
#include "core/model/policy_check.h"
#include "core/model/reason.h"

namespace gpuq {
namespace {

PolicyTables tables_with_a100() {
  PolicyTables tables;
  UnitDef unit;
  unit.name = "a100";
  tables.units = {{UnitId(7), unit}};
  return tables;
}

Reason sample(ReasonCode code) {
  Reason reason;
  reason.code = code;
  reason.unit = UnitId(7);
  reason.demand = Amount(2500);
  reason.held = Amount::units(11);
  reason.cap = Amount::units(12);
  reason.ceiling = Amount::units(12);
  reason.free = Amount::units(5);
  reason.reserved = Amount::units(4);
  reason.lendable = Amount::units(1);
  reason.limit = Amount::units(13);
  reason.instances_needed = 6;
  reason.instances_fitting = 3;
  reason.other = JobId(42);
  reason.victims = 2;
  reason.jobs = {JobId(42), JobId(43)};
  reason.jobs_in_all = 5;
  reason.when = time_from_ms(1'772'368'200'000);
  return reason;
}

std::string text(const Reason& reason) { return reason_text(reason, tables_with_a100()); }

TEST(ReasonText, NamesProtectedVictimsAndWhatFillsTheCap) {
  EXPECT_EQ(text(sample(ReasonCode::kProtectedByMinRuntime)),
            "2 jobs could give way, but are protected by min_runtime: the first is old enough at "
            "2026-03-01 12:30:00 UTC");
  Reason reason = sample(ReasonCode::kNotPreemptibleLimit);
  EXPECT_EQ(text(reason),
            "not preemptible jobs must fit the share's own limit: they hold 11 of 12 a100 (jobs: "
            "42, 43 and 3 more), and this one needs 2.5");
  reason.jobs.clear();
  reason.jobs_in_all = 0;
  EXPECT_EQ(text(reason),
            "not preemptible jobs must fit the share's own limit: they hold 11 of 12 a100 (jobs: "
            "none), and this one needs 2.5");
}

TEST(ReasonText, IsOneNonEmptyLineForEveryCode) {
  for (auto code = ReasonCode::kDependency; code <= ReasonCode::kBehindInShare;
       code = static_cast<ReasonCode>(static_cast<int>(code) + 1)) {
    const std::string line = text(sample(code));
    EXPECT_FALSE(line.empty()) << to_string(code);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_TRUE(is_known_reason(to_string(code)));
  }
  EXPECT_EQ(text(Reason{}), "");
  EXPECT_STREQ(to_string(ReasonCode::kNone), "");
  EXPECT_FALSE(is_known_reason(""));
  EXPECT_FALSE(is_known_reason("NO_NODE_FITS"));
}

TEST(ReasonText, NamesTheNumbersThatDecided) {
  EXPECT_EQ(text(sample(ReasonCode::kShareFull)),
            "its share is full: holds 11 of 12 a100, and the job needs 2.5");
  Reason borrowing = sample(ReasonCode::kShareFull);
  borrowing.ceiling = Amount::units(24);
  EXPECT_EQ(text(borrowing),
            "its share is full: holds 11 of 24 a100 (its own 12 and what it may borrow), and the "
            "job needs 2.5");
  EXPECT_EQ(text(sample(ReasonCode::kNoIdleToBorrow)),
            "would borrow: needs 2.5 a100, its share holds 11 of its own 12, and 1 can be lent (5 "
            "free, 4 of it reserved)");
  EXPECT_EQ(text(sample(ReasonCode::kPoolFull)),
            "the pool is full: needs 2.5 a100 inside its share's 12, and 5 are free, 4 of them "
            "reserved by other shares");
  EXPECT_EQ(text(sample(ReasonCode::kNodesFragmented)),
            "quota suffices, but no set of nodes has room: 3 of 6 instances fit now");
  EXPECT_EQ(text(sample(ReasonCode::kBehindInShare)),
            "behind job 42 of its share, which waits for the same");
}

TEST(ReasonText, NeverShowsNegativeOrUnlimitedAmounts) {
  Reason none = sample(ReasonCode::kNoIdleToBorrow);
  none.lendable = Amount::units(-3);
  EXPECT_NE(text(none).find("and 0 can be lent"), std::string::npos);
  Reason pool = sample(ReasonCode::kPoolFull);
  pool.cap = kUnlimited;
  pool.free = Amount::units(-1);
  pool.reserved = kZero;
  EXPECT_EQ(text(pool), "the pool is full: needs 2.5 a100, and 0 are free");
}

TEST(ReasonText, QuotaMisconfigurationHasFourTexts) {
  Reason reason = sample(ReasonCode::kQuotaManagementLimitExceeded);
  const char* expected[] = {
      "never fits: needs 2.5 a100, and its share's limit is 13; ask for less or use another share",
      "never fits: needs 2.5 a100, and its share can have 13 at most: its own 12 and what its "
      "borrow limit adds",
      "never fits: needs 2.5 a100, and all that its share owns and could borrow is 13",
      "never fits: needs 2.5 a100, inside its share's 12, but beside what other shares reserve the "
      "pool never has more than 13"};
  for (std::uint8_t variant = 0; variant < 4; ++variant) {
    reason.variant = variant;
    EXPECT_EQ(text(reason), expected[variant]);
  }
}

TEST(ReasonText, AShareWithoutLimitIsNotNamedAsOne) {
  Reason reason = sample(ReasonCode::kQuotaManagementLimitExceeded);
  reason.variant = 3;
  reason.cap = reason.ceiling = kUnlimited;
  reason.demand = Amount::units(5);
  reason.limit = Amount::units(4);
  EXPECT_EQ(text(reason),
            "never fits: needs 5 a100, and the pool never has more than 4; ask for less");
}

TEST(ReasonText, WaitingNamesItsVictims) {
  Reason reason = sample(ReasonCode::kWaitingForPreemptedCapacity);
  EXPECT_EQ(text(reason), "its capacity is booked; waits for 2 jobs to stop, job 42 among them");
  reason.victims = 1;
  EXPECT_EQ(text(reason), "its capacity is booked; waits for job 42 to stop");
  reason.victims = 0;
  EXPECT_EQ(text(reason), "its capacity is booked; waits for the rest of it to become free");
  reason.other = JobId();
  reason.victims = 3;
  EXPECT_EQ(text(reason), "its capacity is booked; waits for 3 jobs to stop");
}

TEST(ReasonText, SurvivesAUnitThatIsGone) {
  Reason reason = sample(ReasonCode::kShareFull);
  reason.unit = UnitId(99);
  EXPECT_NE(text(reason).find("capacity units"), std::string::npos);
}

TEST(ReasonGroups, FollowThePrecedence) {
  EXPECT_TRUE(is_misconfiguration(ReasonCode::kNoNodeFits));
  EXPECT_FALSE(is_misconfiguration(ReasonCode::kShareFull));
  EXPECT_TRUE(is_quota_or_placement(ReasonCode::kTopology));
  EXPECT_FALSE(is_quota_or_placement(ReasonCode::kBehindInShare));
}

}  // namespace
}  // namespace gpuq
