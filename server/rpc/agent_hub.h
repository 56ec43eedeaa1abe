#pragma once
// AgentHub: the engine's AgentGateway over the agents' sessions. It registers nodes, turns orders
// into messages, reports into commands, and silence into link changes. Owner: the server's wiring.
// Thread: the engine's, for everything.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/base/clock.h"
#include "core/engine/command.h"
#include "core/engine/ports.h"
#include "core/state/state.h"
#include "gpuq/v1/agent.pb.h"
#include "server/rpc/convert_node.h"
#include "server/rpc/spec_cache.h"

namespace gpuq::rpc {

struct AgentHubConfig {
  Duration heartbeat_interval{5'000};
  Duration unreachable_after{30'000};   ///< Silence: nothing new goes there.
  Duration node_lost_timeout{300'000};  ///< Silence: DOWN, attempts lost.
};

/// The sending side of one agent's stream. Never blocks; after close() sends are dropped.
class AgentLink {
 public:
  virtual ~AgentLink() = default;
  /// False when the link's queue is full: the hub then closes it, the agent comes back.
  virtual bool send(v1::ServerMessage message) = 0;
  virtual void close(const Error& why) = 0;
};

/// What the hub asks of the rest of the server.
struct AgentHubPorts {
  std::function<void(Command, ReplyFn)> post;  ///< Engine::post
  std::function<const State&()> state;         ///< Engine::state
  std::function<StoreIdentity()> identity;     ///< Engine::identity
  /// Reads a spec somewhere else and calls back on the engine's thread.
  std::function<void(JobId, std::function<void(Result<std::string>)>)> read_spec;
};

class AgentHub final : public AgentGateway {
 public:
  AgentHub(AgentHubPorts ports, Executor& executor, const Clock& clock, SpecCache& specs,
           AgentHubConfig config);
  ~AgentHub() override;

  /// Every known node gets the full timeout from now on. Once, after Engine::start().
  void watch_known_nodes();

  // AgentGateway
  void start(const StartOrder& order) override;
  void go(const Fence& fence, NodeId node, std::int32_t instance) override;
  void stop(const StopOrder& order) override;
  void forget(const Fence& fence, NodeId node, std::int32_t instance) override;

  // Sessions
  /// First message of a stream. The link is registered, welcomed or refused later.
  void hello(const std::shared_ptr<AgentLink>& link, const v1::Hello& hello);
  /// Any later message. `caller` was authorized.
  void message(const std::shared_ptr<AgentLink>& link, const v1::AgentMessage& message);
  /// The stream has ended. The node stays UP until it has been silent for `unreachable_after`.
  void closed(const std::shared_ptr<AgentLink>& link);
  /// Ends all sessions, e.g. when the server stops.
  void close_all(const Error& why);

  [[nodiscard]] NodeContact contact(const std::string& node) const;
  [[nodiscard]] std::size_t session_count() const { return node_of_link_.size(); }

 private:
  struct Session;
  struct NodeEntry;

  NodeEntry* entry_of(const AgentLink* link);
  void welcome(const std::shared_ptr<Session>& session, Result<Reply> reply);
  void refuse(const std::shared_ptr<AgentLink>& link, const Error& why);
  void report(const std::shared_ptr<Session>& session, const v1::AttemptReport& report);
  void health(const std::shared_ptr<Session>& session, const std::string& trouble);
  void send(NodeId node, v1::ServerMessage message);
  void send(Session& session, v1::ServerMessage message);
  void send_start(NodeId node, v1::Start start, const std::string& spec);
  void drop_session(NodeEntry& entry, const Error& why);
  void heard(NodeEntry& entry);
  [[nodiscard]] Duration patience_with(const NodeEntry& entry) const;
  void arm(const std::string& node, NodeEntry& entry);
  void check(const std::string& node, std::uint64_t timer);
  /// Says it to the engine until it is taken: a store that takes no writes now may refuse it.
  void tell(const std::string& node, NodeLink link);
  std::string node_name(NodeId node) const;

  AgentHubPorts ports_;
  Executor& executor_;
  const Clock& clock_;
  SpecCache& specs_;
  const AgentHubConfig config_;
  std::map<std::string, NodeEntry> nodes_;
  std::map<const AgentLink*, std::string> node_of_link_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< Timers hold it weakly.
  std::optional<Error> stopping_;  ///< Set by close_all(): a later session is closed at once.
};

}  // namespace gpuq::rpc
