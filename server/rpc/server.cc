#include "server/rpc/server.h"

#include <fmt/format.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/codegen/service_type.h>

#include <optional>
#include <utility>

#include "common/runtime/log.h"
#include "core/base/text.h"
#include "server/rpc/context.h"
#include "server/rpc/parse_error.h"
#include "server/rpc/services.h"

namespace gpuq::rpc {

namespace {

// Dead connections are noticed; agents' own pings, also without a call, are welcome.
void set_keepalive(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A second server on the same port is an error, not a partner.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace

class RpcServer::Impl {
 public:
  Impl(Executor& executor, const Clock& clock, RpcConfig config)
      : executor_(executor),
        clock_(clock),
        config_(std::move(config)),
        specs_(config_.spec_cache_bytes),
        pool_(config_.worker_threads),
        peers_(clock, config_.allow_remote),
        log_files_(config_.log_dir, config_.log_cap_bytes),
        agents_(agent_ports(), executor, clock, specs_, config_.agents),
        watchers_([this]() -> const State& { return engine_->state(); }),
        forecasts_(executor, clock, [this](auto query) { engine_->query(std::move(query)); }) {}

  Result<> start(Engine& engine, History& history) {
    engine_ = &engine;
    history_ = &history;
    context_.emplace(ServiceContext{engine, executor_, clock_, history, pool_, peers_, agents_,
                                    watchers_, specs_, forecasts_, log_hub_, log_files_, streams_,
                                    clock_.now(), engine.identity().store_id});
    agents_.watch_known_nodes();
    return open();
  }

  void begin_stop() {
    const Error why{ErrorCode::kUnavailable, "the server is stopping"};
    if (server_ != nullptr) server_->GetHealthCheckService()->SetServingStatus(false);
    forecasts_.begin_stop();
    streams_.close_all(why);
    agents_.close_all(why);
    log_hub_.close_all(why);
  }

  void finish_stop(Duration patience) {
    if (server_ != nullptr) {
      server_->Shutdown(gpr_time_from_millis(patience.count(), GPR_TIMESPAN));
    }
    forecasts_.begin_stop();
    forecasts_.finish_stop();
    pool_.stop();
  }

  // Engine's orders reach the hub only after start(), which sets engine_.
  AgentHubPorts agent_ports() {
    AgentHubPorts ports;
    ports.post = [this](Command command, ReplyFn reply) {
      engine_->post(std::move(command), std::move(reply));
    };
    ports.state = [this]() -> const State& { return engine_->state(); };
    ports.identity = [this] { return engine_->identity(); };
    ports.read_spec = [this](JobId job, std::function<void(Result<std::string>)> done) {
      pool_.post([this, job, done = std::move(done)] {
        executor_.post([done, spec = history_->spec(job)] { done(spec); });
      });
    };
    return ports;
  }

  AgentHub& agents() { return agents_; }
  WatchHub& watchers() { return watchers_; }
  [[nodiscard]] const std::vector<int>& ports() const { return ports_; }

 private:
  Result<> open() {
    catch_parse_errors();
    grpc::EnableDefaultHealthCheckService(true);
    // Called by name: a plugin that only registers itself would be left out by the linker.
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    ports_.assign(config_.listen.size(), 0);
    for (std::size_t i = 0; i < config_.listen.size(); ++i) {
      builder.AddListeningPort(config_.listen[i], grpc::InsecureServerCredentials(), &ports_[i]);
    }
    builder.SetMaxReceiveMessageSize(config_.max_message_bytes);
    builder.SetMaxSendMessageSize(-1);
    set_keepalive(builder);
    for (auto* make : {make_job_service, make_policy_service, make_node_service,
                       make_cluster_service, make_agent_service}) {
      services_.push_back(make(*context_));
      builder.RegisterService(services_.back().get());
    }
    server_ = builder.BuildAndStart();
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (server_ != nullptr && ports_[i] != 0) continue;
      return Error{ErrorCode::kUnavailable,
                   fmt::format("can not listen on {}: is another program using it?",
                               quote(config_.listen[i]))};
    }
    if (!ports_.empty()) peers_.set_server_ports(ports_);
    return {};
  }

  Executor& executor_;
  const Clock& clock_;
  const RpcConfig config_;
  Engine* engine_ = nullptr;
  History* history_ = nullptr;
  SpecCache specs_;
  WorkerPool pool_;
  auth::PeerIdentifier peers_;
  LogFiles log_files_;
  LogHub log_hub_;
  OpenStreams streams_;
  AgentHub agents_;
  WatchHub watchers_;
  Forecasts forecasts_;
  std::optional<ServiceContext> context_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::vector<int> ports_;
  std::unique_ptr<grpc::Server> server_;
};

RpcServer::RpcServer(Executor& executor, const Clock& clock, RpcConfig config)
    : impl_(std::make_unique<Impl>(executor, clock, std::move(config))) {}
RpcServer::~RpcServer() = default;

AgentGateway& RpcServer::gateway() { return impl_->agents(); }
Observer& RpcServer::observer() { return impl_->watchers(); }

Result<> RpcServer::start(Engine& engine, History& history) {
  return impl_->start(engine, history);
}

std::vector<std::uint16_t> RpcServer::ports() const {
  return {impl_->ports().begin(), impl_->ports().end()};
}

void RpcServer::begin_stop() { impl_->begin_stop(); }
void RpcServer::finish_stop(Duration patience) { impl_->finish_stop(patience); }

}  // namespace gpuq::rpc
