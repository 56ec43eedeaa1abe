// The gRPC interface itself: health, reflection, and watches that go on where they broke off.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <functional>
#include <set>
#include <thread>

#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

using testing::HasSubstr;

class ApiTest : public ClusterTest {
 protected:
  std::shared_ptr<grpc::Channel> channel() const {
    return grpc::CreateChannel(cluster_.address(), grpc::InsecureChannelCredentials());
  }
};

TEST_F(ApiTest, Health) {
  cluster_.start_server();
  const auto health = grpc::health::v1::Health::NewStub(channel());
  const auto ask = [&](const std::string& service, grpc::health::v1::HealthCheckResponse& reply) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    return health->Check(&context, request, &reply);
  };
  grpc::health::v1::HealthCheckResponse reply;
  ASSERT_TRUE(ask("", reply).ok());
  EXPECT_EQ(reply.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  EXPECT_EQ(ask("no.such.Service", reply).error_code(), grpc::StatusCode::NOT_FOUND);
}

/// The bytes of one reply of a reflection stream to one request.
std::string reflect(const std::shared_ptr<grpc::Channel>& channel, const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(&context);
  queue.Next(&tag, &ok);
  const grpc::Slice slice(request);
  call->Write(grpc::ByteBuffer(&slice, 1), &context);
  queue.Next(&tag, &ok);
  grpc::ByteBuffer reply;
  call->Read(&reply, &context);
  queue.Next(&tag, &ok);
  std::string text;
  if (ok) {
    std::vector<grpc::Slice> slices;
    if (reply.Dump(&slices).ok()) {
      for (const auto& one : slices) {
        text.append(reinterpret_cast<const char*>(one.begin()), one.size());
      }
    }
  }
  grpc::Status status;
  context.TryCancel();
  call->Finish(&status, &context);
  queue.Next(&tag, &ok);
  return text;
}

TEST_F(ApiTest, Reflection) {
  cluster_.start_server();
  // ServerReflectionRequest{list_services: "*"}: field 7, one byte long.
  const std::string services = reflect(channel(), std::string("\x3a\x01*"));
  for (const char* name : {"gpuq.v1.JobService", "gpuq.v1.PolicyService", "gpuq.v1.NodeService",
                           "gpuq.v1.AgentService", "grpc.health.v1.Health"}) {
    EXPECT_THAT(services, HasSubstr(name));
  }
}

class WatchTest : public ClusterTest {
 protected:
  struct Seen {
    std::vector<std::int64_t> sequences;
    std::string token;
  };

  /// Watches all jobs from where `seen` ends until `enough` says so after an event.
  Result<> watch(Seen& seen, bool from_beginning,
                 const std::function<bool(const v1::Event&)>& enough) {
    v1::WatchRequest request;
    request.set_resume_token(seen.token);
    request.set_from_beginning(from_beginning && seen.token.empty());
    return cluster_.client().watch(request, [&](const v1::WatchResponse& response) {
      seen.token = response.resume_token();
      if (!response.has_event()) return true;
      seen.sequences.push_back(response.event().sequence());
      return !enough(response.event());
    });
  }
  static std::function<bool(const v1::Event&)> end_of(std::int64_t id) {
    return [id](const v1::Event& event) {
      return event.job_id() == id && event.type() == v1::EVENT_TYPE_JOB_ENDED;
    };
  }
  std::int64_t finish_one_job() {
    const auto id = cluster_.submit({}, {"true"});
    EXPECT_TRUE(cluster_.reaches(id, v1::JOB_STATE_SUCCEEDED));
    return id;
  }
};

TEST_F(WatchTest, ResumedWatchMissesAndRepeatsNothing) {
  cluster_.start(1);
  const auto first = finish_one_job();
  Seen seen;
  int count = 0;
  ASSERT_TRUE(watch(seen, true, [&](const v1::Event&) { return ++count == 3; }));
  (void)first;
  const auto second = finish_one_job();
  ASSERT_TRUE(watch(seen, true, end_of(second)));

  cluster_.kill_server();
  cluster_.start_server();
  const auto third = finish_one_job();
  ASSERT_TRUE(watch(seen, true, end_of(third)));

  Seen whole;
  ASSERT_TRUE(watch(whole, true, end_of(third)));
  EXPECT_EQ(seen.sequences, whole.sequences);
  EXPECT_TRUE(std::is_sorted(whole.sequences.begin(), whole.sequences.end()));
  EXPECT_EQ(std::set<std::int64_t>(whole.sequences.begin(), whole.sequences.end()).size(),
            whole.sequences.size());
}

TEST_F(WatchTest, LiveOverACrashOfTheServer) {
  cluster_.start(1);
  const auto last = finish_one_job() + 4;
  (void)cluster_.client();
  Seen seen;
  std::thread watcher([&] {
    bool ended = false;
    const auto enough = [&](const v1::Event& event) { return ended = end_of(last)(event); };
    (void)eventually([&] {
      (void)watch(seen, true, enough).has_value();
      return ended;
    });
  });
  finish_one_job();
  finish_one_job();
  cluster_.kill_server();
  cluster_.start_server();
  finish_one_job();
  EXPECT_EQ(finish_one_job(), last);
  watcher.join();
  Seen whole;
  ASSERT_TRUE(watch(whole, true, end_of(last)));
  EXPECT_EQ(seen.sequences, whole.sequences);
}

TEST_F(WatchTest, WrongToken) {
  cluster_.start_server();
  Seen seen;
  seen.token = "no token";
  auto done = watch(seen, false, [](const v1::Event&) { return true; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInvalidArgument) << done.error().message;
}

}  // namespace
}  // namespace gpuq::e2e
