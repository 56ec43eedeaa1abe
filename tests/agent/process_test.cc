// The real gpuq-agent program against a server inside the test: the wire, kill -9, adoption, logs,
// uploads.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "gpuq/v1/agent.grpc.pb.h"
#include "tests/agent/support.h"

namespace gpuq::agent {
namespace {

using SessionStream = grpc::ServerReaderWriter<v1::ServerMessage, v1::AgentMessage>;
using LogStream = grpc::ServerReaderWriter<v1::LogServerMessage, v1::LogAgentMessage>;

// Records what the agent says; the test decides what it hears.
class TestServer final : public v1::AgentService::Service {
 public:
  explicit TestServer(std::uint64_t epoch, int port = 0) {
    next_welcome.mutable_server()->set_store_id("store-a");
    next_welcome.mutable_server()->set_epoch(epoch);
    next_welcome.set_heartbeat_interval_ms(200);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~TestServer() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  grpc::Status Session(grpc::ServerContext*, SessionStream* stream) override {
    v1::AgentMessage message;
    if (!stream->Read(&message) || !message.has_hello()) return grpc::Status::CANCELLED;
    {
      std::lock_guard lock(mutex_);
      hellos.push_back(message.hello());
      session_ = stream;
      v1::ServerMessage welcome;
      *welcome.mutable_welcome() = next_welcome;
      stream->Write(welcome);
      changed_.notify_all();
    }
    while (stream->Read(&message)) {
      std::lock_guard lock(mutex_);
      if (message.has_heartbeat()) {
        v1::ServerMessage ack;
        ack.mutable_heartbeat_ack()->set_sequence(message.heartbeat().sequence());
        stream->Write(ack);
      }
      if (message.has_report()) reports.push_back(message.report().status());
      changed_.notify_all();
    }
    std::lock_guard lock(mutex_);
    if (session_ == stream) session_ = nullptr;
    return grpc::Status::OK;
  }

  grpc::Status LogSession(grpc::ServerContext*, LogStream* stream) override {
    v1::LogAgentMessage message;
    if (!stream->Read(&message) || !message.has_hello()) return grpc::Status::CANCELLED;
    {
      std::lock_guard lock(mutex_);
      logs_ = stream;
      changed_.notify_all();
    }
    while (stream->Read(&message)) {
      std::lock_guard lock(mutex_);
      chunks.push_back(message.chunk());
      changed_.notify_all();
    }
    std::lock_guard lock(mutex_);
    if (logs_ == stream) logs_ = nullptr;
    return grpc::Status::OK;
  }

  grpc::Status UploadLog(grpc::ServerContext*, grpc::ServerReader<v1::UploadLogRequest>* reader,
                         v1::UploadLogResponse* response) override {
    v1::UploadLogRequest request;
    v1::UploadLogHeader header;
    std::string data;
    while (reader->Read(&request)) {
      if (request.has_header()) header = request.header();
      data += request.data();
    }
    response->set_stored_bytes(static_cast<std::int64_t>(data.size()));
    std::lock_guard lock(mutex_);
    uploads[{header.fence().attempt_id(), header.stream()}] = data;
    changed_.notify_all();
    return grpc::Status::OK;
  }

  template <typename Fn>
  bool wait(Fn done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), done);
  }
  bool connected() {
    return wait([this] { return session_ != nullptr; });
  }
  void send(const v1::ServerMessage& message) {
    std::lock_guard lock(mutex_);
    ASSERT_NE(session_, nullptr);
    session_->Write(message);
  }
  void ask(const v1::AgentLogRead& read) {
    ASSERT_TRUE(wait([this] { return logs_ != nullptr; }));
    std::lock_guard lock(mutex_);
    v1::LogServerMessage message;
    *message.mutable_read() = read;
    logs_->Write(message);
  }
  const v1::InstanceStatus* find(std::int64_t attempt, v1::InstanceState state) const {
    for (const auto& status : reports) {
      if (status.fence().attempt_id() == attempt && status.state() == state) return &status;
    }
    return nullptr;
  }
  bool reported(std::int64_t attempt, v1::InstanceState state) {
    return wait([&] { return find(attempt, state) != nullptr; });
  }
  [[nodiscard]] int port() const { return port_; }

