// An agent in the test's own words: sessions, reports, output.
#include "gpuq/v1/agent.grpc.pb.h"
#include "tests/server/rpc_fixture.h"

namespace gpuq {
namespace {

using grpc::StatusCode;

TEST_F(RpcTest, AnAgentsFirstWordIsHello) {
  auto agents = v1::AgentService::NewStub(channel_);
  grpc::ClientContext context;
  auto stream = agents->Session(&context);
  v1::AgentMessage message;
  message.mutable_heartbeat()->set_sequence(1);
  stream->Write(message);
  v1::ServerMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
}

using AgentStream = grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>;

// Reports every state of one instance; each is acknowledged.
void live_through(AgentStream& stream, const v1::Fence& fence) {
  std::uint64_t report_id = 0;
  for (const auto state :
       {v1::INSTANCE_STATE_STARTING, v1::INSTANCE_STATE_RUNNING, v1::INSTANCE_STATE_EXITED}) {
    v1::AgentMessage said;
    said.mutable_report()->set_report_id(++report_id);
    auto& status = *said.mutable_report()->mutable_status();
    *status.mutable_fence() = fence;
    status.set_state(state);
    if (state == v1::INSTANCE_STATE_EXITED) status.mutable_exit()->set_exit_code(0);
    stream.Write(said);
    v1::ServerMessage order;
    do {
      ASSERT_TRUE(stream.Read(&order));
    } while (!order.has_ack_report());
    EXPECT_EQ(order.ack_report().report_id(), report_id);
  }
}

// Registers n1 and reads the welcome.
void say_hello(AgentStream& stream) {
  v1::AgentMessage message;
  auto& hello = *message.mutable_hello();
  hello.set_node_name("n1");
  hello.set_state_dir_id("dir-1");
  hello.set_boot_id("boot-1");
  hello.set_cpus(4);
  hello.set_memory_mib(1024);
  stream.Write(message);
  v1::ServerMessage order;
  ASSERT_TRUE(stream.Read(&order));
  ASSERT_TRUE(order.has_welcome());
}

// A log session of n1, up to the server's first request.
struct LogSession {
  explicit LogSession(v1::AgentService::Stub& agents) : stream(agents.LogSession(&context)) {
    v1::LogAgentMessage message;
    message.mutable_hello()->set_node_name("n1");
    stream->Write(message);
  }
  v1::AgentLogRead next_read() {
    v1::LogServerMessage message;
    while (stream->Read(&message)) {
      if (message.has_read()) return message.read();
    }
    ADD_FAILURE() << "no read came: " << stream->Finish().error_message();
    return {};
  }
  void answer(const v1::AgentLogRead& read, const std::string& data) {
    v1::LogAgentMessage message;
    auto& chunk = *message.mutable_chunk();
    chunk.set_request_id(read.request_id());
    chunk.set_offset(read.offset());
    chunk.set_data(data);
    stream->Write(message);
  }
  void answer_end(const v1::AgentLogRead& read, bool instance_ended) {
    v1::LogAgentMessage message;
    message.mutable_chunk()->set_request_id(read.request_id());
    message.mutable_chunk()->set_end(true);
    message.mutable_chunk()->set_instance_ended(instance_ended);
    stream->Write(message);
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::LogAgentMessage, v1::LogServerMessage>> stream;
};

// The job has ended, and its output is read while the agent's log session breaks and comes back,
// and while the agent can not follow the file: none of it is taken for the output's end.
TEST_F(RpcTest, OutputIsReadToItsEndOverBrokenLogSessions) {
  auto agents = v1::AgentService::NewStub(channel_);
  grpc::ClientContext session_context;
  auto stream = agents->Session(&session_context);
  say_hello(*stream);
  const std::int64_t id = submit_id();
  v1::ServerMessage order;
  ASSERT_TRUE(stream->Read(&order));
  ASSERT_TRUE(order.has_start()) << order.DebugString();
  live_through(*stream, order.start().fence());

  LogSession first(*agents);
  grpc::ClientContext log_context;
  v1::ReadLogsRequest logs;
  logs.set_job_id(id);
  logs.set_stream(v1::LOG_STREAM_STDOUT);
  logs.set_follow(true);
  auto reader = jobs_->ReadLogs(&log_context, logs);
  first.answer(first.next_read(), "one ");
  v1::LogChunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.data(), "one ");
  LogSession second(*agents);  // takes the first one's place
  auto read = second.next_read();
  EXPECT_EQ(read.offset(), 4);
  second.answer(read, "two ");
  second.answer_end(read, false);
  read = second.next_read();
  EXPECT_EQ(read.offset(), 8);
  second.answer(read, "three");
  second.answer_end(read, true);
  std::string text = chunk.data();
  while (reader->Read(&chunk)) text += chunk.data();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(text, "one two three");
  first.context.TryCancel();
  second.context.TryCancel();
  session_context.TryCancel();
}

// One node whose agent is this test: the job runs only in its words.
TEST_F(RpcTest, AJobGoesThroughAnAgentsHands) {
  auto agents = v1::AgentService::NewStub(channel_);
  grpc::ClientContext session_context;
  auto stream = agents->Session(&session_context);
  say_hello(*stream);
  v1::ServerMessage order;
  const std::int64_t id = submit_id();
  ASSERT_TRUE(stream->Read(&order));
  ASSERT_TRUE(order.has_start()) << order.DebugString();
  EXPECT_EQ(order.start().job_id(), id);
  EXPECT_EQ(order.start().command(0), "/bin/true");
  const v1::Fence fence = order.start().fence();
  live_through(*stream, fence);
  v1::Job job;
  ASSERT_TRUE(get(id, &job).ok());
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.final_exit_code(), 0);
  ASSERT_EQ(job.attempts_size(), 1);
  EXPECT_EQ(job.attempts(0).instances(0).node_name(), "n1");

  v1::UploadLogResponse uploaded;
  grpc::ClientContext upload_context;
  auto upload = agents->UploadLog(&upload_context, &uploaded);
  v1::UploadLogRequest part;
  *part.mutable_header()->mutable_fence() = fence;
  part.mutable_header()->set_job_id(id);
  part.mutable_header()->set_stream(v1::AGENT_LOG_STREAM_STDOUT);
  part.set_data("hello ");
  upload->Write(part);
  part.clear_header();
  part.set_data("world");
  upload->Write(part);
  upload->WritesDone();
  ASSERT_TRUE(upload->Finish().ok());
  EXPECT_EQ(uploaded.stored_bytes(), 11);
  session_context.TryCancel();

  grpc::ClientContext log_context;
  v1::ReadLogsRequest logs;
  logs.set_job_id(id);
  logs.set_stream(v1::LOG_STREAM_STDOUT);
  logs.set_follow(true);  // ends by itself: the job has ended
  auto reader = jobs_->ReadLogs(&log_context, logs);
  std::string text;
  v1::LogChunk chunk;
  while (reader->Read(&chunk)) text += chunk.data();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(text, "hello world");
}

}  // namespace
}  // namespace gpuq
