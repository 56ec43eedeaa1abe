#include "agent/grpc_transport.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <utility>

#include "agent/grpc_stream.h"
#include "agent/wire.h"
#include "common/runtime/log.h"
#include "gpuq/v1/agent.grpc.pb.h"

namespace gpuq::agent {
namespace {

constexpr std::size_t kUploadPiece = 64 * 1024;
constexpr std::chrono::seconds kUploadDeadline{30};

// A channel of its own for each try: an old one would bring along its back-off.
std::shared_ptr<grpc::Channel> make_channel(const std::string& server) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, 64 << 20);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), args);
}

LogRead from_wire_read(const v1::AgentLogRead& read) {
  LogRead out;
  out.request_id = read.request_id();
  out.instance = {read.attempt_id(), read.instance()};
  out.stderr_stream = read.stream() == v1::AGENT_LOG_STREAM_STDERR;
  out.offset = read.offset();
  out.max_bytes = read.max_bytes();
  out.follow = read.follow();
  return out;
}

Result<void> upload_file(v1::AgentService::Stub& stub, const LogUpload& upload) {
  std::ifstream file(upload.path, std::ios::binary | std::ios::ate);
  if (!file) return {};  // never written
  const std::int64_t size = file.tellg();
  const std::int64_t first = std::max<std::int64_t>(0, size - upload.max_bytes);
  file.seekg(first);

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kUploadDeadline);
  v1::UploadLogResponse response;
  auto writer = stub.UploadLog(&context, &response);
  v1::UploadLogRequest request;
  auto& header = *request.mutable_header();
  header.mutable_fence()->set_store_id(upload.fence.store_id);
  header.mutable_fence()->set_epoch(upload.fence.epoch);
  header.mutable_fence()->set_attempt_id(upload.fence.attempt_id);
  header.set_job_id(upload.job_id);
  header.set_instance(upload.instance);
  header.set_stream(upload.stderr_stream ? v1::AGENT_LOG_STREAM_STDERR
                                         : v1::AGENT_LOG_STREAM_STDOUT);
  header.set_offset(first);
  header.set_size(size - first);
  // Also for an empty file: the server then knows that there was no output.
  if (size == first) writer->Write(request);
  std::string piece;
  for (std::int64_t left = size - first; left > 0;) {
    piece.resize(std::min<std::size_t>(kUploadPiece, static_cast<std::size_t>(left)));
    if (!file.read(piece.data(), static_cast<std::streamsize>(piece.size()))) break;
    left -= static_cast<std::int64_t>(piece.size());
    request.set_data(piece);
    if (!writer->Write(request)) break;
    request.clear_header();
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (status.ok()) return {};
  const bool later = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                     status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                     status.error_code() == grpc::StatusCode::CANCELLED;
  return Error{later ? ErrorCode::kUnavailable : ErrorCode::kInternal, status.error_message()};
}

}  // namespace

class GrpcTransport::Session final : public GrpcStream<v1::AgentMessage, v1::ServerMessage> {
 public:
  Session(EventLoop& loop, Handler handler)
      : loop_(loop), handler_(std::make_shared<Handler>(std::move(handler))) {}

  void call(v1::AgentService::Stub& stub, const std::shared_ptr<LiveStreams>& live) {
    stub.async()->Session(&context(), this);
    begin(live);
  }
  void abandon() {
    abandoned_ = true;
    cancel();
  }

 private:
  void on_message(const v1::ServerMessage& message) override {
    auto converted = from_wire(message);
    if (!converted) return log_warning("{}", converted.error().message);
    post([converted = std::move(*converted)](const Handler& h) { h.on_message(converted); });
  }
  void on_done(const std::string& reason) override {
    post([reason](const Handler& h) { h.on_closed(reason); });
  }
  template <typename Fn>
  void post(Fn fn) {
    auto self = std::static_pointer_cast<Session>(this->shared_from_this());
    loop_.post([self, fn = std::move(fn)] {
      if (!self->abandoned_) fn(*self->handler_);
    });
  }

  EventLoop& loop_;
  std::shared_ptr<Handler> handler_;
  std::atomic<bool> abandoned_{false};
};

