// Jobs, lists, watches and policy through gRPC: shapes, rights, idempotence, streams.
#include <gmock/gmock.h>
#include <pwd.h>
#include <unistd.h>

#include <set>

#include "gpuq/v1/node.grpc.pb.h"
#include "gpuq/v1/policy.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/server/rpc_fixture.h"

namespace gpuq {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

TEST_F(RpcTest, ASubmittedJobIsThereWithAllItSaid) {
  v1::SubmitRequest wanted = request("sft");
  (*wanted.mutable_spec()->mutable_env())["MODE"] = "x";
  wanted.mutable_spec()->set_workdir("/data");
  v1::SubmitResponse response;
  ASSERT_TRUE(submit(wanted, &response).ok());
  EXPECT_EQ(response.job_name(), "sft");
  v1::Job job;
  ASSERT_TRUE(get(response.job_id(), &job).ok());
  EXPECT_EQ(job.spec().env().at("MODE"), "x");
  EXPECT_EQ(job.spec().workdir(), "/data");
  EXPECT_EQ(job.spec().job_queue(), "default");
  EXPECT_EQ(job.spec().quota_share_name(), "default");
  EXPECT_EQ(job.state(), v1::JOB_STATE_RUNNABLE);
  // The caller is who owns the connection, whatever a request says.
  EXPECT_EQ(job.user(), getpwuid(getuid())->pw_name);
  grpc::ClientContext context;
  v1::GetJobRequest by_uuid;
  by_uuid.set_job_uuid(response.job_uuid());
  v1::Job same;
  ASSERT_TRUE(jobs_->Get(&context, by_uuid, &same).ok());
  EXPECT_EQ(same.job_id(), response.job_id());
}

TEST_F(RpcTest, BadRequestsAreRefusedAndChangeNothing) {
  v1::SubmitResponse response;
  v1::SubmitRequest bad = request();
  bad.mutable_spec()->set_job_queue("nowhere");
  EXPECT_EQ(submit(bad, &response).error_code(), StatusCode::NOT_FOUND);
  bad = request();
  bad.mutable_spec()->mutable_resources()->add_capacity_units("b200");
  EXPECT_THAT(submit(bad, &response).error_message(), HasSubstr("b200"));
  bad = request();
  bad.mutable_spec()->set_job_name("x\xff\xfe");
  const grpc::Status status = submit(bad, &response);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "job_name is not valid UTF-8 text: encode it as UTF-8");
  bad = request();
  bad.mutable_spec()->add_command(std::string(10 << 20, 'x'));
  EXPECT_EQ(submit(bad, &response).error_code(), StatusCode::INVALID_ARGUMENT);
  v1::Job job;
  EXPECT_EQ(get(7, &job).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(get(-1, &job).error_code(), StatusCode::INVALID_ARGUMENT);
  v1::ListJobsResponse listed;
  ASSERT_TRUE(list({}, &listed).ok());
  EXPECT_EQ(listed.jobs_size(), 0);
}

TEST_F(RpcTest, ATokenGivesTheFirstJobAgain) {
  v1::SubmitRequest one = request();
  one.set_client_token("t1");
  v1::SubmitResponse first, second, third;
  ASSERT_TRUE(submit(one, &first).ok());
  ASSERT_TRUE(submit(one, &second).ok());
  EXPECT_EQ(first.job_id(), second.job_id());
  one.mutable_spec()->add_command("more");
  EXPECT_EQ(submit(one, &third).error_code(), StatusCode::ALREADY_EXISTS);
}

TEST_F(RpcTest, ABatchHasAResultForEachEntry) {
  v1::SubmitBatchRequest batch;
  *batch.add_jobs() = request("a");
  *batch.add_jobs() = request("b");
  batch.mutable_jobs(1)->mutable_spec()->set_job_queue("nowhere");
  *batch.add_jobs() = request("c");
  batch.mutable_jobs(2)->mutable_spec()->clear_command();
  *batch.add_jobs() = request("d");
  batch.mutable_jobs(3)->set_client_token("tok");
  grpc::ClientContext context;
  v1::SubmitBatchResponse response;
  ASSERT_TRUE(jobs_->SubmitBatch(&context, batch, &response).ok());
  ASSERT_EQ(response.results_size(), 4);
  EXPECT_EQ(response.results(0).job().job_name(), "a");
  EXPECT_EQ(response.results(1).error().code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(response.results(2).error().code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(response.results(3).job().job_name(), "d");
  v1::ListJobsResponse listed;
  ASSERT_TRUE(list({}, &listed).ok());
  EXPECT_EQ(listed.jobs_size(), 2);

  v1::SubmitBatchRequest good;
  for (int i = 0; i < 100; ++i) *good.add_jobs() = request(std::to_string(i));
  grpc::ClientContext again;
  ASSERT_TRUE(jobs_->SubmitBatch(&again, good, &response).ok());
  for (int i = 1; i < 100; ++i) {
    EXPECT_EQ(response.results(i).job().job_id(), response.results(i - 1).job().job_id() + 1);
    EXPECT_EQ(response.results(i).job().job_name(), std::to_string(i));
  }
}

TEST_F(RpcTest, ListsPageByPageWithFilters) {
  for (int i = 1; i <= 5; ++i) submit_id(i % 2 == 0 ? "even" : "odd");
  v1::SubmitRequest labelled = request("odd");
  (*labelled.mutable_spec()->mutable_labels())["project"] = "llama";
  v1::SubmitResponse response;
  ASSERT_TRUE(submit(labelled, &response).ok());

  v1::ListJobsRequest page;
  page.set_page_size(4);
  v1::ListJobsResponse listed;
  ASSERT_TRUE(list(page, &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 4);
  EXPECT_EQ(listed.jobs(0).job_id(), 6);
  page.set_page_token(listed.next_page_token());
  ASSERT_TRUE(list(page, &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 2);
  EXPECT_EQ(listed.jobs(1).job_id(), 1);
  EXPECT_EQ(listed.next_page_token(), "");

  v1::ListJobsRequest filtered;
  filtered.set_job_name("od*");
  filtered.set_order(v1::LIST_ORDER_OLDEST_FIRST);
  ASSERT_TRUE(list(filtered, &listed).ok());
  EXPECT_EQ(listed.jobs_size(), 4);
  (*filtered.mutable_labels())["project"] = "llama";
  ASSERT_TRUE(list(filtered, &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 1);
  EXPECT_EQ(listed.jobs(0).job_id(), 6);

  filtered.Clear();
  filtered.add_states(v1::JOB_STATE_UNSPECIFIED);
  EXPECT_EQ(list(filtered, &listed).error_code(), StatusCode::INVALID_ARGUMENT);
  filtered.Clear();
  filtered.set_page_size(5000);
  EXPECT_EQ(list(filtered, &listed).error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(RpcTest, EndedJobsAreListedFromTheArchiveAsWell) {
  stop();
  keep_ended_jobs_ = 2;
  start();
  for (int i = 1; i <= 6; ++i) {
    v1::CancelJobsResponse cancelled;
    const std::int64_t id = submit_id("j" + std::to_string(i));
    if (i != 3) {
      ASSERT_TRUE(cancel(id, &cancelled).ok());
      EXPECT_EQ(cancelled.results(0).state(), v1::JOB_STATE_FAILED);
    }
  }
  for (const auto order : {v1::LIST_ORDER_NEWEST_FIRST, v1::LIST_ORDER_OLDEST_FIRST}) {
    v1::ListJobsRequest page;
    page.set_page_size(2);
    page.set_order(order);
    std::vector<std::int64_t> ids;
    v1::ListJobsResponse listed;
    do {
      ASSERT_TRUE(list(page, &listed).ok());
      for (const auto& job : listed.jobs()) {
        ids.push_back(job.job_id());
        EXPECT_EQ(job.job_name(), "j" + std::to_string(job.job_id()));
        EXPECT_EQ(job.job_queue(), "default");
      }
      page.set_page_token(listed.next_page_token());
    } while (!listed.next_page_token().empty());
    std::vector<std::int64_t> expected{1, 2, 3, 4, 5, 6};
    if (order == v1::LIST_ORDER_NEWEST_FIRST) std::ranges::reverse(expected);
    EXPECT_EQ(ids, expected);
  }
  v1::Job job;
  ASSERT_TRUE(get(1, &job).ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.spec().command(0), "/bin/true");
  // Cancelling what has ended long ago is harmless.
  v1::CancelJobsResponse again;
  ASSERT_TRUE(cancel(1, &again).ok());
  EXPECT_FALSE(again.results(0).has_error());
  EXPECT_EQ(again.results(0).state(), v1::JOB_STATE_FAILED);
  ASSERT_TRUE(cancel(99, &again).ok());
  EXPECT_EQ(again.results(0).error().code(), StatusCode::NOT_FOUND);
}

TEST_F(RpcTest, AnArrayIsOneJobInListsAndItsMembersAreJobs) {
  v1::SubmitRequest sweep = request("sweep");
  sweep.mutable_spec()->mutable_array()->set_last(2'499);
  v1::SubmitResponse submitted;
  ASSERT_TRUE(submit(sweep, &submitted).ok());
  const std::int64_t id = submitted.job_id();
  EXPECT_EQ(submit_id("next"), id + 2'501);

  v1::ListJobsResponse listed;
  ASSERT_TRUE(list({}, &listed).ok());
  ASSERT_EQ(listed.jobs_size(), 2);
  EXPECT_EQ(listed.jobs(1).array().size(), 2'500);
  EXPECT_EQ(listed.jobs(1).array().members().runnable(), 2'500);
  EXPECT_EQ(listed.jobs(1).state(), v1::JOB_STATE_RUNNABLE);

  // Member 5 by itself: it is cancelled, the others are not.
  v1::CancelJobsResponse cancelled;
  ASSERT_TRUE(cancel(id + 6, &cancelled).ok());
  EXPECT_EQ(cancelled.results(0).state(), v1::JOB_STATE_FAILED);
  v1::Job member;
  ASSERT_TRUE(get(id + 6, &member).ok());
  EXPECT_EQ(member.member_of().array_job_id(), id);
  EXPECT_EQ(member.member_of().index(), 5);
  EXPECT_EQ(member.spec().command(0), "/bin/true");
  v1::Job array;
  ASSERT_TRUE(get(id, &array).ok());
  EXPECT_EQ(array.array().members().failed(), 1);
  EXPECT_EQ(array.array().members().runnable(), 2'499);

  v1::ListJobsRequest failed;
  failed.add_states(v1::JOB_STATE_FAILED);
  ASSERT_TRUE(list(failed, &listed).ok());
  EXPECT_EQ(listed.jobs_size(), 0);  // The array goes on.

  v1::ListJobsRequest members;
  members.set_array_job_id(id);
  members.set_page_size(1'000);
  for (const auto order : {v1::LIST_ORDER_NEWEST_FIRST, v1::LIST_ORDER_OLDEST_FIRST}) {
    members.set_order(order);
    members.clear_page_token();
    std::vector<std::int64_t> indexes;
    do {
      ASSERT_TRUE(list(members, &listed).ok());
      for (const auto& job : listed.jobs()) indexes.push_back(job.member_of().index());
      members.set_page_token(listed.next_page_token());
    } while (!listed.next_page_token().empty());
    if (order == v1::LIST_ORDER_NEWEST_FIRST) std::ranges::reverse(indexes);
    ASSERT_EQ(indexes.size(), 2'500U);
    for (std::size_t k = 0; k < indexes.size(); ++k) ASSERT_EQ(indexes[k], k);
  }
  members.clear_page_token();
  members.set_array_job_id(id + 6);
  EXPECT_EQ(list(members, &listed).error_code(), StatusCode::INVALID_ARGUMENT);
  members.set_array_job_id(id + 9'999);
  EXPECT_EQ(list(members, &listed).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(RpcTest, AnArrayThatTheArchiveHasKeepsItsSums) {
  stop();
  keep_ended_jobs_ = 1;
  start();
  v1::SubmitRequest sweep = request("sweep");
  sweep.mutable_spec()->mutable_array()->set_last(9);
  v1::SubmitResponse submitted;
  ASSERT_TRUE(submit(sweep, &submitted).ok());
  v1::CancelJobsResponse cancelled;
  ASSERT_TRUE(cancel(3, &cancelled).ok());  // Members 0 and 1 get records.
  ASSERT_TRUE(cancel(1, &cancelled).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(cancel(submit_id(), &cancelled).ok());
  v1::Job array;
  ASSERT_TRUE(get(1, &array).ok());
  EXPECT_EQ(array.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(array.array().members().failed(), 10);
  EXPECT_EQ(array.final_exit_code(), 1);
  for (const std::int64_t id : {3, 11}) {  // With a record, and without one.
    v1::Job member;
    ASSERT_TRUE(get(id, &member).ok()) << id;
    EXPECT_EQ(member.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(member.member_of().index(), id - 2);
    EXPECT_EQ(member.spec().command(0), "/bin/true");
  }
  v1::ListJobsResponse listed;
  v1::ListJobsRequest members;
  members.set_array_job_id(1);
  ASSERT_TRUE(list(members, &listed).ok());
  EXPECT_EQ(listed.jobs_size(), 2);
}

// Reads until `count` events of jobs have come; returns job ids and the last token.
std::vector<std::int64_t> read_jobs(grpc::ClientReader<v1::WatchResponse>& reader, int count,
                                    std::string& token) {
  std::vector<std::int64_t> seen;
  v1::WatchResponse message;
  while (static_cast<int>(seen.size()) < count && reader.Read(&message)) {
    token = message.resume_token();
    if (message.event().type() == v1::EVENT_TYPE_JOB_SUBMITTED) {
      seen.push_back(message.event().job_id());
    }
  }
  return seen;
}

TEST_F(RpcTest, AWatchGoesOnWhereAnotherStopped) {
  std::string token;
  {
    grpc::ClientContext context;
    v1::WatchRequest from_now;
    auto reader = jobs_->Watch(&context, from_now);
    v1::WatchResponse first;
    ASSERT_TRUE(reader->Read(&first));
    EXPECT_FALSE(first.has_event());
    EXPECT_NE(first.resume_token(), "");
    submit_id();
    submit_id();
    EXPECT_EQ(read_jobs(*reader, 2, token), (std::vector<std::int64_t>{1, 2}));
    context.TryCancel();
  }
  for (int i = 0; i < 2'500; i += 500) {  // more than one page of the past
    v1::SubmitBatchRequest batch;
    for (int n = 0; n < 500; ++n) *batch.add_jobs() = request();
    grpc::ClientContext context;
    v1::SubmitBatchResponse response;
    ASSERT_TRUE(jobs_->SubmitBatch(&context, batch, &response).ok());
  }
  grpc::ClientContext context;
  v1::WatchRequest resumed;
  resumed.set_resume_token(token);
  auto reader = jobs_->Watch(&context, resumed);
  std::thread more([&] {
    for (int i = 0; i < 50; ++i) submit_id();
  });
  const auto seen = read_jobs(*reader, 2'550, token);
  more.join();
  ASSERT_EQ(seen.size(), 2'550U);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    ASSERT_EQ(seen[i], static_cast<std::int64_t>(i) + 3);  // no gap, nothing twice
  }
  context.TryCancel();
}

TEST_F(RpcTest, AWatchRefusesForeignTokens) {
  grpc::ClientContext context;
  v1::WatchRequest request;
  request.set_resume_token("ffffffff.1");
  auto reader = jobs_->Watch(&context, request);
  v1::WatchResponse message;
  EXPECT_FALSE(reader->Read(&message));
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::OUT_OF_RANGE);
}

TEST_F(RpcTest, AStoppingServerEndsStreamsAndRefusesCalls) {
  grpc::ClientContext context;
  auto reader = jobs_->Watch(&context, {});
  v1::WatchResponse message;
  ASSERT_TRUE(reader->Read(&message));
  const auto began = clock_.now();
  stop();
  while (reader->Read(&message)) continue;
  EXPECT_EQ(reader->Finish().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_LT(clock_.now() - began, Duration(1'500));  // nobody had to be cut off
  start();
}

TEST_F(RpcTest, HoldsAndReleases) {
  const std::int64_t id = submit_id();
  const auto set_hold = [&](bool hold, v1::Job& job) {
    grpc::ClientContext context;
    v1::UpdateJobRequest update;
    update.set_job_id(id);
    update.set_hold(hold);
    return jobs_->Update(&context, update, &job);
  };
  v1::Job held;
  ASSERT_TRUE(set_hold(true, held).ok());
  EXPECT_EQ(held.state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(held.reason().code(), "HELD_BY_USER");
  EXPECT_TRUE(held.spec().hold());
  grpc::ClientContext why;
  v1::ExplainRequest explain;
  explain.set_job_id(id);
  v1::ExplainResponse explained;
  ASSERT_TRUE(jobs_->Explain(&why, explain, &explained).ok());
  ASSERT_EQ(explained.would_start_size(), 1);
  EXPECT_EQ(explained.would_start(0), "it is released: gpuq release " + std::to_string(id));
  v1::Job released;
  ASSERT_TRUE(set_hold(false, released).ok());
  EXPECT_EQ(released.state(), v1::JOB_STATE_RUNNABLE);
  EXPECT_FALSE(released.spec().hold());
}

TEST_F(RpcTest, UpdatesAndExplains) {
  const std::int64_t first = submit_id();
  submit_id();
  grpc::ClientContext context;
  v1::UpdateJobRequest update;
  update.set_job_id(first + 1);
  v1::Job job;
  EXPECT_EQ(jobs_->Update(&context, update, &job).error_code(), StatusCode::INVALID_ARGUMENT);
  update.set_scheduling_priority(50);
  grpc::ClientContext again;
  ASSERT_TRUE(jobs_->Update(&again, update, &job).ok());
  EXPECT_EQ(job.spec().scheduling_priority(), 50);
  grpc::ClientContext why;
  v1::ExplainRequest explain;
  explain.set_job_id(first);
  v1::ExplainResponse explained;
  ASSERT_TRUE(jobs_->Explain(&why, explain, &explained).ok());
  EXPECT_EQ(explained.jobs_ahead(), 1);
  EXPECT_EQ(explained.reason().code(), "MISCONFIGURATION:NO_NODE_FITS");
  EXPECT_NE(explained.reason().message(), "");
  EXPECT_EQ(explained.capacity_unit(), "cpu");
  EXPECT_EQ(explained.ceiling_milli(), explained.cap_milli());  // nothing to borrow
  ASSERT_EQ(explained.would_start_size(), 2);
  EXPECT_EQ(explained.would_start(0),
            "a node with 1 CPU joins: an instance asks for that, and no node has more than 0");
}

TEST_F(RpcTest, PolicyObjectsAreMadeChangedAndRemoved) {
  auto policies = v1::PolicyService::NewStub(channel_);
  v1::CreatePolicyObjectRequest create;
  auto& unit = *create.mutable_object()->mutable_capacity_unit();
  unit.set_name("a100");
  unit.set_gpu_model("A100");
  unit.set_gpus(1);
  v1::PolicyObject made;
  {
    grpc::ClientContext context;
    const auto status = policies->Create(&context, create, &made);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  {
    grpc::ClientContext context;
    v1::PolicyObject other;
    EXPECT_EQ(policies->Create(&context, create, &other).error_code(), StatusCode::ALREADY_EXISTS);
  }
  v1::UpdatePolicyObjectRequest update;
  *update.mutable_object() = made;
  update.mutable_object()->mutable_capacity_unit()->set_gpus(2);
  update.set_expected_version(made.capacity_unit().version() + 2);
  {
    grpc::ClientContext context;
    v1::PolicyObject other;
    EXPECT_EQ(policies->Update(&context, update, &other).error_code(), StatusCode::ABORTED);
  }
  update.set_expected_version(made.capacity_unit().version());
  {
    grpc::ClientContext context;
    const auto status = policies->Update(&context, update, &made);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(made.capacity_unit().gpus(), 2);
  }
  v1::DeletePolicyObjectRequest remove;
  remove.mutable_ref()->set_kind(v1::POLICY_KIND_CAPACITY_UNIT);
  remove.mutable_ref()->set_name("a100");
  for (const auto expected : {StatusCode::OK, StatusCode::NOT_FOUND}) {
    grpc::ClientContext context;
    v1::DeletePolicyObjectResponse removed;
    EXPECT_EQ(policies->Delete(&context, remove, &removed).error_code(), expected);
  }
}

TEST_F(RpcTest, HealthAndReflectionAreServed) {
  auto health = grpc::health::v1::Health::NewStub(channel_);
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(health->Check(&context, {}, &response).ok());
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING);
}

TEST_F(RpcTest, TheServerSaysWhoItIs) {
  auto cluster = v1::ClusterService::NewStub(channel_);
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(cluster->GetServerInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.epoch(), 1);
  EXPECT_EQ(info.store_id().size(), 36U);
  EXPECT_FALSE(info.read_only());
  grpc::ClientContext again;
  v1::ClusterStatus status;
  v1::GetStatusRequest unknown;
  unknown.set_job_queue("nowhere");
  EXPECT_EQ(cluster->GetStatus(&again, unknown, &status).error_code(), StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace gpuq
