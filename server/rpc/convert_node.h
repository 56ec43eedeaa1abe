#pragma once
// Nodes and the pool at a glance, from the core to the wire. Engine's thread.
#include <string>

#include "core/state/state.h"
#include "gpuq/v1/node.pb.h"

namespace gpuq::rpc {

/// When an agent was heard of last, and when it registered; core time, kNoTime = not since start.
struct NodeContact {
  Time last_seen = kNoTime;
  Time registered_at = kNoTime;
};

/// Who uses what on the nodes; worked out once for all nodes of an answer. Lives for one query.
class NodeUsers {
 public:
  explicit NodeUsers(const State& state);
  void fill_node(const Node& node, const NodeContact& contact, bool with_attempts,
                 v1::Node& out) const;

 private:
  struct User {
    const Attempt* attempt;
    std::int32_t instance;
  };
  const State& state_;
  std::map<NodeId, std::vector<User>> users_;
};

v1::NodeLink to_proto(NodeLink link);
v1::NodeAdminState to_proto(NodeAdmin admin);
/// kInvalidArgument for UNSPECIFIED and unknown values.
Result<NodeAdmin> read_admin_state(v1::NodeAdminState state);

/// Shares, pool, queues and node counts; `queue` "" = all. kNotFound for an unknown queue.
Result<> fill_status(const State& state, const std::string& queue, Time now,
                     v1::ClusterStatus& out);

}  // namespace gpuq::rpc
