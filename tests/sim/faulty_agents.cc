#include "tests/sim/faulty_agents.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <variant>

namespace gpuq::sim_test {

namespace {

// As the server has them (server/rpc/agent_hub.h).
constexpr Duration kUnreachableAfter{30'000};
constexpr Duration kLostAfter{300'000};
constexpr Duration kTellAgain{1'000};
constexpr std::string_view kActor = "agent:";

}  // namespace

FaultyAgents::FaultyAgents(const sim::VirtualClock& clock, std::uint64_t seed, Ports ports)
    : clock_(clock),
      ports_(std::move(ports)),
      dice_(seed),
      agents_(clock, [this](Command command, ReplyFn reply) {
        from_agent(std::move(command), std::move(reply));
      }) {}

void FaultyAgents::add_node(const Node& node) {
  links_[node.name];
  agents_.add_node(node);
}

void FaultyAgents::register_all() {
  for (auto& [name, link] : links_) {
    if (!link.dead) agents_.register_node(name);
  }
}

void FaultyAgents::set_alive(const std::string& name, bool alive) {
  if (!alive) return kill_node(name, true, kNever - clock_.now());
  links_.at(name).back_at = clock_.now();
}

bool FaultyAgents::alive(const std::string& name) const { return !links_.at(name).dead; }

// ---- time

Time FaultyAgents::silence_due(const Link& link) {
  if (link.silent_since == kNever || link.told == NodeLink::kDown) return kNever;
  const Duration patience = link.told == NodeLink::kUp ? kUnreachableAfter : kLostAfter;
  return std::max(link.silent_since + patience, link.tell_again_at);
}

Time FaultyAgents::wakes_at(const Link& link) const {
  if (link.dead) return link.back_at;
  if (link.hangs_until > clock_.now()) return link.hangs_until;
  return link.hangs_until != Time{} ? clock_.now() : link.hello_at;
}

Time FaultyAgents::next_due() const {
  Time next = agents_.next_due();
  if (!messages_.empty()) next = std::min(next, messages_.begin()->first.first);
  for (const auto& [name, link] : links_) {
    next = std::min({next, wakes_at(link), silence_due(link)});
  }
  return next;
}

void FaultyAgents::run_due() {
  agents_.run_due();
  deliver_due();
  for (auto& [name, link] : links_) {
    if (wakes_at(link) <= clock_.now()) wake(name, link);
    if (silence_due(link) <= clock_.now()) watch_silence(name, link);
  }
}

// The end of a death, of a silence, or of the wait before the next try to connect.
void FaultyAgents::wake(const std::string& name, Link& link) {
  if (link.dead) {
    link.dead = false;
    link.back_at = kNever;
    link.hello_at = clock_.now();
    return;
  }
  if (link.hangs_until != Time{}) {
    link.hangs_until = Time{};
    const bool same = link.agent_session != 0 && link.agent_session == link.server_session;
    if (same) link.silent_since = kNever;
    if (!same) connect_later(link);
    return;
  }
  link.hello_at = kNever;
  agents_.register_node(name);
}

void FaultyAgents::watch_silence(const std::string& name, Link& link) {
  const NodeLink before = link.told;
  link.told = before == NodeLink::kUp ? NodeLink::kUnreachable : NodeLink::kDown;
  link.server_session = link.orders_session = 0;
  ports_.post({"", NodeLinkCommand{name, link.told}},
              [this, &link, before](const Result<Reply>& reply) {
                if (reply || link.silent_since == kNever) return;
                link.told = before;
                link.tell_again_at = clock_.now() + kTellAgain;
              });
}

// ---- faults of nodes, agents and the server

void FaultyAgents::break_session(const std::string& name) {
  Link& link = links_.at(name);
  link.agent_session = link.server_session = link.orders_session = 0;
  link.silent_since = std::min(link.silent_since, clock_.now());
  connect_later(link);
}

void FaultyAgents::connect_later(Link& link) {
  if (link.dead) return;
  link.hello_at = std::min(link.hello_at, clock_.now() + Duration(dice_.between(1'000, 5'000)));
}

void FaultyAgents::restart_agent(const std::string& name) {
  if (!links_.at(name).dead) break_session(name);
}

void FaultyAgents::hang(const std::string& name, Duration length) {
  Link& link = links_.at(name);
  if (link.dead) return;
  link.hangs_until = std::max(link.hangs_until, clock_.now() + length);
  link.silent_since = std::min(link.silent_since, clock_.now());
}

void FaultyAgents::kill_node(const std::string& name, bool keeps_journal, Duration length) {
  Link& link = links_.at(name);
  if (!link.dead) {
    break_session(name);
    agents_.reboot(name, keeps_journal);
  }
  if (!keeps_journal) link.seen_epoch = 0;
  link.dead = true;
  link.hello_at = kNever;
  link.hangs_until = Time{};
  link.back_at = clock_.now() + length;
}

void FaultyAgents::heal() {
  rate_ = 0;
  for (auto& [name, link] : links_) {
    if (link.dead) link.back_at = clock_.now();
    if (link.hangs_until != Time{}) link.hangs_until = clock_.now();
  }
}

void FaultyAgents::server_restarted() {
  for (auto& [name, link] : links_) {
    link.server_session = link.orders_session = 0;
    link.tell_again_at = Time{};
    connect_later(link);
    const Node* known = ports_.state().find_node(name);
    link.told = known == nullptr ? NodeLink::kDown : known->link;
    link.silent_since = clock_.now();
  }
}

void FaultyAgents::server_stood_still() {
  for (auto& [name, link] : links_) {
    if (link.silent_since != kNever) link.silent_since = clock_.now();
  }
}

// ---- messages

void FaultyAgents::from_agent(Command command, ReplyFn reply) {
  const std::string name = command.actor.substr(kActor.size());
  if (std::holds_alternative<ReportCommand>(command.body)) {
    send_report(name, std::move(command));
  } else if (std::holds_alternative<RegisterNodeCommand>(command.body)) {
    send_hello(name, std::move(command), reply);
  }
}

void FaultyAgents::send_report(const std::string& name, Command command) {
  Link& link = links_.at(name);
  const std::uint64_t session = link.agent_session;
  if (session == 0) return;  // The next Hello says it.
  const auto& report = std::get<ReportCommand>(command.body).report;
  const Key key{report.attempt, report.instance};
  send({name, session, false, key,
        [this, name, session, command = std::move(command)] {
          post_report(name, session, command);
        }},
       false);
}

void FaultyAgents::post_report(const std::string& name, std::uint64_t session,
                               const Command& command) {
  ports_.post(command, [this, name, session](const Result<Reply>& reply) {
    if (!reply && links_.at(name).server_session == session) break_session(name);
  });
}

void FaultyAgents::send_hello(const std::string& name, Command command, const ReplyFn& welcome) {
  Link& link = links_.at(name);
  const std::uint64_t session = link.agent_session = ++last_session_;
  const auto answered = [this, name, session, welcome](Result<Reply> reply) {
    Link& at = links_.at(name);
    if (at.server_session != session) return;
    if (!reply) return break_session(name);
    at.orders_session = session;
    at.told = NodeLink::kUp;
    const std::int64_t epoch = ports_.state().identity().epoch;
    send({name,
          session,
          true,
          {},
          [this, name, welcome, epoch, reply = std::move(reply)] {
            links_.at(name).seen_epoch = epoch;
            welcome(reply);
          }},
         true);
  };
  send({name,
        session,
        false,
        {},
        [this, name, session, answered, command = std::move(command)] {
          Link& at = links_.at(name);
          at.server_session = session;
          at.silent_since = at.hangs_until == Time{} ? kNever : at.silent_since;
          ports_.post(command, answered);
        }},
       true);
}

void FaultyAgents::order(NodeId node, const Fence& fence, std::int32_t instance, bool forgets,
                         std::function<void()> deliver) {
  const std::string name = name_of(node);
  const auto found = links_.find(name);
  if (found == links_.end() || found->second.orders_session == 0) return;
  const Key key{fence.attempt, instance};
  const auto obey = [this, name, key, epoch = fence.epoch, forgets, deliver = std::move(deliver)] {
    Link& link = links_.at(name);
    if (epoch < link.seen_epoch || forgotten_.contains(key)) return;
    link.seen_epoch = epoch;
    if (epoch < ports_.state().identity().epoch) ports_.met(Fault::kOrderStale, key.first);
    deliver();
    if (forgets && !agents_.knows(key.first, key.second)) forgotten_.insert(key);
  };
  send({name, found->second.orders_session, true, key, obey}, forgets);
}

// In order, but for what is overtaken; `in_turn`: must not be doubled or overtaken.
void FaultyAgents::send(Message message, bool in_turn) {
  Link& link = links_.at(message.node);
  Time& last = message.to_agent ? link.last_order : link.last_report;
  Time at = std::max(last, clock_.now() + Duration(rate_ == 0 ? 0 : dice_.roll(3)));
  bool overtaken = false;
  if (rate_ != 0 && dice_.one_in(rate_) && !strike(message, in_turn, at, overtaken)) return;
  if (!overtaken) last = at;
  messages_.emplace(std::pair(at, sequence_++), std::move(message));
}

// False: the message is lost, and its session with it.
bool FaultyAgents::strike(Message& message, bool in_turn, Time& at, bool& overtaken) {
  const bool order = message.to_agent;
  const Duration delay{dice_.between(1, 20'000)};
  const AttemptId attempt = message.key.first;
  switch (dice_.roll(in_turn ? 2 : 4)) {
    case 0:
      ports_.met(order ? Fault::kOrderLost : Fault::kReportLost, attempt);
      break_session(message.node);
      return false;
    case 1:
      ports_.met(order ? Fault::kOrderLate : Fault::kReportLate, attempt);
      at += delay;
      return true;
    case 2:
      ports_.met(order ? Fault::kOrderDoubled : Fault::kReportDoubled, attempt);
      messages_.emplace(std::pair(at + delay, sequence_++), message);
      return true;
    default:
      ports_.met(order ? Fault::kOrderOvertaken : Fault::kReportOvertaken, attempt);
      at += delay;
      overtaken = true;
      return true;
  }
}

void FaultyAgents::deliver_due() {
  while (!messages_.empty() && messages_.begin()->first.first <= clock_.now()) {
    const Message message = std::move(messages_.begin()->second);
    messages_.erase(messages_.begin());
    const Link& link = links_.at(message.node);
    if (link.hangs_until > clock_.now()) {
      messages_.emplace(std::pair(link.hangs_until, sequence_++), message);
      continue;
    }
    const bool hello = !message.to_agent && !message.key.first.valid();
    const bool heard = message.to_agent ? link.agent_session == message.session
                       : hello          ? link.agent_session == message.session
                                        : link.server_session == message.session;
    if (heard) message.deliver();
  }
}

// ---- orders

std::string FaultyAgents::name_of(NodeId node) const {
  const Node* found = ports_.state().find_node(node);
  return found == nullptr ? std::string() : found->name;
}

void FaultyAgents::start(const StartOrder& order) {
  this->order(order.node, order.fence, order.instance, false,
              [this, name = name_of(order.node), order] { begin(name, order); });
}

void FaultyAgents::go(const Fence& fence, NodeId node, std::int32_t instance) {
  order(node, fence, instance, false,
        [this, fence, node, instance] { agents_.go(fence, node, instance); });
}

void FaultyAgents::stop(const StopOrder& order) {
  this->order(order.node, order.fence, order.instance, false,
              [this, order] { agents_.stop(order); });
}

void FaultyAgents::forget(const Fence& fence, NodeId node, std::int32_t instance) {
  order(node, fence, instance, true,
        [this, fence, node, instance] { agents_.forget(fence, node, instance); });
}

void FaultyAgents::begin(const std::string& name, const StartOrder& order) {
  const Key key{order.fence.attempt, order.instance};
  if (agents_.knows(key.first, key.second)) return;  // A repeat.
  if (rate_ != 0 && dice_.one_in(rate_)) {
    ports_.met(Fault::kStartRefused, key.first);
    return agents_.refuse(order);
  }
  if (!begun_.insert(key).second) {
    ports_.wrong(fmt::format("attempt {} is started a second time", key.first.value));
  }
  uses_[key] = order.attempt.instances.at(static_cast<std::size_t>(order.instance)).use;
  agents_.start(order);
  check_devices(name);
}

// What runs on a node at one time fits its devices.
void FaultyAgents::check_devices(const std::string& name) {
  std::map<std::int32_t, std::int32_t> used;
  for (const Key& key : agents_.unfinished(name)) {
    const auto found = uses_.find(key);
    if (found == uses_.end()) continue;
    for (const DeviceUse& device : found->second.devices) {
      if ((used[device.device] += device.milli) <= 1000) continue;
      ports_.wrong(fmt::format("attempt {} uses device {} of {} beside others", key.first.value,
                               device.device, name));
    }
  }
}

}  // namespace gpuq::sim_test
