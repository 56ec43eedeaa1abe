// NodeService and ClusterService: looking at nodes and the pool, cordoning.
#include <algorithm>
#include <memory>
#include <utility>

#include "common/runtime/defaults.h"
#include "core/base/text.h"
#include "gpuq/v1/node.grpc.pb.h"
#include "server/rpc/convert_node.h"
#include "server/rpc/services.h"
#include "server/rpc/text_check.h"
#include "server/rpc/unary_call.h"

namespace gpuq::rpc {

namespace {

using ListNodesCall = UnaryCall<v1::ListNodesRequest, v1::ListNodesResponse>;
using GetNodeCall = UnaryCall<v1::GetNodeRequest, v1::Node>;
using UpdateNodeCall = UnaryCall<v1::UpdateNodeRequest, v1::Node>;
using StatusCall = UnaryCall<v1::GetStatusRequest, v1::ClusterStatus>;
using InfoCall = UnaryCall<v1::GetServerInfoRequest, v1::ServerInfo>;

void list_nodes(ServiceContext& context, ListNodesCall* call) {
  context.engine.query([&context, call](const State& state) {
    const auto& request = call->request;
    std::vector<const Node*> nodes;
    for (const Node& node : state.nodes()) {
      if (!request.node_name().empty() && !glob_match(request.node_name(), node.name)) continue;
      if (!request.service_environment().empty()) {
        const Environment* environment = state.policy().environment(node.env);
        if (environment == nullptr || environment->def.name != request.service_environment()) {
          continue;
        }
      }
      nodes.push_back(&node);
    }
    std::ranges::sort(nodes, {}, &Node::name);
    const NodeUsers users(state);
    for (const Node* node : nodes) {
      users.fill_node(*node, context.agents.contact(node->name), false,
                      *call->response.add_nodes());
    }
    call->finish();
  });
}

template <typename Call>
void answer_with_node(ServiceContext& context, Call* call) {
  context.engine.query([&context, call](const State& state) {
    const std::string& name = call->request.node_name();
    const Node* node = state.find_node(name);
    if (node == nullptr) {
      return call->finish(Error{ErrorCode::kNotFound, "there is no node " + quote(name)});
    }
    NodeUsers(state).fill_node(*node, context.agents.contact(name), true, call->response);
    call->finish();
  });
}

void get_node(ServiceContext& context, GetNodeCall* call) { answer_with_node(context, call); }

void update_node(ServiceContext& context, UpdateNodeCall* call) {
  auto admin = read_admin_state(call->request.admin_state());
  if (!admin) return call->finish(admin.error());
  context.engine.post(
      Command{call->caller.user, SetNodeAdminCommand{call->request.node_name(), *admin}},
      [&context, call](const Result<Reply>& reply) {
        if (!reply) return call->finish(reply.error());
        answer_with_node(context, call);
      });
}

void get_status(ServiceContext& context, StatusCall* call) {
  context.engine.query([&context, call](const State& state) {
    call->finish(
        fill_status(state, call->request.job_queue(), context.clock.now(), call->response));
  });
}

void get_info(ServiceContext& context, InfoCall* call) {
  context.executor.post([&context, call] {
    v1::ServerInfo& info = call->response;
    info.set_version(version());
    info.set_store_id(context.store_id);
    info.set_epoch(context.engine.identity().epoch);
    info.set_read_only(context.engine.read_only());
    if (info.read_only()) {
      info.set_read_only_reason(context.engine.read_only_reason().message);
    }
    info.set_started_at_ms(to_ms(context.started_at));
    info.set_user(call->caller.user);
    call->finish();
  });
}

using Call = grpc::CallbackServerContext;
using Bytes = grpc::ByteBuffer;
using Verb = auth::Verb;

using Nodes = v1::NodeService;
using NodeBase = Nodes::WithRawCallbackMethod_ListNodes<
    Nodes::WithRawCallbackMethod_GetNode<Nodes::WithRawCallbackMethod_UpdateNode<Nodes::Service>>>;

class NodeServiceImpl final : public NodeBase {
 public:
  explicit NodeServiceImpl(ServiceContext& context) : context_(context) {}

  grpc::ServerUnaryReactor* ListNodes(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadNode, list_nodes);
  }
  grpc::ServerUnaryReactor* GetNode(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadNode, get_node);
  }
  grpc::ServerUnaryReactor* UpdateNode(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kChangeNode, update_node);
  }

 private:
  ServiceContext& context_;
};

using Cluster = v1::ClusterService;
using ClusterBase = Cluster::WithRawCallbackMethod_GetStatus<
    Cluster::WithRawCallbackMethod_GetServerInfo<Cluster::Service>>;

class ClusterServiceImpl final : public ClusterBase {
 public:
  explicit ClusterServiceImpl(ServiceContext& context) : context_(context) {}

  grpc::ServerUnaryReactor* GetStatus(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadStatus, get_status);
  }
  grpc::ServerUnaryReactor* GetServerInfo(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadStatus, get_info);
  }

 private:
  ServiceContext& context_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_node_service(ServiceContext& context) {
  return std::make_unique<NodeServiceImpl>(context);
}

std::unique_ptr<grpc::Service> make_cluster_service(ServiceContext& context) {
  return std::make_unique<ClusterServiceImpl>(context);
}

}  // namespace gpuq::rpc
