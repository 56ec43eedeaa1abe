#include "server/rpc/agent_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/runtime/defaults.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/log.h"
#include "core/base/text.h"
#include "server/rpc/convert_agent.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

struct AgentHub::Session {
  std::shared_ptr<AgentLink> link;
  std::string node;
  v1::Hello hello;
  bool welcomed = false;
  std::vector<v1::ServerMessage> held;  ///< Orders that came before the Welcome was sent.
};

struct AgentHub::NodeEntry {
  std::shared_ptr<Session> session;
  NodeLink link = NodeLink::kUnreachable;  ///< What the engine was told last.
  Time last_seen{};
  Time registered_at = kNoTime;
  std::uint64_t timer = 0;  ///< The one that counts; older ones do nothing.
};

AgentHub::AgentHub(AgentHubPorts ports, Executor& executor, const Clock& clock, SpecCache& specs,
                   AgentHubConfig config)
    : ports_(std::move(ports)),
      executor_(executor),
      clock_(clock),
      specs_(specs),
      config_(config) {}

AgentHub::~AgentHub() = default;

void AgentHub::watch_known_nodes() {
  for (const Node& node : ports_.state().nodes()) {
    if (node.link == NodeLink::kDown) continue;
    NodeEntry& entry = nodes_[node.name];
    entry.last_seen = clock_.now();
    arm(node.name, entry);
  }
}

namespace {

/// A member of an array has the array's spec.
JobId spec_of(const StartOrder& order) { return order.array ? order.array->id : order.job.id; }

}  // namespace

// ---- orders

void AgentHub::start(const StartOrder& order) {
  v1::Start start = to_start(ports_.state(), order);
  if (const std::string* spec = specs_.find(spec_of(order))) {
    send_start(order.node, std::move(start), *spec);
    return;
  }
  ports_.read_spec(spec_of(order), [this, node = order.node,
                                    start = std::move(start)](Result<std::string> spec) mutable {
    if (spec) {
      send_start(node, std::move(start), *spec);
    } else {
      log_error("job {} can not be started: {}", start.job_id(), spec.error().message);
    }
  });
}

void AgentHub::send_start(NodeId node, v1::Start start, const std::string& spec) {
  if (auto done = add_spec(spec, start); !done) {
    log_error("job {} can not be started: {}", start.job_id(), done.error().message);
    return;
  }
  v1::ServerMessage message;
  *message.mutable_start() = std::move(start);
  send(node, std::move(message));
}

void AgentHub::go(const Fence& fence, NodeId node, std::int32_t) {
  v1::ServerMessage message;
  *message.mutable_go()->mutable_fence() = to_proto(fence);
  send(node, std::move(message));
}

void AgentHub::stop(const StopOrder& order) {
  v1::ServerMessage message;
  v1::Stop& stop = *message.mutable_stop();
  *stop.mutable_fence() = to_proto(order.fence);
  stop.set_reason(to_proto(order.cause));
  stop.set_grace_ms(order.grace.count());
  send(order.node, std::move(message));
}

void AgentHub::forget(const Fence& fence, NodeId node, std::int32_t) {
  // The message speaks of all instances on the node: wait until the end of each is committed.
  if (const Attempt* attempt = ports_.state().find_attempt(fence.attempt)) {
    const auto pending = [&](const AttemptInstance& instance) {
      return instance.use.node == node && instance.state != InstanceState::kExited;
    };
    if (attempt->live() && std::ranges::any_of(attempt->instances, pending)) return;
  }
  v1::ServerMessage message;
  *message.mutable_forget()->mutable_fence() = to_proto(fence);
  send(node, std::move(message));
}

std::string AgentHub::node_name(NodeId node) const {
  const Node* found = ports_.state().find_node(node);
  return found != nullptr ? found->name : "";
}

void AgentHub::send(NodeId node, v1::ServerMessage message) {
  const auto it = nodes_.find(node_name(node));
  // Without a session the order is dropped: the engine sends it again at the next registration.
  if (it == nodes_.end() || it->second.session == nullptr) return;
  send(*it->second.session, std::move(message));
}

void AgentHub::send(Session& session, v1::ServerMessage message) {
  if (!session.welcomed) {
    session.held.push_back(std::move(message));
    return;
  }
  if (session.link->send(std::move(message))) return;
  log_warning("node {} takes its orders too slowly: its session is ended, it will come back",
              session.node);
  NodeEntry& entry = nodes_[session.node];
  drop_session(entry, {ErrorCode::kResourceExhausted, "orders were taken too slowly"});
}

// ---- sessions

