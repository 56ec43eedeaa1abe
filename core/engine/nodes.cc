// Nodes: registration, link, admin state, and what these do to attempts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "core/engine/node_events.h"
#include "core/engine/policy_change.h"
#include "core/engine/transaction.h"

namespace gpuq {

namespace {

void emit_node(Transaction& tx, const std::string& actor, EventType type, Node node,
               std::string detail) {
  Event event = tx.event(type, actor);
  event.node = node.id;
  event.detail = std::move(detail);
  event.changes.emplace_back(PutNode{std::move(node)});
  tx.emit(std::move(event));
}

// Devices keep their index for good; vanished ones become unusable, new ones are appended.
std::vector<Device> merge_devices(const std::vector<Device>& known,
                                  const std::vector<Device>& seen) {
  std::vector<Device> merged = known;
  for (Device& device : merged) {
    const auto it = std::find_if(seen.begin(), seen.end(),
                                 [&](const Device& d) { return d.uuid == device.uuid; });
    const bool charged = device.charged;
    if (it == seen.end()) {
      device.usable = false;
    } else {
      device = *it;
      device.charged = charged;
    }
  }
  for (const Device& device : seen) {
    const bool is_new = std::none_of(known.begin(), known.end(),
                                     [&](const Device& d) { return d.uuid == device.uuid; });
    if (is_new) merged.push_back(device);
  }
  return merged;
}

// What the report speaks of, if it is an instance that was placed on the node.
const AttemptInstance* instance_on(const State& state, NodeId node,
                                   const ReportedInstance& report) {
  const Attempt* attempt = state.find_attempt(report.attempt);
  const auto i = static_cast<std::size_t>(report.instance);
  if (attempt == nullptr || i >= attempt->instances.size()) return nullptr;
  return attempt->instances[i].use.node == node ? &attempt->instances[i] : nullptr;
}

// Devices of the node that instances of ended attempts may still use, but for the reported one.
std::set<std::int32_t> unconfirmed_devices(const State& state, NodeId node,
                                           const ReportedInstance& report) {
  std::set<std::int32_t> devices;
  for (const auto& [id, attempt] : state.attempts()) {
    if (attempt.live()) continue;
    for (std::size_t i = 0; i < attempt.instances.size(); ++i) {
      const AttemptInstance& instance = attempt.instances[i];
      const bool reported = id == report.attempt && static_cast<std::int32_t>(i) == report.instance;
      if (reported || instance.state == InstanceState::kExited || instance.use.node != node)
        continue;
      for (const DeviceUse& use : instance.use.devices) devices.insert(use.device);
    }
  }
  return devices;
}

// The devices that instances given up still use are charged; nothing else is.
void set_charges(const State& state, Node& node, const std::vector<ReportedInstance>& foreign) {
  for (Device& device : node.devices) device.charged = false;
  for (const ReportedInstance& report : foreign) {
    const AttemptInstance* instance = instance_on(state, node.id, report);
    if (instance == nullptr || report.state == InstanceState::kExited) continue;
    for (const DeviceUse& use : instance->use.devices) {
      node.devices[static_cast<std::size_t>(use.device)].charged = true;
    }
  }
}

// What an agent says of instances given up is all that is true of them: those that it does not know
// have ended.
std::vector<Change> settle_given_up(const State& state, NodeId node,
                                    const std::vector<ReportedInstance>& foreign) {
  std::map<std::pair<AttemptId, std::int32_t>, InstanceState> told;
  for (const ReportedInstance& report : foreign) {
    told[{report.attempt, report.instance}] = report.state;
  }
  std::vector<Change> changes;
  for (const auto& [id, known] : state.attempts()) {
    if (known.live()) continue;
    // Nearly all are as they were: nothing is copied for them.
    std::optional<Attempt> changed;
    for (std::size_t i = 0; i < known.instances.size(); ++i) {
      if (known.instances[i].use.node != node) continue;
      const auto found = told.find({id, static_cast<std::int32_t>(i)});
      const InstanceState now = found == told.end() ? InstanceState::kExited : found->second;
      if (known.instances[i].state == now) continue;
      if (!changed) changed = known;
      changed->instances[i].state = now;
    }
    if (changed) changes.emplace_back(PutAttempt{std::move(*changed)});
  }
  return changes;
}

// Two agents on one machine would offer its devices twice. A device may move: from a node that is
// DOWN, or that has lost it.
Result<void> check_devices_elsewhere(const State& state, const Node& node,
                                     const std::set<std::string>& uuids) {
  for (const Node& other : state.nodes()) {
    if (other.name == node.name || other.link == NodeLink::kDown) continue;
    for (const Device& device : other.devices) {
      if (!device.usable || !uuids.contains(device.uuid)) continue;
      return Error{
          ErrorCode::kAlreadyExists,
          fmt::format("device {} of node {} is a device of node {} already, which is {}: run "
                      "one agent on a machine",
                      device.uuid, quote(node.name), other.name, to_string(other.link))};
    }
  }
  return {};
}

Result<void> check_registration(const State& state, const RegisterNodeCommand& command) {
  const StoreIdentity& own = state.identity();
  if (command.highest_store_id == own.store_id && command.highest_epoch_seen > own.epoch) {
    return Error{ErrorCode::kFailedPrecondition,
                 fmt::format("node {} has seen epoch {} of this store, which is at {}: an older "
                             "copy of the database was restored",
                             quote(command.node.name), command.highest_epoch_seen, own.epoch)};
  }
  if (!is_object_name(command.node.name)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("node name {} is not 1 to 128 of [A-Za-z0-9._-]", quote(command.node.name))};
  }
  std::set<std::string> uuids;
  for (const Device& device : command.node.devices) {
    if (device.uuid.empty() || !uuids.insert(device.uuid).second) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("node {} reports device {} twice or without UUID",
                               quote(command.node.name), quote(device.uuid))};
    }
  }
  return check_devices_elsewhere(state, command.node, uuids);
}

