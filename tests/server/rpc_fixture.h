#pragma once
// The whole server in one process, on a loopback port that the system chose.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <future>
#include <thread>

#include "common/runtime/clocks.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/files.h"
#include "core/engine/engine.h"
#include "gpuq/v1/job.grpc.pb.h"
#include "server/history_adapter.h"
#include "server/rpc/server.h"
#include "server/store/sqlite_reader.h"
#include "server/store/sqlite_store.h"

namespace gpuq {

class RpcTest : public testing::Test {
 protected:
  RpcTest() : loop_(clock_) {
    std::string path = testing::TempDir() + "gpuq-rpc-XXXXXX";
    dir_ = mkdtemp(path.data());
    start();
  }
  ~RpcTest() override {
    stop();
    (void)remove_tree(dir_);
  }

  void start() {
    store_ = std::move(*store::SqliteStore::open(dir_, loop_));
    reader_ = std::move(*store::SqliteReader::open(store_->database_file()));
    history_ = std::make_unique<StoreHistory>(*reader_);
    rpc::RpcConfig config;
    config.listen = {"127.0.0.1:0"};
    config.log_dir = dir_ + "/logs";
    rpc_ = std::make_unique<rpc::RpcServer>(loop_, clock_, config);
    EngineConfig engine;
    engine.keep_ended_jobs = keep_ended_jobs_;
    engine_ =
        std::make_unique<Engine>(*store_, rpc_->gateway(), rpc_->observer(), loop_, clock_, engine);
    ASSERT_TRUE(engine_->start());
    const auto started = rpc_->start(*engine_, *history_);
    ASSERT_TRUE(started) << started.error().message;
    thread_ = std::thread([this] { loop_.run(); });
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(rpc_->ports().at(0)),
                                         grpc::InsecureChannelCredentials(), arguments);
    jobs_ = v1::JobService::NewStub(channel_);
  }

  void stop() {
    on_loop([this] { rpc_->begin_stop(); });
    rpc_->finish_stop(Duration(2'000));
    std::promise<void> drained;
    loop_.post([&] { engine_->drain([&] { drained.set_value(); }); });
    drained.get_future().wait();
    loop_.stop();
    thread_.join();
    engine_.reset();
    rpc_.reset();
    history_.reset();
    reader_.reset();
    store_.reset();
  }

  void on_loop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  static v1::SubmitRequest request(const std::string& name = "a") {
    v1::SubmitRequest request;
    request.mutable_spec()->set_job_name(name);
    request.mutable_spec()->add_command("/bin/true");
    return request;
  }

  grpc::Status submit(const v1::SubmitRequest& request, v1::SubmitResponse* response) {
    grpc::ClientContext context;
    return jobs_->Submit(&context, request, response);
  }
  std::int64_t submit_id(const std::string& name = "a") {
    v1::SubmitResponse response;
    const auto status = submit(request(name), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.job_id();
  }
  grpc::Status list(const v1::ListJobsRequest& request, v1::ListJobsResponse* response) {
    grpc::ClientContext context;
    return jobs_->List(&context, request, response);
  }
  grpc::Status cancel(std::int64_t id, v1::CancelJobsResponse* response) {
    grpc::ClientContext context;
    v1::CancelJobsRequest request;
    request.add_job_ids(id);
    return jobs_->Cancel(&context, request, response);
  }
  grpc::Status get(std::int64_t id, v1::Job* job) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_job_id(id);
    return jobs_->Get(&context, request, job);
  }

  std::size_t keep_ended_jobs_ = 10'000;
  std::string dir_;
  BootClock clock_;
  EventLoop loop_;
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<store::SqliteReader> reader_;
  std::unique_ptr<StoreHistory> history_;
  std::unique_ptr<rpc::RpcServer> rpc_;
  std::unique_ptr<Engine> engine_;
  std::thread thread_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
};

}  // namespace gpuq
