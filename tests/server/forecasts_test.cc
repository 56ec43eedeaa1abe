// Who gets which forecast, how many are made at once, and what a stop does to them.
#include "server/rpc/forecasts.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/runtime/clocks.h"
#include "common/runtime/event_loop.h"
#include "tests/server/fakes.h"

namespace gpuq::rpc {
namespace {

using Shared = Forecasts::SharedForecast;

class ForecastsTest : public testing::Test {
 protected:
  ForecastsTest() : loop_(boot_), thread_([this] { loop_.run(); }) {
    state_.mutable_counters().next_job = 100;
  }
  ~ForecastsTest() override { end(); }

  void end() {
    if (!thread_.joinable()) return;
    if (forecasts_ != nullptr) {
      forecasts_->begin_stop();
      forecasts_->finish_stop();
    }
    on_loop([] {});
    loop_.stop();
    thread_.join();
  }
  void make(ForecastConfig config = {}) {
    forecasts_ = std::make_unique<Forecasts>(
        loop_, clock_,
        [this](std::function<void(const State&)> query) {
          loop_.post([this, query = std::move(query)] { query(state_); });
        },
        config);
  }
  void on_loop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  Shared ask(JobId job) {
    std::promise<Shared> answer;
    loop_.post([&] {
      forecasts_->ask(state_, job, [&answer](Result<Shared> made) { answer.set_value(*made); });
    });
    return answer.get_future().get();
  }

  /// A request that runs until it is told to end.
  struct Busy {
    std::promise<void> began;
    std::promise<Result<>> answer;
    std::future<Result<>> answered = answer.get_future();
  };
  std::shared_ptr<Busy> begin_busy() {
    auto busy = std::make_shared<Busy>();
    on_loop([&] {
      forecasts_->run_alone(
          state_, {},
          [busy](sim::ForecastRun&, const sim::ForecastLimits& limits) {
            busy->began.set_value();
            while (limits.go_on()) std::this_thread::yield();
          },
          [busy](const Result<>& done) { busy->answer.set_value(done); });
    });
    return busy;
  }

  BootClock boot_;
  FakeClock clock_;  ///< Moved only while nothing runs.
  State state_;
  EventLoop loop_;
  std::unique_ptr<Forecasts> forecasts_;
  std::thread thread_;
};

TEST_F(ForecastsTest, OneServesAllWhileItIsFresh) {
  make();
  const Shared first = ask(JobId(7));
  EXPECT_EQ(ask(JobId(8)), first);
  clock_.set(clock_.now() + Duration(9'999));
  EXPECT_EQ(ask(JobId(7)), first);
  clock_.set(clock_.now() + Duration(1));
  const Shared second = ask(JobId(7));
  EXPECT_NE(second, first);
  on_loop([&] { state_.apply(Event{}); });  // Another state.
  clock_.set(clock_.now() + Duration(999));
  EXPECT_EQ(ask(JobId(7)), second);
  clock_.set(clock_.now() + Duration(1));
  EXPECT_NE(ask(JobId(7)), second);
}

TEST_F(ForecastsTest, AJobThatCameLaterGetsANewOne) {
  make();
  const Shared first = ask(JobId(99));
  on_loop([&] { ++state_.mutable_counters().next_job; });
  const Shared second = ask(JobId(100));
  EXPECT_NE(second, first);
  EXPECT_EQ(ask(JobId(99)), second);
}

TEST_F(ForecastsTest, AskersWhoComeWhileItIsMadeShareIt) {
  make();
  std::vector<std::promise<Shared>> answers(20);
  on_loop([&] {  // One turn of the loop: the first is not answered before the last has asked.
    for (auto& answer : answers) {
      forecasts_->ask(state_, JobId(1),
                      [&answer](Result<Shared> made) { answer.set_value(*made); });
    }
  });
  const Shared first = answers.front().get_future().get();
  for (std::size_t i = 1; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].get_future().get(), first);
  }
}

TEST_F(ForecastsTest, AtMostTwoRunAndTheRestWaitOrAreRefused) {
  ForecastConfig config;
  config.may_wait = 1;
  config.budget = std::chrono::hours(1);
  make(config);
  const auto one = begin_busy();
  const auto two = begin_busy();
  one->began.get_future().wait();
  two->began.get_future().wait();
  const auto waits = begin_busy();
  const auto refused = begin_busy();
  const Result<> answer = refused->answered.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(answer.error().message,
            "3 forecasts are being made or wait to be: try again in a moment");
  end();  // Those that run end at once, and the one that waits never began.
  EXPECT_TRUE(one->answered.get());
  EXPECT_TRUE(two->answered.get());
  const Result<> stopped = waits->answered.get();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kUnavailable);
}

TEST_F(ForecastsTest, TheNextBeginsWhenOneEnds) {
  ForecastConfig config;
  config.at_once = 1;
  config.budget = Duration(0);  // Each ends as soon as it looks at its time.
  make(config);
  const auto one = begin_busy();
  const auto two = begin_busy();
  EXPECT_TRUE(one->answered.get());
  EXPECT_TRUE(two->answered.get());
}

TEST_F(ForecastsTest, AfterAStopNothingBegins) {
  make();
  forecasts_->begin_stop();
  const auto late = begin_busy();
  EXPECT_EQ(late->answered.get().error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace gpuq::rpc
