#include "client/lib/client.h"

#include <grpcpp/grpcpp.h>

#include <limits>
#include <utility>

#include "client/lib/status.h"
#include "gpuq/v1/job.grpc.pb.h"
#include "gpuq/v1/node.grpc.pb.h"
#include "gpuq/v1/policy.grpc.pb.h"

namespace gpuq::client {

namespace {

/// A deadline relative to the moment at which gRPC reads it.
gpr_timespec after(Duration duration) {
  return gpr_time_from_millis(duration.count(), GPR_TIMESPAN);
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  arguments.SetMaxSendMessageSize(std::numeric_limits<int>::max());
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

/// False as soon as every address of the target has refused, or after `limit`.
bool first_connection(grpc::Channel& channel, Duration limit) {
  gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), after(limit));
  for (auto state = channel.GetState(true); state != GRPC_CHANNEL_READY;
       state = channel.GetState(true)) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) return false;
    if (!channel.WaitForStateChange(state, deadline)) return false;
  }
  return true;
}

}  // namespace

struct Client::Impl {
  Impl(ClientOptions client_options, std::shared_ptr<grpc::Channel> connection)
      : options(std::move(client_options)),
        channel(std::move(connection)),
        jobs(v1::JobService::NewStub(channel)),
        policies(v1::PolicyService::NewStub(channel)),
        nodes(v1::NodeService::NewStub(channel)),
        cluster(v1::ClusterService::NewStub(channel)) {}

  /// Tells a server that refuses from one that is not there: after a refusal the channel is fine.
  Error error(const grpc::Status& status) const {
    const bool lost = status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                      channel->GetState(false) != GRPC_CHANNEL_READY;
    if (lost) return unreachable_error(options.target, "the connection was lost");
    if (auto foreign = foreign_server_error(options.target, status)) return *foreign;
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return unreachable_error(
          options.target,
          "no answer within " + std::to_string(options.call_timeout.count() / 1000) + " s");
    }
    return error_from_status(status);
  }

  template <typename Stub, typename Request, typename Reply>
  Result<Reply> call(Stub& stub,
                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                     const Request& request) const {
    grpc::ClientContext context;
    context.set_deadline(after(options.call_timeout));
    Reply reply;
    const grpc::Status status = (stub.*method)(&context, request, &reply);
    if (!status.ok()) return error(status);
    return reply;
  }

  template <typename Reply, typename Open>
  Result<> stream(const Open& open, const std::function<bool(const Reply&)>& handler,
                  StreamStop* stop) const {
    grpc::ClientContext context;
    const StreamScope scope(stop, &context);
    auto reader = open(&context);
    Reply reply;
    bool ended_here = false;
    while (!ended_here && reader->Read(&reply)) {
      if (!handler(reply)) {
        ended_here = true;
        context.TryCancel();
      }
    }
    while (ended_here && reader->Read(&reply)) continue;  // Finish() wants a drained stream
    const grpc::Status status = reader->Finish();
    if (status.ok() || ended_here || (stop != nullptr && stop->stopped())) return {};
    return error(status);
  }

  ClientOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::PolicyService::Stub> policies;
  std::unique_ptr<v1::NodeService::Stub> nodes;
  std::unique_ptr<v1::ClusterService::Stub> cluster;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::connect(const ClientOptions& options) {
  auto target = normalize_target(options.target);
  if (!target) return target.error();
  ClientOptions complete = options;
  complete.target = *target;
  auto channel = make_channel(complete.target);
  if (!first_connection(*channel, options.connect_timeout)) {
    return unreachable_error(complete.target, "");
  }
  return std::unique_ptr<Client>(
      new Client(std::make_unique<Impl>(std::move(complete), std::move(channel))));
}

const std::string& Client::target() const { return impl_->options.target; }

bool Client::wait_connected(Duration timeout) {
  return impl_->channel->WaitForConnected(after(timeout));
}

Result<v1::SubmitResponse> Client::submit(const v1::SubmitRequest& request) {
  auto reply = impl_->call(*impl_->jobs, &v1::JobService::Stub::Submit, request);
  if (!reply && reply.error().code == ErrorCode::kOutOfRange) {
    return Error{ErrorCode::kNeverFits, reply.error().message};
  }
  return reply;
}

