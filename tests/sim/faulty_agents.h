#pragma once
// FaultyAgents: the agents of a simulated cluster behind a network that loses, doubles, delays and
// reorders, on nodes that fall silent and die. It keeps what the protocol promises and nothing
// else: what is lost ends its session, a session begins with everything the agent has, nothing of
// an ended session is heard, nothing of an attempt comes after its Forget, and an agent refuses
// orders of an older epoch than it has seen. It watches what really runs. Single thread; owner: a
// FaultyWorld.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/sim/sim_agents.h"
#include "tests/property/random_case.h"
#include "tests/sim/fault_counts.h"

namespace gpuq::sim_test {

class FaultyAgents final : public AgentGateway {
 public:
  struct Ports {
    std::function<void(Command, ReplyFn)> post;     ///< To the live server.
    std::function<const State&()> state;            ///< The live server's.
    std::function<void(Fault, AttemptId)> met;      ///< A fault strikes a message of the attempt.
    std::function<void(const std::string&)> wrong;  ///< Agents did what must never happen.
  };
  using Key = std::pair<AttemptId, std::int32_t>;

  FaultyAgents(const sim::VirtualClock& clock, std::uint64_t seed, Ports ports);

  // As sim::SimAgents has them.
  void add_node(const Node& node);
  void register_all();
  void set_alive(const std::string& name, bool alive);
  [[nodiscard]] bool alive(const std::string& name) const;
  void set_behaviour(JobId job, sim::Behaviour behaviour) { agents_.set_behaviour(job, behaviour); }
  void fail(JobId job, std::int32_t exit_code) { agents_.fail(job, exit_code); }
  void run_due();
  [[nodiscard]] Time next_due() const;

  // Faults.
  /// One message in `rate` is struck; 0: none.
  void set_rate(int rate) { rate_ = rate; }
  void restart_agent(const std::string& name);
  void hang(const std::string& name, Duration length);
  void kill_node(const std::string& name, bool keeps_journal, Duration length);
  /// Everything that is down or silent comes back.
  void heal();
  /// Another server has taken over: what the old one was told is lost, what it sent may arrive.
  void server_restarted();
  /// The server stood still: it waits anew for whoever is silent.
  void server_stood_still();

  // AgentGateway
  void start(const StartOrder& order) override;
  void go(const Fence& fence, NodeId node, std::int32_t instance) override;
  void stop(const StopOrder& order) override;
  void forget(const Fence& fence, NodeId node, std::int32_t instance) override;

 private:
  /// One node's connection. Sessions are numbers that rise; 0 is none.
  struct Link {
    std::uint64_t agent_session = 0;   ///< What the agent takes itself to be in.
    std::uint64_t server_session = 0;  ///< What the server hears.
    std::uint64_t orders_session = 0;  ///< Registered: the server sends orders to it.
    std::int64_t seen_epoch = 0;
    Time back_at = kNever;                   ///< A dead node is up again.
    Time hangs_until{};                      ///< Nothing passes before.
    Time hello_at = kNever;                  ///< The agent connects anew.
    Time silent_since = kNever;              ///< As the server sees it.
    NodeLink told = NodeLink::kUnreachable;  ///< What the engine was told last.
    Time tell_again_at{};                    ///< The engine refused it.
    bool dead = false;
    Time last_order{};
    Time last_report{};
  };
  struct Message {
    std::string node;
    std::uint64_t session = 0;
    bool to_agent = false;
    Key key;
    std::function<void()> deliver;
  };

  void from_agent(Command command, ReplyFn reply);
  void send_report(const std::string& name, Command command);
  void send_hello(const std::string& name, Command command, const ReplyFn& welcome);
  void send_welcome(const std::string& name, std::function<void()> deliver);
  void order(NodeId node, const Fence& fence, std::int32_t instance, bool forgets,
             std::function<void()> deliver);
  void send(Message message, bool in_turn);
  [[nodiscard]] bool strike(Message& message, bool in_turn, Time& at, bool& overtaken);
  void deliver_due();
  void post_report(const std::string& name, std::uint64_t session, const Command& command);
  void begin(const std::string& name, const StartOrder& order);
  void break_session(const std::string& name);
  void connect_later(Link& link);
  void watch_silence(const std::string& name, Link& link);
  void wake(const std::string& name, Link& link);
  [[nodiscard]] Time wakes_at(const Link& link) const;
  [[nodiscard]] static Time silence_due(const Link& link);
  [[nodiscard]] std::string name_of(NodeId node) const;
  void check_devices(const std::string& name);

  const sim::VirtualClock& clock_;
  Ports ports_;
  property::Dice dice_;
  sim::SimAgents agents_;
  int rate_ = 0;
  std::uint64_t last_session_ = 0;
  std::uint64_t sequence_ = 0;
  std::map<std::string, Link> links_;
  std::map<std::pair<Time, std::uint64_t>, Message> messages_;
  std::set<Key> begun_;
  std::set<Key> forgotten_;
  std::map<Key, InstanceUse> uses_;  ///< Of what has begun.
};

}  // namespace gpuq::sim_test