void AgentHub::refuse(const std::shared_ptr<AgentLink>& link, const Error& why) {
  v1::ServerMessage message;
  message.mutable_refused()->set_reason(why.message);
  link->send(std::move(message));
  link->close(why);
}

void AgentHub::hello(const std::shared_ptr<AgentLink>& link, const v1::Hello& hello) {
  if (stopping_) return link->close(*stopping_);
  auto command = to_register(hello, ports_.identity().store_id);
  if (!command) return refuse(link, command.error());
  const std::string name = hello.node_name();
  NodeEntry& entry = nodes_[name];
  if (entry.session != nullptr) {
    const bool living = clock_.now() - entry.last_seen < config_.unreachable_after;
    if (living && entry.session->hello.state_dir_id() != hello.state_dir_id()) {
      log_warning("node {}: a second agent (state directory {}) was refused", name,
                  hello.state_dir_id());
      return refuse(link, {ErrorCode::kAlreadyExists,
                           fmt::format("node {} is already served by an agent with another state "
                                       "directory: stop that one or give this node another name",
                                       quote(name))});
    }
    drop_session(entry, {ErrorCode::kAborted, "a newer session of this node took its place"});
  }
  auto session = std::make_shared<Session>();
  session->link = link;
  session->node = name;
  session->hello = hello;
  entry.session = session;
  node_of_link_[link.get()] = name;
  heard(entry);
  Command posted{"agent:" + name, std::move(*command)};
  ports_.post(std::move(posted),
              [this, session](Result<Reply> reply) { welcome(session, std::move(reply)); });
}

void AgentHub::welcome(const std::shared_ptr<Session>& session, Result<Reply> reply) {
  NodeEntry& entry = nodes_[session->node];
  if (entry.session != session) return;  // replaced or gone meanwhile
  if (!reply) {
    log_warning("node {} was refused: {}", session->node, reply.error().message);
    node_of_link_.erase(session->link.get());
    entry.session.reset();
    return refuse(session->link, reply.error());
  }
  v1::ServerMessage message;
  *message.mutable_welcome() =
      to_welcome(session->hello, *reply, ports_.identity(), config_.heartbeat_interval, version());
  log_info("node {} registered: {} devices, {} CPUs, {} attempts", session->node,
           session->hello.devices_size(), session->hello.cpus(), session->hello.attempts_size());
  entry.link = NodeLink::kUp;
  entry.registered_at = clock_.now();
  heard(entry);
  arm(session->node, entry);
  session->welcomed = true;
  session->hello.clear_attempts();
  send(*session, std::move(message));
  for (v1::ServerMessage& held : std::exchange(session->held, {})) send(*session, std::move(held));
}

AgentHub::NodeEntry* AgentHub::entry_of(const AgentLink* link) {
  const auto name = node_of_link_.find(link);
  return name == node_of_link_.end() ? nullptr : &nodes_[name->second];
}

void AgentHub::message(const std::shared_ptr<AgentLink>& link, const v1::AgentMessage& message) {
  NodeEntry* entry = entry_of(link.get());
  if (entry == nullptr) return;
  heard(*entry);
  const std::shared_ptr<Session> session = entry->session;
  switch (message.message_case()) {
    case v1::AgentMessage::kHeartbeat: {
      v1::ServerMessage ack;
      ack.mutable_heartbeat_ack()->set_sequence(message.heartbeat().sequence());
      send(*session, std::move(ack));
      break;
    }
    case v1::AgentMessage::kReport:
      report(session, message.report());
      break;
    case v1::AgentMessage::kNodeUpdate:
      // A registration takes in everything at once; the agent comes back with a new Hello.
      drop_session(*entry, {ErrorCode::kAborted, "the node has changed: register it anew"});
      break;
    case v1::AgentMessage::kNodeHealth:
      health(session, message.node_health().trouble());
      break;
    case v1::AgentMessage::kHello:
      drop_session(*entry, {ErrorCode::kInvalidArgument, "Hello was sent twice"});
      break;
    case v1::AgentMessage::MESSAGE_NOT_SET:
      break;  // of a later release
  }
}

void AgentHub::health(const std::shared_ptr<Session>& session, const std::string& trouble) {
  const std::string reason = one_line(trouble);
  if (reason.empty()) {
    log_info("node {}: healthy again", session->node);
  } else {
    log_warning("node {}: nothing new starts there: {}", session->node, reason);
  }
  ports_.post(
      Command{"agent:" + session->node, NodeHealthCommand{session->node, reason.empty(), reason}},
      [this, session](const Result<Reply>& reply) {
        NodeEntry& entry = nodes_[session->node];
        // The next Hello says it again.
        if (!reply && entry.session == session) drop_session(entry, reply.error());
      });
}

