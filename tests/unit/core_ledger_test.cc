#include <gtest/gtest.h>

#include "core/model/ledger.h"
#include "tests/unit/core_case.h"

namespace gpuq::core_test {
namespace {

TEST(LedgerCeiling, IsTheCapForThoseWhoDoNotBorrow) {
  Case c;
  const ShareId r = c.reserve("r", 3);
  const ShareId l = c.lend("l", 4);
  const State state = c.state();
  EXPECT_EQ(state.ledger().ceiling(r, c.unit), Amount::units(3));
  EXPECT_EQ(state.ledger().ceiling(l, c.unit), Amount::units(4));
}

TEST(LedgerCeiling, FloorsItsPercentageInMilliUnits) {
  Case c;
  const ShareId third = c.borrow("third", 1, 33);
  const ShareId odd = c.share("odd", Amount(333), SharingStrategy::kLendAndBorrow, 50);
  const ShareId none = c.borrow("none", 3, 0);
  const ShareId all = c.borrow("all", 3, -1);
  const ShareId zero = c.borrow("zero", 0, 200);
  const ShareId free = c.borrow("free", 0, -1);
  const State state = c.state();
  EXPECT_EQ(state.ledger().ceiling(third, c.unit), Amount(1'330));
  EXPECT_EQ(state.ledger().ceiling(odd, c.unit), Amount(499));
  EXPECT_EQ(state.ledger().ceiling(none, c.unit), Amount::units(3));
  EXPECT_EQ(state.ledger().ceiling(all, c.unit), kUnlimited);
  EXPECT_EQ(state.ledger().ceiling(zero, c.unit), kZero);
  EXPECT_EQ(state.ledger().ceiling(free, c.unit), kUnlimited);
}

TEST(LedgerPool, IsTheSmallerOfLimitAndNodes) {
  Case c(5);
  (void)c.reserve("r", 1);
  const NodeId node = c.node(4);
  (void)c.node(3);
  EXPECT_EQ(c.state().ledger().pool(c.env, c.unit), Amount::units(5));
  c.stored.nodes[0].link = NodeLink::kDown;
  EXPECT_EQ(c.state().ledger().pool(c.env, c.unit), Amount::units(3));
  EXPECT_EQ(c.state().ledger().known_units(c.env, c.unit), Amount::units(7));
  c.stored.nodes[0].link = NodeLink::kUnreachable;
  EXPECT_EQ(c.state().ledger().pool(c.env, c.unit), Amount::units(5));
  EXPECT_EQ(node, NodeId(1));
}

TEST(LedgerPool, AnUnusableDeviceLeavesItWhenNoAttemptHasIt) {
  Case c;
  const ShareId r = c.reserve("r", 4);
  const NodeId node = c.node(4);
  (void)c.run(r, {Case::use(node, {0})});
  c.stored.nodes[0].devices[0].usable = false;
  c.stored.nodes[0].devices[1].usable = false;
  c.stored.nodes[0].devices[2].charged = true;
  const State state = c.state();
  EXPECT_EQ(state.ledger().pool(c.env, c.unit), Amount::units(2));
  EXPECT_EQ(state.ledger().free(c.env, c.unit, View::kNow), Amount::units(1));
}

TEST(LedgerPool, CountsWholeUnitsOfEachNode) {
  Case c;
  c.unit_def() = {"gpu", "", 2, 6, 1'024};
  (void)c.reserve("r", 1);
  (void)c.node(5, 100, 10'240);  // 5 GPUs: 2 units.
  (void)c.node(8, 13, 10'240);   // 13 CPUs: 2 units.
  (void)c.node(8, 100, 1'500);   // 1500 MiB: 1 unit.
  EXPECT_EQ(c.state().ledger().pool(c.env, c.unit), Amount::units(5));
}

// Q3 with every term at work: pool 12; R reserves 2 idle of 3; L lends 4, B has lent 1 beyond its
// cap.
TEST(LedgerLendable, IsBoundedByFreeLessReservedAndByWhatIsLent) {
  Case c;
  const NodeId node = c.node(12);
  const ShareId r = c.reserve("r", 3);
  const ShareId l = c.lend("l", 4);
  const ShareId b = c.borrow("b", 2);
  (void)c.run(r, {Case::use(node, {0})});
  (void)c.run(b, {Case::use(node, {1, 2, 3})});
  const State state = c.state();
  const Ledger& ledger = state.ledger();
  EXPECT_EQ(ledger.free(c.env, c.unit, View::kNow), Amount::units(8));
  EXPECT_EQ(ledger.reserved(c.env, c.unit, ShareId(), View::kNow), Amount::units(2));
  EXPECT_EQ(ledger.reserved(c.env, c.unit, r, View::kNow), kZero);
  // min(8 - 2, (4 - 0) + (2 - 3)): the three units that no share owns are not lent.
  EXPECT_EQ(ledger.lendable(c.env, c.unit, View::kNow), Amount::units(3));
  EXPECT_EQ(ledger.held(l, c.unit, View::kNow), kZero);
}

TEST(LedgerLendable, AReserveShareAboveItsCapUsesUpWhatIsLent) {
  Case c;
  const NodeId node = c.node(8);
  const ShareId r = c.reserve("r", 1);
  (void)c.lend("l", 4);
  (void)c.run(r, {Case::use(node, {0, 1, 2})});
  const State state = c.state();
  EXPECT_EQ(state.ledger().lendable(c.env, c.unit, View::kNow), Amount::units(2));
  EXPECT_EQ(state.ledger().reserved(c.env, c.unit, ShareId(), View::kNow), kZero);
}

TEST(LedgerViews, StoppingAttemptsCountNowAndNotAfterwards) {
  Case c;
  const NodeId node = c.node(4);
  const ShareId r = c.reserve("r", 4);
  const JobId job = c.run(r, {Case::use(node, {0, 1})});
  c.stop(job);
  const State state = c.state();
  EXPECT_EQ(state.ledger().held(r, c.unit, View::kNow), Amount::units(2));
  EXPECT_EQ(state.ledger().held(r, c.unit, View::kAfter), kZero);
  EXPECT_EQ(state.ledger().device_free(state.node(node), 0, true), 0);
  EXPECT_EQ(state.ledger().device_free(state.node(node), 0, false), 1'000);
  EXPECT_EQ(state.ledger().stopping_count(), 1);
}

TEST(LedgerViews, ABookingCountsItsFreePartNowAndAllAfterwards) {
  Case c;
  const NodeId node = c.node(4);
  const ShareId r = c.reserve("r", 4);
  const JobId victim = c.run(r, {Case::use(node, {0})});
  c.stop(victim);
  const JobId waiting = c.wait(r, 2);
  Booking booking;
  booking.job = waiting;
  booking.share = r;
  booking.unit = c.unit;
  booking.demand = Amount::units(2);
  booking.victims = {c.attempt_of(victim)};
  booking.instances = {Case::use(node, {0, 1})};
  booking.instances[0].devices[0].awaits = c.attempt_of(victim);
  c.stored.bookings = {booking};
  const State state = c.state();
  EXPECT_EQ(state.ledger().held(r, c.unit, View::kNow), Amount::units(2));
  EXPECT_EQ(state.ledger().held(r, c.unit, View::kAfter), Amount::units(2));
  EXPECT_EQ(state.ledger().device_free(state.node(node), 1, true), 0);
  EXPECT_EQ(state.ledger().device_free(state.node(node), 0, false), 0);
}

TEST(LedgerScratch, RollsBackExactly) {
  Case c;
  const NodeId node = c.node(4, 8);
  const ShareId r = c.reserve("r", 2);
  const ShareId b = c.borrow("b", 1);
  const JobId first = c.run(r, {Case::use(node, {0}, 1'000, 2)});
  const JobId second = c.run(b, {Case::use(node, {1}, 500, 1)});
  const State state = c.state();
  const Ledger before = state.ledger();
  Ledger ledger = before;
  const std::size_t outer = ledger.mark();
  ledger.set_stopping(key_of(c.attempt_of(first)), true);
  const std::size_t inner = ledger.mark();
  ledger.remove(key_of(c.attempt_of(second)));
  Holding fresh;
  fresh.key = {false, -1};
  fresh.job = JobId(99);
  fresh.share = b;
  fresh.unit = c.unit;
  fresh.demand = Amount::units(2);
  fresh.uses = {Case::use(node, {2, 3})};
  ledger.add(fresh);
  EXPECT_FALSE(ledger.same_as(before));
  ledger.rollback(inner);
  EXPECT_NE(ledger.find(key_of(c.attempt_of(second))), nullptr);
  EXPECT_EQ(ledger.stopping_count(), 1);
  ledger.rollback(outer);
  EXPECT_TRUE(ledger.same_as(before));
  ledger.end_scratch();
}

TEST(LedgerFitting, MixesWholeDevicesAndParts) {
  Case c;
  const NodeId node = c.node(4, 100);
  const ShareId r = c.reserve("r", 4);
  (void)c.run(r, {Case::use(node, {0}, 500)});
  const State state = c.state();
  const Node& n = state.node(node);
  InstanceNeed part;
  part.fraction_milli = 400;
  EXPECT_EQ(state.ledger().fitting(n, part, 100, true), 1 + 3 * 2);
  InstanceNeed both;
  both.whole_gpus = 1;
  both.fraction_milli = 500;
  // One takes device 1 with the half of device 0; the next takes 2 and a half of 3.
  EXPECT_EQ(state.ledger().fitting(n, both, 100, true), 2);
  both.cpus = 60;
  EXPECT_EQ(state.ledger().fitting(n, both, 100, true), 1);
  EXPECT_EQ(Ledger::fitting_empty(n, both, 100), 1);
}

TEST(LedgerLaid, FollowsThePriorityOfAnUpdate) {
  Case c;
  const NodeId node = c.node(2);
  const ShareId b = c.borrow("b", 1);
  const JobId low = c.run(b, {Case::use(node, {0})}, 1);
  const JobId high = c.run(b, {Case::use(node, {1})}, 5);
  State state = c.state();
  EXPECT_EQ(state.ledger().laid(b).begin()->second->job, high);
  Job job = state.job(low);
  job.priority = 9;
  Event event;
  event.changes.emplace_back(PutJob{job});
  state.apply(event);
  EXPECT_EQ(state.ledger().laid(b).begin()->second->job, low);
  EXPECT_EQ(state.sanity_check(), "");
}

}  // namespace
}  // namespace gpuq::core_test
