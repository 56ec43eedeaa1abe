#include "core/model/turn.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/core_case.h"

namespace gpuq::core_test {
namespace {

/// A share of 4 where ann holds 1 and has used 1, and bob nothing; both wait.
struct TurnCase {
  explicit TurnCase(UserOrder order) {
    share = c.reserve("s", 4);
    c.stored.policy.shares.front().def.user_order = order;
    const NodeId node = c.node(4);
    of("ann", c.run(share, {Case::use(node, {0})}));
    if (order == UserOrder::kFair) {
      const UsageKey user{share, UsageKind::kUser, c.unit, "ann"};
      c.stored.usage = {{user, usage_of(Amount::units(1)), Time{}, Amount::units(1)}};
    }
  }
  JobId of(const std::string& user, JobId job) {
    c.stored.jobs.at(static_cast<std::size_t>(job.value - 1)).user = user;
    return job;
  }
  JobId wait(const std::string& user, std::int32_t priority, std::int64_t created_s) {
    return of(user, c.wait(share, 1, priority, created_s));
  }
  static bool before(const State& state, JobId a, JobId b) {
    return turn_of(state, state.job(a), Time{}) < turn_of(state, state.job(b), Time{});
  }

  Case c;
  ShareId share;
};

TEST(Turn, OfAFairShareGoesByPriorityThenUsageThenAge) {
  TurnCase t(UserOrder::kFair);
  const JobId ann = t.wait("ann", 1, 1);
  const JobId bob = t.wait("bob", 1, 2);
  const JobId bob_later = t.wait("bob", 1, 3);
  const JobId ann_higher = t.wait("ann", 2, 4);
  const JobId eve = t.wait("eve", 1, 2);
  const State state = t.c.state();
  EXPECT_TRUE(TurnCase::before(state, bob, ann));
  EXPECT_TRUE(TurnCase::before(state, bob, bob_later));
  EXPECT_TRUE(TurnCase::before(state, ann_higher, bob));
  EXPECT_TRUE(TurnCase::before(state, bob, eve));  // Nobody used more: the earlier submission.
  EXPECT_TRUE(TurnCase::before(state, eve, bob_later));  // And before that the age.
}

TEST(Turn, OfAnotherShareGoesByPriorityThenAge) {
  TurnCase t(UserOrder::kFifo);
  const JobId ann = t.wait("ann", 1, 1);
  const JobId bob = t.wait("bob", 1, 2);
  const State state = t.c.state();
  EXPECT_TRUE(TurnCase::before(state, ann, bob));
}

TEST(Turn, CountsTheJobsThatComeBefore) {
  for (const UserOrder order : {UserOrder::kFair, UserOrder::kFifo}) {
    TurnCase t(order);
    const JobId first = t.wait("ann", 1, 1);
    const JobId second = t.wait("bob", 1, 2);
    const JobId third = t.wait("bob", 1, 3);
    const JobId higher = t.wait("ann", 2, 4);
    const JobId last = t.wait("bob", 0, 0);
    const State state = t.c.state();
    const bool fair = order == UserOrder::kFair;
    const std::pair<JobId, int> expected[] = {{higher, 0},
                                              {first, fair ? 3 : 1},
                                              {second, fair ? 1 : 2},
                                              {third, fair ? 2 : 3},
                                              {last, 4}};
    for (const auto& [job, before] : expected) {
      EXPECT_EQ(jobs_before(state, state.job(job), Time{}), before) << job.value;
    }
  }
}

}  // namespace
}  // namespace gpuq::core_test