Result<v1::TrySubmitResponse> Client::try_submit(const v1::SubmitRequest& request) {
  return impl_->call(*impl_->jobs, &v1::JobService::Stub::TrySubmit, request);
}

Result<v1::SubmitBatchResponse> Client::submit_batch(const v1::SubmitBatchRequest& request) {
  return impl_->call(*impl_->jobs, &v1::JobService::Stub::SubmitBatch, request);
}

Result<v1::Job> Client::get_job(const v1::GetJobRequest& request) {
  return impl_->call(*impl_->jobs, &v1::JobService::Stub::Get, request);
}

Result<v1::ListJobsResponse> Client::list_jobs(const v1::ListJobsRequest& request) {
  return impl_->call(*impl_->jobs, &v1::JobService::Stub::List, request);
}

Result<v1::Job> Client::update_job(const v1::UpdateJobRequest& request) {
  return impl_->call(*impl_->jobs, &v1::JobService::Stub::Update, request);
}

Result<v1::CancelJobsResponse> Client::cancel_jobs(const v1::CancelJobsRequest& request) {
  return impl_->call(*impl_->jobs, &v1::JobService::Stub::Cancel, request);
}

Result<v1::ExplainResponse> Client::explain(const v1::ExplainRequest& request) {
  return impl_->call(*impl_->jobs, &v1::JobService::Stub::Explain, request);
}

Result<> Client::watch(const v1::WatchRequest& request, const WatchHandler& handler,
                       StreamStop* stop) {
  const auto open = [&](grpc::ClientContext* context) {
    return impl_->jobs->Watch(context, request);
  };
  return impl_->stream<v1::WatchResponse>(open, handler, stop);
}

Result<> Client::read_logs(const v1::ReadLogsRequest& request, const LogHandler& handler,
                           StreamStop* stop) {
  const auto open = [&](grpc::ClientContext* context) {
    return impl_->jobs->ReadLogs(context, request);
  };
  return impl_->stream<v1::LogChunk>(open, handler, stop);
}

Result<v1::PolicyObject> Client::create(const v1::CreatePolicyObjectRequest& request) {
  return impl_->call(*impl_->policies, &v1::PolicyService::Stub::Create, request);
}

Result<v1::PolicyObject> Client::update(const v1::UpdatePolicyObjectRequest& request) {
  return impl_->call(*impl_->policies, &v1::PolicyService::Stub::Update, request);
}

Result<v1::DeletePolicyObjectResponse> Client::remove(
    const v1::DeletePolicyObjectRequest& request) {
  return impl_->call(*impl_->policies, &v1::PolicyService::Stub::Delete, request);
}

Result<v1::PolicyObject> Client::get(const v1::GetPolicyObjectRequest& request) {
  return impl_->call(*impl_->policies, &v1::PolicyService::Stub::Get, request);
}

Result<v1::ListPolicyObjectsResponse> Client::list(const v1::ListPolicyObjectsRequest& request) {
  return impl_->call(*impl_->policies, &v1::PolicyService::Stub::List, request);
}

Result<v1::ApplyPolicyResponse> Client::apply(const v1::ApplyPolicyRequest& request) {
  return impl_->call(*impl_->policies, &v1::PolicyService::Stub::Apply, request);
}

Result<v1::PolicyDocument> Client::export_policy() {
  return impl_->call(*impl_->policies, &v1::PolicyService::Stub::Export, v1::ExportPolicyRequest());
}

Result<v1::ListNodesResponse> Client::list_nodes(const v1::ListNodesRequest& request) {
  return impl_->call(*impl_->nodes, &v1::NodeService::Stub::ListNodes, request);
}

Result<v1::Node> Client::get_node(const v1::GetNodeRequest& request) {
  return impl_->call(*impl_->nodes, &v1::NodeService::Stub::GetNode, request);
}

Result<v1::Node> Client::update_node(const v1::UpdateNodeRequest& request) {
  return impl_->call(*impl_->nodes, &v1::NodeService::Stub::UpdateNode, request);
}

Result<v1::ClusterStatus> Client::status(const v1::GetStatusRequest& request) {
  return impl_->call(*impl_->cluster, &v1::ClusterService::Stub::GetStatus, request);
}

Result<v1::ServerInfo> Client::server_info() {
  return impl_->call(*impl_->cluster, &v1::ClusterService::Stub::GetServerInfo,
                     v1::GetServerInfoRequest());
}

}  // namespace gpuq::client