// What the server thinks runs there but the agent does not know of: sent again while it can not
// have begun, lost otherwise.
void settle_unreported(Transaction& tx, const std::string& actor, NodeId node,
                       const std::set<std::pair<AttemptId, std::int32_t>>& reported,
                       bool same_state_dir) {
  std::vector<AttemptId> lost;
  for (const AttemptId id : tx.state().live_attempts()) {
    const Attempt& attempt = tx.state().attempt(id);
    for (std::size_t i = 0; i < attempt.instances.size(); ++i) {
      const AttemptInstance& instance = attempt.instances[i];
      const auto n = static_cast<std::int32_t>(i);
      if (instance.use.node != node || instance.state == InstanceState::kExited) continue;
      if (reported.contains({id, n})) continue;
      const bool never_begun = instance.state == InstanceState::kSent && same_state_dir;
      if (never_begun && !attempt.stopping()) {
        send_start(tx, attempt, n);
      } else {
        lost.push_back(id);
        break;
      }
    }
  }
  for (const AttemptId id : lost) {
    std::set<std::int32_t> there;
    for (const auto& [attempt, instance] : reported) {
      if (attempt == id) there.insert(instance);
    }
    lose_instances(tx, actor, id, node, "Lost: the node's agent does not know the attempt any more",
                   there);
  }
}

void resend_orders(Transaction& tx, AttemptId id, std::int32_t instance) {
  const Attempt* attempt = tx.state().find_attempt(id);
  if (attempt == nullptr || !attempt->live()) return;
  const AttemptInstance& at = attempt->instances[static_cast<std::size_t>(instance)];
  if (at.state == InstanceState::kExited) return;
  if (attempt->stopping()) {
    StopOrder order{tx.fence(id), at.use.node, instance, attempt->stop, attempt->grace};
    tx.effect([order](AgentGateway& gateway) { gateway.stop(order); });
    return;
  }
  const bool all_prepared =
      std::all_of(attempt->instances.begin(), attempt->instances.end(),
                  [](const AttemptInstance& i) { return i.state >= InstanceState::kPrepared; });
  if (at.state == InstanceState::kPrepared && all_prepared) {
    const Fence fence = tx.fence(id);
    tx.effect([fence, node = at.use.node, instance](AgentGateway& gateway) {
      gateway.go(fence, node, instance);
    });
  }
}

// Reported instances that are of no live attempt of the node.
std::vector<ReportedInstance> foreign_of(const State& state, const RegisterNodeCommand& command,
                                         NodeId id) {
  std::vector<ReportedInstance> foreign;
  for (const ReportedInstance& report : command.instances) {
    if (!is_ours(state, id, report)) foreign.push_back(report);
  }
  return foreign;
}

