// Single rules of the planner on states built by hand: order (O2, O7, O8), placement (N2), victims
// (P5, P6), takeover (P7), and the numbers of each reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/sched/planner.h"
#include "tests/unit/core_case.h"

namespace gpuq::core_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::int32_t> devices_of(const Decision& d) {
  std::vector<std::int32_t> devices;
  for (const InstanceUse& use : d.uses) {
    for (const DeviceUse& part : use.devices) devices.push_back(part.device);
  }
  return devices;
}

std::vector<NodeId> nodes_of(const Decision& d) {
  std::vector<NodeId> nodes;
  for (const InstanceUse& use : d.uses) nodes.push_back(use.node);
  return nodes;
}

Reason reason_of(const Case& c, JobId job) {
  State state = c.state();
  PlanCache cache;
  state.set_reasons(make_plan(state, time_from_ms(1'000'000), cache).reasons);
  return state.reason_of(job);
}

TEST(Order, PriorityThenCreationThenSequence) {
  Case c;
  (void)c.node(8);
  const ShareId s = c.reserve("s", 8);
  const JobId late = c.wait(s, 1, 0, 20);
  const JobId second = c.wait(s, 1, 0, 10);
  const JobId third = c.wait(s, 1, 0, 10);
  const JobId high = c.wait(s, 1, 3, 30);
  EXPECT_THAT(started(c.plan()), ElementsAre(high, second, third, late));
}

TEST(Order, TheNeediestShareGoesFirstAndIsRecomputed) {
  Case c;
  (void)c.node(8);
  const ShareId big = c.reserve("big", 4);
  const ShareId small = c.reserve("small", 2);
  const JobId b1 = c.wait(big, 1, 0, 1);
  const JobId b2 = c.wait(big, 1, 0, 2);
  const JobId b3 = c.wait(big, 1, 0, 3);
  const JobId s1 = c.wait(small, 1, 0, 10);
  const JobId s2 = c.wait(small, 1, 0, 11);
  // 0/4 and 0/2 tie: the older head. Then 1/4 against 0/2, 1/4 against 1/2, 2/4 against 1/2: a tie.
  EXPECT_THAT(started(c.plan()), ElementsAre(b1, s1, b2, b3, s2));
}

TEST(Order, TiesOfNeedAreBrokenByHeadThenName) {
  Case c;
  (void)c.node(8);
  const ShareId z = c.reserve("z", 2);
  const ShareId a = c.reserve("a", 2);
  const ShareId old = c.reserve("old", 2);
  const JobId in_z = c.wait(z, 1, 0, 10);
  const JobId in_a = c.wait(a, 1, 0, 10);
  const JobId in_old = c.wait(old, 1, 0, 5);
  EXPECT_THAT(started(c.plan()), ElementsAre(in_old, in_a, in_z));
}

TEST(Order, AShareWithoutCapIsTheLeastNeedy) {
  Case c;
  (void)c.node(2);
  const ShareId none = c.borrow("none", 0);
  const ShareId two = c.lend("two", 2);
  (void)c.wait(none, 1, 9, 1);
  const JobId a = c.wait(two, 1, 0, 5);
  const JobId b = c.wait(two, 1, 0, 6);
  EXPECT_THAT(started(c.plan()), ElementsAre(a, b));
}

TEST(Order, BorrowersGoByAgeOverAllShares) {
  Case c;
  (void)c.node(4);
  const ShareId x = c.borrow("x", 0);
  const ShareId y = c.borrow("y", 0);
  (void)c.lend("l", 3);
  const JobId x1 = c.wait(x, 1, 0, 10);
  const JobId y1 = c.wait(y, 1, 5, 11);
  const JobId x2 = c.wait(x, 1, 0, 12);
  const JobId y2 = c.wait(y, 1, 0, 9);
  // y's first job in its own order is y1, though y2 is older.
  EXPECT_THAT(started(c.plan()), ElementsAre(x1, y1, y2));
  (void)x2;
}

TEST(Order, AnOwnersJobWaitsForAnEarlierOneThatCouldBorrow) {
  Case c;
  (void)c.node(4);
  const ShareId s = c.borrow("s", 2);
  (void)c.lend("l", 2);
  const JobId wide = c.wait(s, 3, 5, 1);
  const JobId narrow = c.wait(s, 1, 0, 2);
  EXPECT_THAT(started(c.plan()), ElementsAre(wide, narrow));
}

