// When a job should start, through gRPC: Explain with a forecast, and TrySubmit.
#include <gmock/gmock.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/rpc_fixture.h"

namespace gpuq {
namespace {

using grpc::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

/// One node with one CPU: one job at a time. Its agent is silent, so a started job stays SCHEDULED
/// and is taken to begin at once.
class ForecastRpcTest : public RpcTest {
 protected:
  ForecastRpcTest() {
    std::promise<void> done;
    RegisterNodeCommand node;
    node.node.name = "n1";
    node.node.cpus = 1;
    node.node.memory_mib = 1024;
    node.node.state_dir_id = "n1";
    engine_->post({"agent:n1", node}, [&done](const Result<Reply>& reply) {
      EXPECT_TRUE(reply.has_value());
      done.set_value();
    });
    done.get_future().wait();
  }

  static v1::SubmitRequest that_runs(std::int64_t seconds) {
    v1::SubmitRequest wanted = request();
    if (seconds > 0) wanted.mutable_spec()->set_expected_run_seconds(seconds);
    return wanted;
  }
  std::int64_t submit_that_runs(std::int64_t seconds) {
    v1::SubmitResponse response;
    EXPECT_TRUE(submit(that_runs(seconds), &response).ok());
    return response.job_id();
  }
  v1::ExplainResponse explain(std::int64_t id, bool forecast = true) {
    grpc::ClientContext context;
    v1::ExplainRequest ask;
    ask.set_job_id(id);
    ask.set_forecast(forecast);
    v1::ExplainResponse response;
    const grpc::Status status = jobs_->Explain(&context, ask, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  grpc::Status try_submit(const v1::SubmitRequest& wanted, v1::TrySubmitResponse* response) {
    grpc::ClientContext context;
    return jobs_->TrySubmit(&context, wanted, response);
  }
  int count() {
    v1::ListJobsResponse listed;
    EXPECT_TRUE(list({}, &listed).ok());
    return listed.jobs_size();
  }
};

TEST_F(ForecastRpcTest, ExplainSaysWhenIfAsked) {
  submit_that_runs(3600);
  submit_that_runs(1800);
  const std::int64_t last = submit_that_runs(0);
  EXPECT_FALSE(explain(last, false).has_forecast());
  const v1::JobForecast forecast = explain(last).forecast();
  EXPECT_EQ(forecast.outcome(), v1::FORECAST_OUTCOME_STARTS);
  EXPECT_EQ(forecast.starts_at_ms() - forecast.made_at_ms(), 5'400'000);  // 60 + 30 min
  EXPECT_EQ(forecast.basis().stated(), 1);
  EXPECT_EQ(forecast.basis().unknown(), 0);
}

TEST_F(ForecastRpcTest, ExplainSaysWhatNobodyKnows) {
  const std::int64_t endless = submit_that_runs(0);
  const std::int64_t next = submit_that_runs(60);
  const v1::JobForecast forecast = explain(next).forecast();
  EXPECT_EQ(forecast.outcome(), v1::FORECAST_OUTCOME_UNKNOWN);
  EXPECT_THAT(forecast.waits_for_job_ids(), ElementsAre(endless));
  EXPECT_EQ(forecast.message(),
            "not before job " + std::to_string(endless) + " ends, and nobody knows when that is");
  EXPECT_EQ(forecast.basis().unknown(), 1);
  EXPECT_EQ(forecast.looked_until_ms(), 0);
  EXPECT_FALSE(explain(endless).has_forecast());  // It does not wait.
}

TEST_F(ForecastRpcTest, AHeldJobWaitsForItsRelease) {
  v1::SubmitRequest held = that_runs(60);
  held.mutable_spec()->set_hold(true);
  v1::SubmitResponse response;
  ASSERT_TRUE(submit(held, &response).ok());
  const v1::JobForecast forecast = explain(response.job_id()).forecast();
  EXPECT_EQ(forecast.outcome(), v1::FORECAST_OUTCOME_NEVER);
  EXPECT_THAT(forecast.message(), HasSubstr("gpuq release"));
}

TEST_F(ForecastRpcTest, TrySubmitSaysWhenAndChangesNothing) {
  submit_that_runs(3600);
  const std::int64_t last = submit_that_runs(1800);
  v1::TrySubmitResponse response;
  const grpc::Status status = try_submit(that_runs(60), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.job().job_queue(), "default");
  EXPECT_EQ(response.job().capacity_unit(), "cpu");
  EXPECT_EQ(response.job().job_id(), 0);
  EXPECT_EQ(response.forecast().starts_at_ms() - response.forecast().made_at_ms(), 5'400'000);
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(submit_that_runs(60), last + 1);
}

TEST_F(ForecastRpcTest, TrySubmitRefusesWhatSubmitRefuses) {
  v1::TrySubmitResponse response;
  v1::SubmitRequest bad = that_runs(60);
  bad.mutable_spec()->set_job_queue("nowhere");
  EXPECT_EQ(try_submit(bad, &response).error_code(), StatusCode::NOT_FOUND);
  bad = that_runs(60);
  bad.mutable_spec()->clear_command();
  EXPECT_EQ(try_submit(bad, &response).error_code(), StatusCode::INVALID_ARGUMENT);
  bad = that_runs(61);
  bad.mutable_spec()->set_attempt_duration_seconds(60);
  const grpc::Status refused = try_submit(bad, &response);
  EXPECT_EQ(refused.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("61 s is longer than the timeout of 60 s"));
  bad = that_runs(60);
  bad.mutable_spec()->add_depends_on()->set_job_id(77);
  EXPECT_EQ(try_submit(bad, &response).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(count(), 0);
}

TEST_F(ForecastRpcTest, TrySubmitKnowsDependenciesThatHaveEndedOrAreHeld) {
  v1::SubmitRequest held = that_runs(60);
  held.mutable_spec()->set_hold(true);
  v1::SubmitResponse first;
  ASSERT_TRUE(submit(held, &first).ok());
  v1::SubmitRequest after = that_runs(60);
  v1::JobDependency& on = *after.mutable_spec()->add_depends_on();
  on.set_job_id(first.job_id());
  on.set_condition(v1::DEPENDENCY_CONDITION_FAILED);
  v1::TrySubmitResponse response;
  ASSERT_TRUE(try_submit(after, &response).ok());
  EXPECT_EQ(response.forecast().outcome(), v1::FORECAST_OUTCOME_NEVER);
  EXPECT_EQ(response.forecast().reason().code(), "DEPENDENCY");
  v1::CancelJobsResponse cancelled;
  ASSERT_TRUE(cancel(first.job_id(), &cancelled).ok());
  ASSERT_TRUE(try_submit(after, &response).ok());
  EXPECT_EQ(response.forecast().outcome(), v1::FORECAST_OUTCOME_STARTS);
  on.set_condition(v1::DEPENDENCY_CONDITION_SUCCEEDED);
  ASSERT_TRUE(try_submit(after, &response).ok());
  EXPECT_EQ(response.forecast().outcome(), v1::FORECAST_OUTCOME_NEVER);
  EXPECT_THAT(response.forecast().message(), HasSubstr("DEPENDENCY"));
}

TEST_F(ForecastRpcTest, SeveralClientsAtOnceAreAllAnswered) {
  submit_that_runs(3600);
  const std::int64_t next = submit_that_runs(1800);
  std::vector<std::future<bool>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::async(std::launch::async, [this, i, next] {
      v1::TrySubmitResponse response;
      const auto starts = v1::FORECAST_OUTCOME_STARTS;
      if (i % 2 == 0) return explain(next).forecast().outcome() == starts;
      return try_submit(that_runs(5), &response).ok() && response.forecast().outcome() == starts;
    }));
  }
  for (auto& client : clients) EXPECT_TRUE(client.get());
}

}  // namespace
}  // namespace gpuq