Node merged_node(const State& state, const RegisterNodeCommand& command, const Node* known,
                 NodeId id, const std::vector<ReportedInstance>& foreign) {
  Node node = command.node;
  node.id = id;
  node.link = NodeLink::kUp;
  node.admin = known != nullptr ? known->admin : NodeAdmin::kOpen;
  if (known != nullptr) node.devices = merge_devices(known->devices, command.node.devices);
  set_charges(state, node, foreign);
  return node;
}

std::vector<AttemptId> attempts_on(const State& state, NodeId node) {
  std::vector<AttemptId> found;
  for (const AttemptId attempt : state.live_attempts()) {
    const auto& instances = state.attempt(attempt).instances;
    const bool here = std::any_of(instances.begin(), instances.end(),
                                  [&](const AttemptInstance& i) { return i.use.node == node; });
    if (here) found.push_back(attempt);
  }
  return found;
}

}  // namespace

Result<Reply> handle(Transaction& tx, const std::string& actor,
                     const RegisterNodeCommand& command) {
  State& state = tx.state();
  if (auto checked = check_registration(state, command); !checked) return checked.error();
  const Node* known = state.find_node(command.node.name);
  const NodeId id = known != nullptr ? known->id : NodeId(state.mutable_counters().next_node++);
  const bool same_state_dir = known != nullptr && known->state_dir_id == command.node.state_dir_id;
  const std::vector<ReportedInstance> foreign = foreign_of(state, command, id);
  Node node = merged_node(state, command, known, id, foreign);
  Event event = tx.event(EventType::kNodeRegistered, actor);
  event.node = id;
  event.changes = settle_given_up(state, id, foreign);
  if (state.policy().builtin) {
    std::vector<Node> nodes = state.nodes();
    std::erase_if(nodes, [&](const Node& n) { return n.id == id; });
    nodes.push_back(node);
    PolicyTables tables = builtin_policy(state.policy(), nodes);
    if (tables != state.policy()) event.changes.emplace_back(PutPolicy{std::move(tables)});
  }
  node.env = environment_for(state.policy(), node);
  event.detail =
      fmt::format("node {}: {} devices, {} CPUs", node.name, node.devices.size(), node.cpus);
  if (known == nullptr || *known != node || !event.changes.empty()) {
    event.changes.emplace_back(PutNode{node});
    tx.emit(std::move(event));
  }
  Reply reply;
  reply.node = id;
  std::set<std::pair<AttemptId, std::int32_t>> reported;
  for (const ReportedInstance& report : command.instances) {
    reported.insert({report.attempt, report.instance});
    if (is_ours(tx.state(), id, report)) {
      apply_report(tx, actor, report, StopCause::kNone);
      resend_orders(tx, report.attempt, report.instance);
    } else if (report.state == InstanceState::kExited) {
      reply.forget.emplace_back(report.attempt, report.instance);
    } else {
      reply.fenced_off.emplace_back(report.attempt, report.instance);
    }
  }
  settle_unreported(tx, actor, id, reported, same_state_dir);
  return reply;
}

Result<Reply> handle(Transaction& tx, const std::string& actor, const NodeLinkCommand& command) {
  const Node* known = tx.state().find_node(command.node);
  if (known == nullptr) {
    return Error{ErrorCode::kNotFound, fmt::format("node {} does not exist", quote(command.node))};
  }
  if (known->link == command.link) return Reply{};
  // Only a registration brings a node back UP from DOWN; silence never improves a link.
  if (known->link == NodeLink::kDown && command.link == NodeLink::kUnreachable) return Reply{};
  Node node = *known;
  node.link = command.link;
  const NodeId id = node.id;
  const std::string detail =
      fmt::format("node {}: {} -> {}", node.name, to_string(known->link), to_string(command.link));
  emit_node(tx, actor, EventType::kNodeChanged, std::move(node), detail);
  if (command.link != NodeLink::kDown) return Reply{};
  for (const AttemptId attempt : attempts_on(tx.state(), id)) {
    lose_instances(tx, actor, attempt, id, fmt::format("Lost: node {} is DOWN", command.node));
  }
  return Reply{};
}

Result<Reply> handle(Transaction& tx, const std::string& actor, const NodeHealthCommand& command) {
  const Node* known = tx.state().find_node(command.node);
  if (known == nullptr) {
    return Error{ErrorCode::kNotFound, fmt::format("node {} does not exist", quote(command.node))};
  }
  if (known->healthy == command.healthy && known->health_reason == command.reason) return Reply{};
  Node node = *known;
  node.healthy = command.healthy;
  node.health_reason = command.reason;
  const std::string detail =
      command.healthy ? fmt::format("node {}: healthy again", node.name)
                      : fmt::format("node {}: not healthy: {}", node.name, command.reason);
  emit_node(tx, actor, EventType::kNodeChanged, std::move(node), detail);
  return Reply{};
}

