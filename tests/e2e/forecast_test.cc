// When a job should start, as people ask for it: with real programs.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class ForecastTest : public ClusterTest {
 protected:
  /// One GPU of one share, and a job on it that says it takes an hour.
  void SetUp() override {
    cluster_.start(1);
    cluster_.apply(one_share_policy(1));
    holder_ =
        cluster_.submit_script({"--gpus", "1", "--expect", "1h", "--name", "holder"}, kPolite);
    ASSERT_TRUE(cluster_.reaches(holder_, v1::JOB_STATE_RUNNING));
    waiter_ = cluster_.submit({"--gpus", "1"}, {"true"});
  }

  v1::JobForecast forecast(std::int64_t id) {
    v1::ExplainRequest request;
    request.set_job_id(id);
    request.set_forecast(true);
    const auto answer = cluster_.client().explain(request);
    return answer ? answer->forecast() : v1::JobForecast();
  }
  /// An hour after the holder began to run, to the millisecond.
  [[nodiscard]] std::int64_t hour_of_holder() {
    return cluster_.job(holder_).started_at_ms() + 3'600'000;
  }

  std::int64_t holder_ = 0;
  std::int64_t waiter_ = 0;
};

TEST_F(ForecastTest, WhySaysWhen) {
  const Output why = cluster_.gpuq({"why", std::to_string(waiter_)});
  EXPECT_EQ(why.code, 0) << why.err;
  EXPECT_THAT(why.out, HasSubstr("  when: in about "));
  EXPECT_THAT(why.out, HasSubstr("running jobs end: 1 by their stated run time"));
  EXPECT_THAT(why.out, HasSubstr("expected to end "));
  EXPECT_EQ(forecast(waiter_).starts_at_ms(), hour_of_holder());
  const auto json = Json::parse(cluster_.gpuq({"why", std::to_string(waiter_), "--json"}).out);
  EXPECT_EQ(json["forecast"]["outcome"], "STARTS");
  EXPECT_EQ(json["forecast"]["basis"]["stated"], 1);
  EXPECT_TRUE(json["forecast"]["starts_at"].is_string());
  EXPECT_THAT(cluster_.gpuq({"show", std::to_string(holder_)}).out, HasSubstr("1h00m to run"));
}

TEST_F(ForecastTest, ItIsTheSameAfterARestart) {
  const std::int64_t hour = hour_of_holder();
  cluster_.kill_server();
  cluster_.start_server();
  EXPECT_TRUE(eventually([&] { return forecast(waiter_).starts_at_ms() == hour; }));
}

TEST_F(ForecastTest, WhatHasNoKnownEndIsSaid) {
  const std::int64_t last = cluster_.submit({"--gpus", "1"}, {"true"});
  const Output why = cluster_.gpuq({"why", std::to_string(last)});
  EXPECT_THAT(why.out, HasSubstr("when: not before job " + std::to_string(waiter_) +
                                 " ends, and nobody knows when that is"));
}

TEST_F(ForecastTest, ADryRunSubmitsNothing) {
  const Output dry = cluster_.gpuq({"submit", "--dry-run", "--gpus", "1", "-p", "0", "--", "true"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("would be accepted: 1 gpu, queue q, share team"));
  EXPECT_THAT(dry.out, HasSubstr("Nothing was submitted."));
  const Output urgent =
      cluster_.gpuq({"submit", "--dry-run", "--gpus", "1", "-p", "9", "--json", "--", "true"});
  EXPECT_EQ(Json::parse(urgent.out)["forecast"]["outcome"], "STARTS");  // It would preempt.
  EXPECT_EQ(cluster_.job(holder_).state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(cluster_.job(holder_).attempts(0).stopping_at_ms() > 0);
  EXPECT_EQ(cluster_.gpuq({"submit", "--dry-run", "--gpus", "64", "--", "true"}).code, 5);
  EXPECT_EQ(cluster_.gpuq({"submit", "--dry-run", "-q", "nowhere", "--", "true"}).code, 3);
  EXPECT_EQ(cluster_.gpuq({"submit", "--dry-run", "--wait", "--", "true"}).code, 2);
  EXPECT_EQ(cluster_.submit({"--gpus", "1"}, {"true"}), waiter_ + 1);
}

TEST_F(ForecastTest, APolicyThatWouldStopAJobNamesItFirst) {
  std::string policy = one_share_policy(1);
  const std::string cap = "        capacity_limits: {gpu: 1}";
  policy.replace(policy.find(cap), cap.size(), "        capacity_limits: {gpu: 0}");
  const std::string file = cluster_.write("lower.yaml", policy);
  const Output dry = cluster_.gpuq({"apply", "-f", file, "--drain", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("job " + std::to_string(holder_) +
                                 " (holder, share team) would be stopped: "));
  EXPECT_THAT(dry.out, HasSubstr("job " + std::to_string(waiter_) +
                                 " (true, share team) could never start any more: "));
  EXPECT_EQ(cluster_.job(holder_).attempts(0).stopping_at_ms(), 0);
}

}  // namespace
}  // namespace gpuq::e2e