TEST(SameShape, OneThatFailsSparesTheOthersAndOneThatStartsDoesNot) {
  Case c;
  (void)c.node(3);
  const ShareId s = c.reserve("s", 3);
  std::vector<JobId> twos;
  for (int i = 0; i < 3; ++i) twos.push_back(c.wait(s, 2, 5, i));
  const JobId one = c.wait(s, 1, 0, 9);
  const Plan plan = c.plan(60);  // Before the head holds (O5).
  EXPECT_THAT(started(plan), ElementsAre(twos[0], one));
  // One reason for all that are left of the shape.
  ASSERT_EQ(plan.reasons.size(), 1u);
  EXPECT_EQ(plan.reasons[0].reason.code, ReasonCode::kShareFull);
  EXPECT_EQ(plan.reasons[0].reason.held, Amount::units(3));
}

// wide could start by borrowing, so narrow, an owner's job behind it, waits for it (O2). Then
// guest, the oldest borrower, takes everything; now narrow reclaims its unit, and guest has never
// started.
TEST(HeadHold, NamesTheHeadAndIsDueWhenItHasWaited) {
  Case c;
  (void)c.node(3);
  const ShareId s = c.reserve("s", 3);
  (void)c.run(s, {Case::use(NodeId(1), {0, 1})});
  const JobId wide = c.wait(s, 2, 0, 100);
  const JobId small = c.wait(s, 1, 0, 200);
  EXPECT_THAT(started(c.plan(999)), ElementsAre(small));
  const Plan plan = c.plan(1'000);
  EXPECT_TRUE(plan.empty());
  ASSERT_EQ(plan.reasons.size(), 2u);
  EXPECT_EQ(plan.reasons[0].reason.code, ReasonCode::kShareFull);
  EXPECT_EQ(plan.reasons[1].reason.code, ReasonCode::kHeldForHead);
  EXPECT_EQ(plan.reasons[1].reason.other, wide);
  EXPECT_EQ(plan.next_wakeup, kNever);
  // Without the small one nothing happens at 300s, and the hold is due at 1000s.
  c.stored.jobs.pop_back();
  EXPECT_EQ(c.plan(300).next_wakeup, time_from_ms(1'000'000));
}

TEST(TakenBack, AStartThatALaterDecisionWouldEvictNeverHappens) {
  Case c;
  (void)c.node(3);
  const ShareId s = c.borrow("s", 1);
  (void)c.lend("l", 2);
  const ShareId t = c.borrow("t", 0);
  (void)c.wait(t, 3, 0, 0);
  (void)c.wait(s, 3, 5, 5);
  const JobId narrow = c.wait(s, 1, 0, 6);
  const Plan plan = c.plan();
  EXPECT_THAT(started(plan), ElementsAre(narrow));
  EXPECT_THAT(evicted(plan), IsEmpty());
}

TEST(Placement, TakesTheFullestNodeThatFits) {
  Case c;
  const NodeId empty = c.node(4);
  const NodeId fuller = c.node(4);
  const ShareId s = c.reserve("s", 8);
  (void)c.run(s, {Case::use(fuller, {0, 1})});
  const JobId two = c.wait(s, 2);
  const Plan fits = c.plan();
  ASSERT_THAT(started(fits), ElementsAre(two));
  EXPECT_THAT(nodes_of(fits.decisions[0]), ElementsAre(fuller));
  Case d = c;
  d.stored.jobs.pop_back();
  (void)d.wait(s, 3);
  EXPECT_THAT(nodes_of(d.plan().decisions[0]), ElementsAre(empty));
}

TEST(Placement, TiesGoToTheFirstName) {
  Case c;
  const NodeId first = c.node(2);
  (void)c.node(2);
  (void)c.wait(c.reserve("s", 8), 1);
  EXPECT_THAT(nodes_of(c.plan().decisions[0]), ElementsAre(first));
}

TEST(Placement, GpusOfOneInstanceAreCloseTogether) {
  Case c;
  const NodeId node = c.node(8);
  const ShareId s = c.reserve("s", 8);
  (void)c.run(s, {Case::use(node, {1, 4})});
  (void)c.wait(s, 3);
  EXPECT_THAT(devices_of(c.plan().decisions[0]), ElementsAre(5, 6, 7));
}

TEST(Placement, AFractionGoesToTheFullestStartedDeviceOfAnyNode) {
  Case c;
  const NodeId a = c.node(2);
  const NodeId b = c.node(4);
  const ShareId s = c.reserve("s", 6);
  (void)c.run(s, {Case::use(a, {0}, 250)});
  (void)c.run(s, {Case::use(b, {2}, 500)});
  (void)c.wait(s, Amount(500), 0, 0, [](JobClass&) {});
  const Plan plan = c.plan();
  EXPECT_THAT(nodes_of(plan.decisions[0]), ElementsAre(b));
  EXPECT_THAT(devices_of(plan.decisions[0]), ElementsAre(2));
  Case d = c;
  d.stored.jobs.pop_back();
  (void)d.wait(s, Amount(750), 0, 0, [](JobClass&) {});
  EXPECT_THAT(nodes_of(d.plan().decisions[0]), ElementsAre(a));
  EXPECT_THAT(devices_of(d.plan().decisions[0]), ElementsAre(0));
}

TEST(Placement, AGangIsWholeOrNotAtAll) {
  Case c;
  (void)c.node(2);
  (void)c.node(2);
  const ShareId s = c.reserve("s", 9);
  const auto gang = [&](std::int32_t instances) {
    return c.wait(s, Amount::units(2), 0, 0, [=](JobClass& cls) { cls.instances = instances; });
  };
  const JobId fits = gang(2);
  const Plan plan = c.plan();
  ASSERT_THAT(started(plan), ElementsAre(fits));
  EXPECT_EQ(plan.decisions[0].uses.size(), 2u);
  const JobId never = gang(3);
  EXPECT_THAT(started(c.plan()), ElementsAre(fits));
  EXPECT_EQ(reason_of(c, never).code, ReasonCode::kQuotaManagementLimitExceeded);
}

TEST(Placement, OnlyNodesThatTakeSomethingNew) {
  Case c;
  (void)c.node(1);
  (void)c.node(1);
  (void)c.node(1);
  const NodeId good = c.node(1);
  c.stored.nodes[0].admin = NodeAdmin::kCordoned;
  c.stored.nodes[1].link = NodeLink::kUnreachable;
  c.stored.nodes[2].healthy = false;
  const ShareId s = c.reserve("s", 4);
  (void)c.wait(s, 1);
  const JobId second =
      c.wait(s, Amount::units(1), 0, 1, [](JobClass& cls) { cls.max_attempts = 2; });
  const Plan plan = c.plan();
  ASSERT_EQ(plan.decisions.size(), 1u);
  EXPECT_THAT(nodes_of(plan.decisions[0]), ElementsAre(good));
  EXPECT_EQ(reason_of(c, second).code, ReasonCode::kNodesFragmented);
}

/// B (cap 0) has three loans on one node of three; A (cap 3) wants some back.
struct Loans {
  Loans() {
    node = c.node(3);
    a = c.lend("a", 3);
    b = c.borrow("b", 0);
  }
  Case c;
  NodeId node;
  ShareId a, b;
};

TEST(Victims, LowestPriorityThenLeastLostWorkThenLatestStartThenLargerId) {
  Loans l;
  const JobId old = l.c.run(l.b, {Case::use(l.node, {0})}, 1, 10);
  const JobId young = l.c.run(l.b, {Case::use(l.node, {1})}, 1, 500);
  const JobId high = l.c.run(l.b, {Case::use(l.node, {2})}, 2, 900);
  const JobId want = l.c.wait(l.a, 1, 0, 950);
  EXPECT_THAT(evicted(l.c.plan()), ElementsAre(young));
  l.c.stored.jobs.back().priority = 0;
  (void)old;
  (void)high;
  (void)want;
}

TEST(Victims, EqualOnesGoByTheLargerId) {
  Loans l;
  (void)l.c.run(l.b, {Case::use(l.node, {0})}, 1, 10);
  (void)l.c.run(l.b, {Case::use(l.node, {1})}, 1, 10);
  const JobId last = l.c.run(l.b, {Case::use(l.node, {2})}, 1, 10);
  (void)l.c.wait(l.a, 1, 0, 950);
  EXPECT_THAT(evicted(l.c.plan()), ElementsAre(last));
}

TEST(Victims, OneThatSufficesReplacesSeveral) {
  Loans l;
  (void)l.c.run(l.b, {Case::use(l.node, {0})}, 1, 10);
  const JobId wide = l.c.run(l.b, {Case::use(l.node, {1, 2})}, 1, 5);
  (void)l.c.wait(l.a, 2, 0, 950);
  EXPECT_THAT(evicted(l.c.plan()), ElementsAre(wide));
}

TEST(Victims, ABookingHoldsWhatIsFreeAndWhatIsAwaited) {
  Loans l;
  const JobId one = l.c.run(l.b, {Case::use(l.node, {0})}, 1, 10);
  const JobId want = l.c.wait(l.a, 3, 0, 950);
  const Plan plan = l.c.plan();
  ASSERT_EQ(plan.decisions.size(), 1u);
  const Decision& d = plan.decisions[0];
  EXPECT_EQ(d.kind, DecisionKind::kBook);
  EXPECT_EQ(d.job, want);
  EXPECT_FALSE(d.borrows);
  EXPECT_STREQ(d.rule, "P3(i)");
  EXPECT_THAT(d.awaits, ElementsAre(l.c.attempt_of(one)));
  std::int32_t awaited = 0;
  for (const DeviceUse& part : d.uses[0].devices) awaited += part.awaits.valid() ? part.milli : 0;
  EXPECT_EQ(awaited, 1'000);
}

TEST(Takeover, AHigherPriorityTakesABookingItFitsInto) {
  Loans l;
  const JobId victim = l.c.run(l.b, {Case::use(l.node, {0, 1, 2})}, 1, 10);
  l.c.stop(victim);
  const JobId booked = l.c.wait(l.a, 3, 0, 20);
  Booking booking;
  booking.job = booked;
  booking.share = l.a;
  booking.unit = l.c.unit;
  booking.demand = Amount::units(3);
  booking.victims = {l.c.attempt_of(victim)};
  booking.instances = {Case::use(l.node, {0, 1, 2})};
  for (DeviceUse& part : booking.instances[0].devices) part.awaits = l.c.attempt_of(victim);
  l.c.stored.bookings = {booking};
  const JobId equal = l.c.wait(l.a, 3, 0, 30);
  EXPECT_TRUE(l.c.plan().empty());
  const JobId urgent = l.c.wait(l.a, 1, 5, 40);
  const Plan plan = l.c.plan();
  ASSERT_EQ(plan.decisions.size(), 2u);
  EXPECT_EQ(plan.decisions[0].kind, DecisionKind::kShrinkBooking);
  EXPECT_EQ(plan.decisions[0].job, booked);
  EXPECT_EQ(plan.decisions[0].handed_to, urgent);
  EXPECT_EQ(plan.decisions[0].demand, Amount::units(2));
  EXPECT_EQ(plan.decisions[1].kind, DecisionKind::kBook);
  EXPECT_EQ(plan.decisions[1].job, urgent);
  EXPECT_STREQ(plan.decisions[1].rule, "P7");
  (void)equal;
}

TEST(Reasons, ShareFullNamesHeldCapAndDemand) {
  Case c;
  const NodeId node = c.node(8);
  const ShareId s = c.borrow("s", 2, 50);
  (void)c.lend("l", 6);
  (void)c.run(s, {Case::use(node, {0, 1})});
  const Reason reason = reason_of(c, c.wait(s, 2));
  EXPECT_EQ(reason.code, ReasonCode::kShareFull);
  EXPECT_EQ(reason.held, Amount::units(2));
  EXPECT_EQ(reason.cap, Amount::units(2));
  EXPECT_EQ(reason.ceiling, Amount::units(3));
  EXPECT_EQ(reason.demand, Amount::units(2));
}

TEST(Reasons, NoIdleToBorrowNamesWhatIsLendable) {
  Case c;
  const NodeId node = c.node(4);
  const ShareId s = c.borrow("s", 1);
  const ShareId l = c.lend("l", 2);
  (void)c.reserve("r", 1);
  (void)c.run(s, {Case::use(node, {0})});
  (void)c.run(l, {Case::use(node, {1})});
  const Reason reason = reason_of(c, c.wait(s, 2));
  EXPECT_EQ(reason.code, ReasonCode::kNoIdleToBorrow);
  EXPECT_EQ(reason.lendable, Amount::units(1));
  EXPECT_EQ(reason.free, Amount::units(2));
  EXPECT_EQ(reason.reserved, Amount::units(1));
}

TEST(Reasons, PoolFullWhenCapsExceedThePool) {
  Case c;
  const NodeId node = c.node(2);
  const ShareId s = c.lend("s", 2);
  const ShareId t = c.lend("t", 2);
  (void)c.run(t, {Case::use(node, {0, 1})});
  const Reason reason = reason_of(c, c.wait(s, 1));
  EXPECT_EQ(reason.code, ReasonCode::kPoolFull);
  EXPECT_EQ(reason.free, kZero);
}

TEST(Reasons, NodesFragmentedNamesTheLargestThatFits) {
  Case c;
  const NodeId a = c.node(2);
  const NodeId b = c.node(2);
  const ShareId s = c.lend("s", 4);
  (void)c.run(s, {Case::use(a, {0})});
  (void)c.run(s, {Case::use(b, {0})});
  const Reason reason = reason_of(c, c.wait(s, 2));
  EXPECT_EQ(reason.code, ReasonCode::kNodesFragmented);
  EXPECT_EQ(reason.instances_needed, 1);
  EXPECT_EQ(reason.instances_fitting, 0);
}

TEST(Reasons, EnvironmentDisabledComesFirst) {
  Case c;
  (void)c.node(2);
  const ShareId s = c.lend("s", 1);
  const JobId job = c.wait(s, 7);
  c.stored.policy.environments[0].def.enabled = false;
  EXPECT_EQ(reason_of(c, job).code, ReasonCode::kEnvironmentDisabled);
}

TEST(Reasons, MisconfigurationsNameTheBoundTheyExceed) {
  Case c(6);
  (void)c.node(4);
  (void)c.node(4);
  const ShareId r = c.reserve("r", 2);
  const ShareId small = c.lend("small", 2);
  const ShareId half = c.borrow("half", 2, 50);
  const ShareId big = c.borrow("big", 3);
  const auto of = [&](JobId job) { return reason_of(c, job); };
  const Reason env = of(c.wait(big, 7));
  EXPECT_EQ(env.code, ReasonCode::kServiceEnvironmentMaxResource);
  EXPECT_EQ(env.limit, Amount::units(6));
  const Reason own = of(c.wait(small, 3));
  EXPECT_EQ(own.code, ReasonCode::kQuotaManagementLimitExceeded);
  EXPECT_EQ(own.variant, 0);
  EXPECT_EQ(own.limit, Amount::units(2));
  const Reason ceiling = of(c.wait(half, 4));
  EXPECT_EQ(ceiling.variant, 1);
  EXPECT_EQ(ceiling.limit, Amount::units(3));
  const Reason pool = of(c.wait(big, 5));
  EXPECT_EQ(pool.variant, 2);
  EXPECT_EQ(pool.limit, Amount::units(4));
  const Reason nodes =
      of(c.wait(r, Amount::units(1), 0, 0, [](JobClass& cls) { cls.cpus = 2'000; }));
  EXPECT_EQ(nodes.code, ReasonCode::kNoNodeFits);
}

TEST(Reasons, OneThatNeverFitsBlocksNobody) {
  Case c;
  (void)c.node(2);
  const ShareId s = c.lend("s", 2);
  (void)c.wait(s, 5, 9, 0);
  const JobId fits = c.wait(s, 1, 0, 1);
  EXPECT_THAT(started(c.plan()), ElementsAre(fits));
}

TEST(Fingerprint, TheSamePlanFromEveryCopy) {
  Loans l;
  (void)l.c.run(l.b, {Case::use(l.node, {0})}, 1, 10);
  (void)l.c.wait(l.a, 3, 0, 950);
  (void)l.c.wait(l.b, 1, 0, 950);
  const State state = l.c.state();
  const Ledger before = state.ledger();
  PlanCache cache;
  const Plan plan = make_plan(state, time_from_ms(1'000'000), cache);
  EXPECT_TRUE(state.ledger().same_as(before));
  EXPECT_EQ(make_plan(state.clone(), time_from_ms(1'000'000), cache), plan);
  EXPECT_EQ(to_text(l.c.plan()), to_text(plan));
}

}  // namespace
}  // namespace gpuq::core_test
