// AgentService: the streams of agents. Sessions go to the AgentHub on the engine's thread, log
// streams to the LogHub, uploads to files on the pool.
#include <memory>
#include <utility>

#include "common/runtime/log.h"
#include "gpuq/v1/agent.grpc.pb.h"
#include "server/rpc/queued_stream.h"
#include "server/rpc/services.h"
#include "server/rpc/status.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

constexpr std::size_t kMaxOrders = 100'000;  // queued for one agent
constexpr std::size_t kMaxLogOrders = 10'000;

class AgentSession final
    : public QueuedStream<grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>,
                          v1::ServerMessage>,
      public AgentLink,
      public std::enable_shared_from_this<AgentSession> {
 public:
  explicit AgentSession(ServiceContext& context) : context_(context) {}

  void begin() {
    self_ = shared_from_this();
    StartRead(&incoming_);
  }
  void refuse(const Error& error) {
    self_ = shared_from_this();
    end(to_status(error), Rest::kDrop);
  }

  // AgentLink
  bool send(v1::ServerMessage message) override {
    return push(std::make_shared<const v1::ServerMessage>(std::move(message)), kMaxOrders);
  }
  void close(const Error& why) override { end(to_status(why), Rest::kSend); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      end(grpc::Status::OK, Rest::kDrop);
      return;
    }
    auto message = std::make_shared<v1::AgentMessage>(std::move(incoming_));
    incoming_.Clear();
    const bool first = !std::exchange(greeted_, true);
    if (first && message->message_case() != v1::AgentMessage::kHello) {
      return end(to_status(invalid("the first message must be Hello")), Rest::kDrop);
    }
    context_.executor.post([me = shared_from_this(), message, first] {
      if (first) {
        me->context_.agents.hello(me, message->hello());
      } else {
        me->context_.agents.message(me, *message);
      }
    });
    StartRead(&incoming_);
  }

  void OnDone() override {
    context_.executor.post(
        [me = std::exchange(self_, nullptr)] { me->context_.agents.closed(me); });
  }

  ServiceContext& context_;
  std::shared_ptr<AgentSession> self_;  // until OnDone
  v1::AgentMessage incoming_;
  bool greeted_ = false;
};

class LogSession final
    : public QueuedStream<grpc::ServerBidiReactor<v1::LogAgentMessage, v1::LogServerMessage>,
                          v1::LogServerMessage>,
      public LogLink,
      public std::enable_shared_from_this<LogSession> {
 public:
  explicit LogSession(ServiceContext& context) : context_(context) {}

  void begin() {
    self_ = shared_from_this();
    StartRead(&incoming_);
  }
  void refuse(const Error& error) {
    self_ = shared_from_this();
    end(to_status(error), Rest::kDrop);
  }

  // LogLink
  void send(v1::LogServerMessage message) override {
    push(std::make_shared<const v1::LogServerMessage>(std::move(message)), kMaxLogOrders);
  }
  void close(const Error& why) override { end(to_status(why), Rest::kDrop); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      end(grpc::Status::OK, Rest::kDrop);
      return;
    }
    if (incoming_.has_hello()) {
      context_.log_hub.attach(incoming_.hello().node_name(), shared_from_this());
    } else if (incoming_.has_chunk()) {
      context_.log_hub.chunk(shared_from_this(), incoming_.chunk());
    }
    incoming_.Clear();
    StartRead(&incoming_);
  }

  void OnDone() override {
    const auto me = std::exchange(self_, nullptr);
    context_.log_hub.detach(me);
  }

  ServiceContext& context_;
  std::shared_ptr<LogSession> self_;  // until OnDone
  v1::LogAgentMessage incoming_;
};

class LogUpload final : public grpc::ServerReadReactor<v1::UploadLogRequest> {
 public:
  LogUpload(ServiceContext& context, v1::UploadLogResponse* response)
      : context_(context), response_(response) {}

  void begin() { StartRead(&incoming_); }
  void refuse(const Error& error) { Finish(to_status(error)); }

 private:
  // Files are slow: each message is written on the pool, and only then the next one is read.
  void OnReadDone(bool ok) override {
    context_.pool.post([this, ok] {
      auto done = ok ? take() : commit();
      if (!done) return Finish(to_status(done.error()));
      if (!ok) return Finish(grpc::Status::OK);
      incoming_.Clear();
      StartRead(&incoming_);
    });
  }

  Result<> take() {
    if (upload_ == nullptr) {
      if (auto begun = open(); !begun) return begun;
    }
    return upload_->append(incoming_.data());
  }

  Result<> open() {
    const v1::UploadLogHeader& header = incoming_.header();
    if (header.fence().store_id() != context_.store_id) {
      return Error{ErrorCode::kFailedPrecondition, "the attempt is not of this store"};
    }
    const bool known = header.stream() == v1::AGENT_LOG_STREAM_STDOUT ||
                       header.stream() == v1::AGENT_LOG_STREAM_STDERR;
    if (header.job_id() <= 0 || header.fence().attempt_id() <= 0 || header.offset() < 0 || !known) {
      return invalid("the first message needs a header with job_id, fence, stream and offset >= 0");
    }
    const LogKey key{JobId(header.job_id()), AttemptId(header.fence().attempt_id()),
                     static_cast<std::int32_t>(header.instance()),
                     header.stream() == v1::AGENT_LOG_STREAM_STDERR};
    auto upload = context_.log_files.begin(key, header.offset());
    if (!upload) return upload.error();
    upload_ = std::move(*upload);
    return {};
  }

  Result<> commit() {
    if (upload_ == nullptr) return invalid("the upload has no header");
    auto stored = upload_->commit();
    if (!stored) return stored.error();
    response_->set_stored_bytes(*stored);
    return {};
  }

  void OnDone() override { delete this; }

  ServiceContext& context_;
  v1::UploadLogResponse* response_;
  v1::UploadLogRequest incoming_;
  std::unique_ptr<LogFiles::Upload> upload_;
};

using Service = v1::AgentService;

class AgentServiceImpl final : public Service::CallbackService {
 public:
  explicit AgentServiceImpl(ServiceContext& context) : context_(context) {}

  grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* Session(
      grpc::CallbackServerContext* call) override {
    return open<AgentSession>(call, auth::Verb::kAgentSession);
  }
  grpc::ServerBidiReactor<v1::LogAgentMessage, v1::LogServerMessage>* LogSession(
      grpc::CallbackServerContext* call) override {
    return open<rpc::LogSession>(call, auth::Verb::kAgentLogs);
  }
  grpc::ServerReadReactor<v1::UploadLogRequest>* UploadLog(
      grpc::CallbackServerContext* call, v1::UploadLogResponse* response) override {
    auto* upload = new LogUpload(context_, response);
    if (auto allowed = check(call, auth::Verb::kAgentLogs); allowed) {
      upload->begin();
    } else {
      upload->refuse(allowed.error());
    }
    return upload;
  }

 private:
  Result<> check(grpc::CallbackServerContext* call, auth::Verb verb) {
    return auth::authorize(context_.peers.identify(std::string(call->peer())), verb, {});
  }

  template <typename Stream>
  Stream* open(grpc::CallbackServerContext* call, auth::Verb verb) {
    auto stream = std::make_shared<Stream>(context_);
    if (auto allowed = check(call, verb); allowed) {
      stream->begin();
    } else {
      stream->refuse(allowed.error());
    }
    return stream.get();
  }

  ServiceContext& context_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_agent_service(ServiceContext& context) {
  return std::make_unique<AgentServiceImpl>(context);
}

}  // namespace gpuq::rpc