Result<Reply> handle(Transaction& tx, const std::string& actor,
                     const SetNodeAdminCommand& command) {
  const Node* known = tx.state().find_node(command.node);
  if (known == nullptr) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("node {} does not exist; see `gpuq node ls`", quote(command.node))};
  }
  if (known->admin == command.admin) return Reply{};
  Node node = *known;
  node.admin = command.admin;
  const std::string detail = fmt::format("node {}: {} -> {}", node.name, to_string(known->admin),
                                         to_string(command.admin));
  const NodeId id = node.id;
  emit_node(tx, actor, EventType::kNodeChanged, std::move(node), detail);
  if (command.admin != NodeAdmin::kDraining) return Reply{};
  for (const AttemptId attempt : attempts_on(tx.state(), id)) {
    if (tx.state().attempt(attempt).stopping()) continue;
    const Duration grace = grace_of(tx.state(), tx.state().job(tx.state().attempt(attempt).job));
    stop_attempt(tx, actor, attempt, StopCause::kNodeDrain, grace, detail);
  }
  return Reply{};
}

void lose_instances(Transaction& tx, const std::string& actor, AttemptId id, NodeId node,
                    const std::string& reason, const std::set<std::int32_t>& there) {
  const Attempt* live = tx.state().find_attempt(id);
  if (live == nullptr || !live->live()) return;
  Attempt attempt = *live;
  attempt.lost_to_node = true;
  attempt.status_reason = reason;
  bool others = false;
  for (std::size_t i = 0; i < attempt.instances.size(); ++i) {
    AttemptInstance& instance = attempt.instances[i];
    const bool gone = instance.use.node == node && !there.contains(static_cast<std::int32_t>(i));
    if (gone) instance.state = InstanceState::kExited;
    others = others || instance.state != InstanceState::kExited;
  }
  if (!others) {
    end_attempt_as(tx, actor, std::move(attempt), {AttemptOutcome::kLost, -1, true, reason});
    return;
  }
  const Duration grace = grace_of(tx.state(), tx.state().job(attempt.job));
  stop_attempt_as(tx, actor, std::move(attempt), StopCause::kGangMember, grace, reason, {});
}

void release_charges(Transaction& tx, const std::string& actor, NodeId id,
                     const ReportedInstance& report) {
  const AttemptInstance* instance = instance_on(tx.state(), id, report);
  if (instance == nullptr) return;
  const std::set<std::int32_t> in_use = unconfirmed_devices(tx.state(), id, report);
  Event event = tx.event(EventType::kNodeChanged, actor);
  event.node = id;
  event.detail = fmt::format("instance {} of attempt {} is confirmed gone", report.instance,
                             report.attempt.value);
  Node node = tx.state().node(id);
  for (const DeviceUse& use : instance->use.devices) {
    if (!in_use.contains(use.device)) {
      node.devices[static_cast<std::size_t>(use.device)].charged = false;
    }
  }
  if (node != tx.state().node(id)) event.changes.emplace_back(PutNode{std::move(node)});
  if (instance->state != InstanceState::kExited) {
    Attempt attempt = tx.state().attempt(report.attempt);
    attempt.instances[static_cast<std::size_t>(report.instance)].state = InstanceState::kExited;
    event.changes.emplace_back(PutAttempt{std::move(attempt)});
  }
  if (!event.changes.empty()) tx.emit(std::move(event));
}

void charge_devices(Transaction& tx, const std::string& actor, const Attempt& attempt) {
  for (const AttemptInstance& instance : attempt.instances) {
    const bool confirmed = instance.state == InstanceState::kExited;
    if (confirmed || instance.use.devices.empty()) continue;
    Node node = tx.state().node(instance.use.node);
    for (const DeviceUse& use : instance.use.devices) {
      node.devices[static_cast<std::size_t>(use.device)].charged = true;
    }
    emit_node(tx, actor, EventType::kNodeChanged, std::move(node),
              fmt::format("devices of attempt {} wait for its confirmed end", attempt.id.value));
  }
}

}  // namespace gpuq