  // Under mutex_, or while the agent is not there.
  v1::Welcome next_welcome;
  std::vector<v1::Hello> hellos;
  std::vector<v1::InstanceStatus> reports;
  std::vector<v1::AgentLogChunk> chunks;
  std::map<std::pair<std::int64_t, int>, std::string> uploads;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  SessionStream* session_ = nullptr;
  LogStream* logs_ = nullptr;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

v1::ServerMessage start(std::int64_t attempt, const std::string& script) {
  v1::ServerMessage out;
  auto& order = *out.mutable_start();
  order.mutable_fence()->set_store_id("store-a");
  order.mutable_fence()->set_epoch(1);
  order.mutable_fence()->set_attempt_id(attempt);
  order.set_job_id(attempt);
  order.set_attempt_number(1);
  order.set_run_immediately(true);
  order.set_working_directory("/tmp");
  for (const char* word : {"/bin/sh", "-c"}) order.add_command(word);
  order.add_command(script);
  return out;
}

v1::ServerMessage stop(std::int64_t attempt, std::int64_t grace_ms) {
  v1::ServerMessage out;
  *out.mutable_stop()->mutable_fence() = start(attempt, "").start().fence();
  out.mutable_stop()->set_reason(v1::AGENT_STOP_REASON_PREEMPTED);
  out.mutable_stop()->set_grace_ms(grace_ms);
  return out;
}

v1::ServerMessage forget(std::int64_t attempt) {
  v1::ServerMessage out;
  *out.mutable_forget()->mutable_fence() = start(attempt, "").start().fence();
  return out;
}

class AgentProcessTest : public ::testing::Test {
 protected:
  ~AgentProcessTest() override {
    if (pid_ > 0) end(SIGKILL);
  }

