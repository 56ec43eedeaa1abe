#include "server/rpc/watch_hub.h"

#include <gtest/gtest.h>

#include "core/engine/policy_change.h"

namespace gpuq::rpc {
namespace {

class WatchHubTest : public testing::Test {
 protected:
  WatchHubTest() : hub_([this]() -> const State& { return state_; }) {
    state_.identity().store_id = "11111111-2222";
    Event event;
    event.type = EventType::kPolicyApplied;
    event.changes.emplace_back(PutPolicy{builtin_policy({}, {})});
    state_.apply(event);
  }

  static Event event(std::int64_t id, std::int64_t job, EventType type = EventType::kJobSubmitted) {
    Event made;
    made.id = EventId(id);
    made.job = JobId(job);
    made.type = type;
    made.at = time_from_ms(id * 10);
    return made;
  }

  WatchHub::Id follow(WatchFilter filter, std::vector<std::int64_t>& seen) {
    return hub_.add(std::move(filter), [&seen](const Event& one, const auto&) {
      seen.push_back(one.id.value);
      return true;
    });
  }

  State state_;
  WatchHub hub_;
};

TEST_F(WatchHubTest, EveryoneGetsWhatMatchesInOrder) {
  std::vector<std::int64_t> all, one, both;
  follow({}, all);
  follow({{JobId(7)}, "", ""}, one);
  follow({{JobId(7), JobId(8)}, "", ""}, both);
  hub_.on_committed({event(1, 7), event(2, 8), event(3, 0, EventType::kPolicyApplied)});
  hub_.on_committed({event(4, 7)});
  EXPECT_EQ(all, (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(one, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(both, (std::vector<std::int64_t>{1, 2, 4}));
}

TEST_F(WatchHubTest, QueuesAndSharesAreMatchedByName) {
  std::vector<std::int64_t> ours, other;
  follow({{}, "default", "default"}, ours);
  follow({{}, "another", ""}, other);
  Event made = event(1, 7);
  made.queue = state_.policy().queues.at(0).id;
  made.share = state_.policy().shares.at(0).id;
  hub_.on_committed({made, event(2, 8)});
  EXPECT_EQ(ours, (std::vector<std::int64_t>{1}));
  EXPECT_TRUE(other.empty());
}

TEST_F(WatchHubTest, AWatcherMayLeaveInItsOwnHandler) {
  int calls = 0;
  hub_.add({}, [&](const Event&, const auto&) {
    ++calls;
    return false;
  });
  WatchHub::Id self = 0;
  self = hub_.add({}, [&](const Event&, const auto&) {
    hub_.remove(self);
    return true;
  });
  hub_.on_committed({event(1, 7), event(2, 7)});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(hub_.size(), 0U);
}

TEST_F(WatchHubTest, MessagesCarryTheTokenAndAreShared) {
  std::shared_ptr<const v1::WatchResponse> first, second;
  hub_.add({}, [&](const Event&, const auto& message) { return first = message, true; });
  hub_.add({}, [&](const Event&, const auto& message) { return second = message, true; });
  hub_.on_committed({event(41, 7)});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first->resume_token(), "11111111.41");
  EXPECT_EQ(first->event().sequence(), 41);
  EXPECT_EQ(first->event().type(), v1::EVENT_TYPE_JOB_SUBMITTED);
  // Housekeeping is nothing to show.
  hub_.on_committed({event(42, 0, EventType::kJobsArchived)});
  EXPECT_EQ(first, nullptr);
}

}  // namespace
}  // namespace gpuq::rpc