class GrpcTransport::Logs final : public GrpcStream<v1::LogAgentMessage, v1::LogServerMessage> {
 public:
  Logs(EventLoop& loop, LogStreamHandler handler) : loop_(loop), handler_(std::move(handler)) {}

  void call(v1::AgentService::Stub& stub, const std::shared_ptr<LiveStreams>& live) {
    stub.async()->LogSession(&context(), this);
    begin(live);
  }
  void abandon() {
    abandoned_ = true;
    cancel();
  }

 private:
  void on_message(const v1::LogServerMessage& message) override {
    if (message.has_read()) {
      post([read = from_wire_read(message.read())](const auto& h) { h.on_read(read); });
    } else if (message.has_cancel()) {
      post([id = message.cancel().request_id()](const auto& h) { h.on_cancel(id); });
    }
  }
  void on_written() override {
    post([this](const auto& h) {
      if (!std::exchange(hello_sent_, true)) return;
      h.on_sent();
    });
  }
  void on_done(const std::string& reason) override {
    post([reason](const auto& h) { h.on_closed(reason); });
  }
  template <typename Fn>
  void post(Fn fn) {
    auto self = std::static_pointer_cast<Logs>(this->shared_from_this());
    loop_.post([self, fn = std::move(fn)] {
      if (!self->abandoned_) fn(self->handler_);
    });
  }

  EventLoop& loop_;
  LogStreamHandler handler_;
  bool hello_sent_ = false;  // loop thread
  std::atomic<bool> abandoned_{false};
};

struct GrpcTransport::Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::shared_ptr<v1::AgentService::Stub> stub;
  std::shared_ptr<Session> session;
  std::shared_ptr<Logs> logs;
  std::shared_ptr<LiveStreams> live = std::make_shared<LiveStreams>();
};

GrpcTransport::GrpcTransport(EventLoop& loop, std::string server)
    : loop_(loop), server_(std::move(server)), connection_(std::make_unique<Connection>()) {}

GrpcTransport::~GrpcTransport() {
  close();
  connection_->live->wait_for_none();  // they post to the loop
}

void GrpcTransport::open(Handler handler) {
  close();
  connection_->channel = make_channel(server_);
  connection_->stub = v1::AgentService::NewStub(connection_->channel);
  connection_->session = std::make_shared<Session>(loop_, std::move(handler));
  connection_->session->call(*connection_->stub, connection_->live);
}

void GrpcTransport::send(const ToServer& message) {
  if (connection_->session) connection_->session->send(to_wire(message));
}

void GrpcTransport::close() {
  if (connection_->session) connection_->session->abandon();
  if (connection_->logs) connection_->logs->abandon();
  connection_->session.reset();
  connection_->logs.reset();
}

void GrpcTransport::open_logs(const std::string& node_name, const std::string& state_dir_id,
                              LogStreamHandler handler) {
  if (connection_->logs) connection_->logs->abandon();
  if (!connection_->stub) return;
  connection_->logs = std::make_shared<Logs>(loop_, std::move(handler));
  connection_->logs->call(*connection_->stub, connection_->live);
  v1::LogAgentMessage hello;
  hello.mutable_hello()->set_node_name(node_name);
  hello.mutable_hello()->set_state_dir_id(state_dir_id);
  connection_->logs->send(std::move(hello));
}

void GrpcTransport::send_log(LogChunk chunk) {
  if (!connection_->logs) return;
  v1::LogAgentMessage message;
  auto& out = *message.mutable_chunk();
  out.set_request_id(chunk.request_id);
  out.set_offset(chunk.offset);
  out.set_data(std::move(chunk.data));
  out.set_end(chunk.end);
  out.set_error(chunk.error);
  out.set_instance_ended(chunk.instance_ended);
  connection_->logs->send(std::move(message));
}

LogUploader GrpcTransport::uploader() const {
  return [stub = connection_->stub](const LogUpload& upload) -> Result<void> {
    if (!stub) return Error{ErrorCode::kUnavailable, "no connection"};
    return upload_file(*stub, upload);
  };
}

}  // namespace gpuq::agent