void AgentHub::report(const std::shared_ptr<Session>& session, const v1::AttemptReport& report) {
  if (report.status().fence().store_id() != ports_.identity().store_id) return;
  auto reported = to_reported(report.status());
  if (!reported) {
    log_warning("node {} sent a report that makes no sense: {}", session->node,
                reported.error().message);
    return;
  }
  Command command{"agent:" + session->node,
                  ReportCommand{session->node, std::move(*reported),
                                agent_cause(report.status().stop_reason())}};
  ports_.post(std::move(command), [this, session, id = report.report_id()](Result<Reply> reply) {
    NodeEntry& entry = nodes_[session->node];
    if (entry.session != session) return;
    if (!reply) {
      // Reports are not repeated within a session: the next Hello tells what this one said.
      drop_session(entry, reply.error());
      return;
    }
    v1::ServerMessage ack;
    ack.mutable_ack_report()->set_report_id(id);
    send(*session, std::move(ack));
  });
}

void AgentHub::closed(const std::shared_ptr<AgentLink>& link) {
  const auto name = node_of_link_.find(link.get());
  if (name == node_of_link_.end()) return;
  NodeEntry& entry = nodes_[name->second];
  if (entry.session != nullptr && entry.session->link == link) {
    log_info("node {}: the connection to its agent has ended", name->second);
    entry.session.reset();
  }
  node_of_link_.erase(name);
}

void AgentHub::drop_session(NodeEntry& entry, const Error& why) {
  const std::shared_ptr<Session> session = std::exchange(entry.session, nullptr);
  if (session == nullptr) return;
  node_of_link_.erase(session->link.get());
  session->link->close(why);
}

void AgentHub::close_all(const Error& why) {
  stopping_ = why;
  for (auto& [name, entry] : nodes_) drop_session(entry, why);
}

// ---- silence

void AgentHub::heard(NodeEntry& entry) { entry.last_seen = clock_.now(); }

Duration AgentHub::patience_with(const NodeEntry& entry) const {
  return entry.link == NodeLink::kUp ? config_.unreachable_after : config_.node_lost_timeout;
}

void AgentHub::arm(const std::string& node, NodeEntry& entry) {
  ++entry.timer;
  if (entry.link == NodeLink::kDown) return;
  executor_.call_at(entry.last_seen + patience_with(entry),
                    [this, node, timer = entry.timer, alive = std::weak_ptr(alive_)] {
                      if (!alive.expired()) check(node, timer);
                    });
}

void AgentHub::check(const std::string& node, std::uint64_t timer) {
  NodeEntry& entry = nodes_[node];
  if (timer != entry.timer) return;
  const Duration silence = clock_.now() - entry.last_seen;
  const Duration patience = patience_with(entry);
  if (silence >= patience + kStall) {
    // This timer is late: it was the server that stood still. As after a start, the node has all
    // its time anew.
    log_warning("the server stood still for {} ms: node {} is waited for anew",
                (silence - patience).count(), node);
    heard(entry);
    return arm(node, entry);
  }
  NodeLink link = entry.link;
  if (silence >= config_.node_lost_timeout) {
    link = NodeLink::kDown;
  } else if (silence >= config_.unreachable_after) {
    link = NodeLink::kUnreachable;
  }
  if (link != entry.link && link != NodeLink::kUp) {
    log_warning("node {} has been silent for {} s: {}", node, silence.count() / 1000,
                to_string(link));
    entry.link = link;
    // One that comes to life again says first what it still runs.
    drop_session(entry, {ErrorCode::kUnavailable, "the node was silent for too long"});
    tell(node, link);
  }
  arm(node, entry);
}

void AgentHub::tell(const std::string& node, NodeLink link) {
  const auto done = [this, node, link, alive = std::weak_ptr(alive_)](const Result<Reply>& reply) {
    if (reply || reply.error().code == ErrorCode::kNotFound || alive.expired()) return;
    executor_.call_at(clock_.now() + config_.heartbeat_interval, [this, node, link, alive] {
      if (!alive.expired()) tell(node, link);
    });
  };
  const NodeEntry& entry = nodes_[node];
  if (entry.link != link) return;  // It registered meanwhile, or was silent for longer.
  // After a registration under way this would be wrong; one that is refused leaves it to be said.
  if (entry.session != nullptr) return done(Error{ErrorCode::kUnavailable, ""});
  ports_.post(Command{"", NodeLinkCommand{node, link}}, done);
}

NodeContact AgentHub::contact(const std::string& node) const {
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return {};
  return {it->second.last_seen, it->second.registered_at};
}

}  // namespace gpuq::rpc