  void run_agent() {
    const std::vector<std::string> words{bin("gpuq-agent"),
                                         "--server",
                                         "127.0.0.1:" + std::to_string(server->port()),
                                         "--state-dir",
                                         dir.path(),
                                         "--node-name",
                                         "n1",
                                         "--devices",
                                         "fake:2xA10G",
                                         "--allow-root",
                                         "--label",
                                         "pool=training",
                                         "--log-level",
                                         "error"};
    std::vector<char*> argv;
    for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ASSERT_EQ(::posix_spawn(&pid_, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    ASSERT_TRUE(server->connected());
  }
  int end(int signal) {
    ::kill(pid_, signal);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }
  // The attempt ends whatever the test has left of it.
  void finish(std::int64_t attempt) {
    server->send(stop(attempt, 0));
    EXPECT_TRUE(server->wait([&] {
      return server->find(attempt, v1::INSTANCE_STATE_EXITED) != nullptr ||
             server->find(attempt, v1::INSTANCE_STATE_START_FAILED) != nullptr;
    }));
  }

  TempDir dir;
  std::unique_ptr<TestServer> server = std::make_unique<TestServer>(1);
  pid_t pid_ = -1;
};

TEST_F(AgentProcessTest, SaysHelloAndRunsAJob) {
  run_agent();
  const v1::Hello hello = server->hellos.back();
  EXPECT_EQ(hello.node_name(), "n1");
  ASSERT_EQ(hello.devices_size(), 2);
  EXPECT_EQ(hello.devices(0).model(), "A10G");
  EXPECT_EQ(hello.labels().at("pool"), "training");
  EXPECT_FALSE(hello.boot_id().empty());
  auto order = start(1, "echo $CUDA_VISIBLE_DEVICES; exit 5");
  order.mutable_start()->add_devices()->set_uuid(hello.devices(1).uuid());
  server->send(order);
  ASSERT_TRUE(server->reported(1, v1::INSTANCE_STATE_EXITED));
  const auto* exited = server->find(1, v1::INSTANCE_STATE_EXITED);
  EXPECT_EQ(exited->exit().exit_code(), 5);
  EXPECT_FALSE(exited->exit().signal_sent_before_exit());
  server->send(forget(1));
  ASSERT_TRUE(server->wait([&] {
    return server->uploads.count({1, v1::AGENT_LOG_STREAM_STDOUT}) != 0;
  }));
  EXPECT_EQ((server->uploads[{1, v1::AGENT_LOG_STREAM_STDOUT}]), hello.devices(1).uuid() + "\n");
  EXPECT_EQ(end(SIGTERM), 0);
}

TEST_F(AgentProcessTest, KilledBetweenSigtermAndSigkillTheGraceGoesOnAndTheExitIsReported) {
  run_agent();
  server->send(start(1, "trap '' TERM; echo up; while :; do sleep 0.05; done"));
  ASSERT_TRUE(server->reported(1, v1::INSTANCE_STATE_RUNNING));
  const std::string out = dir.path() + "/attempts/1.0/stdout.log";
  BootClock clock;
  EventLoop loop(clock);
  ASSERT_TRUE(run_until(loop, [&] { return read_file(out).value() == "up\n"; }));
  server->send(stop(1, 500));
  ASSERT_TRUE(
      run_until(loop, [&] { return path_exists(dir.path() + "/attempts/1.0/stopping.json"); }));
  end(SIGKILL);
  ASSERT_TRUE(run_until(loop, [&] { return path_exists(dir.path() + "/attempts/1.0/exit.json"); }));
  ASSERT_TRUE(server->wait([&] { return server->hellos.size() == 1; }));
  run_agent();
  ASSERT_TRUE(server->wait([&] { return server->hellos.size() == 2; }));
  const v1::Hello hello = server->hellos.back();
  ASSERT_EQ(hello.attempts_size(), 1);
  EXPECT_EQ(hello.attempts(0).state(), v1::INSTANCE_STATE_EXITED);
  EXPECT_EQ(hello.attempts(0).exit().signal(), SIGKILL);
  EXPECT_TRUE(hello.attempts(0).exit().killed_after_grace());
  EXPECT_EQ(hello.attempts(0).stop_reason(), v1::AGENT_STOP_REASON_PREEMPTED);
  EXPECT_EQ(hello.state_dir_id(), server->hellos.front().state_dir_id());
}

TEST_F(AgentProcessTest, AKilledAgentLosesNoRunningAttempt) {
  run_agent();
  server->send(start(1, "sleep 600"));
  ASSERT_TRUE(server->reported(1, v1::INSTANCE_STATE_RUNNING));
  end(SIGKILL);
  run_agent();
  ASSERT_TRUE(server->wait([&] { return server->hellos.size() == 2; }));
  ASSERT_EQ(server->hellos.back().attempts_size(), 1);
  EXPECT_EQ(server->hellos.back().attempts(0).state(), v1::INSTANCE_STATE_RUNNING);
  finish(1);
}

TEST_F(AgentProcessTest, AServerThatComesBackGetsTheEndItMissed) {
  run_agent();
  ASSERT_EQ(::mkfifo((dir.path() + "/fifo").c_str(), 0600), 0);
  server->send(start(1, "read x < " + dir.path() + "/fifo; exit 3"));
  ASSERT_TRUE(server->reported(1, v1::INSTANCE_STATE_STARTING));
  const int port = server->port();
  server.reset();
  ASSERT_EQ(std::system(("echo > " + dir.path() + "/fifo").c_str()), 0);
  BootClock clock;
  EventLoop loop(clock);
  ASSERT_TRUE(run_until(loop, [&] { return path_exists(dir.path() + "/attempts/1.0/exit.json"); }));
  server = std::make_unique<TestServer>(2, port);
  ASSERT_TRUE(server->connected());
  ASSERT_EQ(server->hellos.back().attempts_size(), 1);
  EXPECT_EQ(server->hellos.back().highest_fence().epoch(), 1U);
  const auto& status = server->hellos.back().attempts(0);
  // exit.json may be younger than the Hello; then a report follows.
  if (status.state() != v1::INSTANCE_STATE_EXITED) {
    EXPECT_TRUE(server->reported(1, v1::INSTANCE_STATE_EXITED));
  }
}

TEST_F(AgentProcessTest, LogsAreReadLive) {
  run_agent();
  server->send(start(1, "echo one; sleep 0.2; echo two"));
  v1::AgentLogRead read;
  read.set_request_id(7);
  read.set_attempt_id(1);
  read.set_stream(v1::AGENT_LOG_STREAM_STDOUT);
  read.set_follow(true);
  ASSERT_TRUE(server->reported(1, v1::INSTANCE_STATE_STARTING));
  server->ask(read);
  ASSERT_TRUE(server->wait([&] { return !server->chunks.empty() && server->chunks.back().end(); }));
  std::string text;
  for (const auto& chunk : server->chunks) text += chunk.data();
  EXPECT_EQ(text, "one\ntwo\n");
}

TEST_F(AgentProcessTest, WrongFlagsAreOneLineAndStatusTwo) {
  const std::string command = bin("gpuq-agent") + " --allow-root --devices fake:zero --state-dir " +
                              dir.path() + " 2>" + dir.path() + "/err";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  const std::string text = read_file(dir.path() + "/err").value();
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_NE(text.find("zero"), std::string::npos);
}

}  // namespace
}  // namespace gpuq::agent
