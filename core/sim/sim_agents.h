#pragma once
// SimAgents: every node's agent in virtual time, behind the AgentGateway port. Runs what it is told
// to start, ends it when its time is up, obeys stops, survives the server. Single thread; owner:
// the scenario runner.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/sim/virtual_time.h"

namespace gpuq::sim {

/// As a run time: until it is stopped.
inline constexpr Duration kForever = Duration::max();

/// How the attempts of one job behave.
struct Behaviour {
  Duration runtime{0};
  Duration start_delay{0};
  std::optional<Duration> checkpoint;
};

class SimAgents final : public AgentGateway {
 public:
  using PostFn = std::function<void(Command, ReplyFn)>;

  SimAgents(const VirtualClock& clock, PostFn post) : clock_(clock), post_(std::move(post)) {}

  /// A node with its agent; not registered yet.
  void add_node(Node node);
  /// Posts the registration of every live node with what runs there.
  void register_all();
  void register_node(const std::string& name);
  /// F1: the agents of a state that goes on in virtual time, as if all had registered. What runs on
  /// a node that is not UP is not heard of any more. `end_of` says when the running instances of an
  /// attempt end by themselves; kNever: they do not.
  void adopt(const State& state, const std::function<Time(const Attempt&)>& end_of);
  /// The node dies with everything on it, or comes back empty.
  void set_alive(const std::string& name, bool alive);
  /// The node's processes are gone and nobody saw them end; the agent's journal says so, unless it
  /// is gone too. Registers nothing.
  void reboot(const std::string& name, bool keeps_journal);
  [[nodiscard]] bool alive(const std::string& name) const { return alive_.at(name); }
  /// What the next attempts of `job` do.
  void set_behaviour(JobId job, Behaviour behaviour) { behaviour_[job] = behaviour; }
  /// Ends the running instances of `job` with `exit_code`, now.
  void fail(JobId job, std::int32_t exit_code);
  /// Posts what is due at the clock's time: starts that complete, planned ends, graces that run
  /// out.
  void run_due();
  [[nodiscard]] Time next_due() const;
  /// Whether the node's agent has a record of the instance.
  [[nodiscard]] bool knows(AttemptId attempt, std::int32_t instance) const {
    return running_.contains({attempt, instance});
  }
  /// Instances on the node that have not ended.
  [[nodiscard]] std::set<std::pair<AttemptId, std::int32_t>> unfinished(
      const std::string& name) const;
  /// Work of an attempt that was preempted which its job has to do again.
  [[nodiscard]] Duration repeated(AttemptId attempt) const;
  /// The agent can not start what it is told to, and says so.
  void refuse(const StartOrder& order);

  void start(const StartOrder& order) override;
  void go(const Fence& fence, NodeId node, std::int32_t instance) override;
  void stop(const StopOrder& order) override;
  void forget(const Fence& fence, NodeId node, std::int32_t instance) override;

 private:
  using Key = std::pair<AttemptId, std::int32_t>;
  struct Running {
    std::string node;
    JobId job;
    bool gang = false;
    InstanceState state = InstanceState::kStarting;
    Time ready_at = kNever;  ///< End of STARTING.
    Time running_at = kNever;
    Time planned_end = kNever;
    std::optional<Duration> timeout;
    Time timeout_at = kNever;
    Time kill_at = kNever;  ///< End of the grace of a stop under way.
    Duration grace{0};
    bool signalled = false;
    StopCause cause = StopCause::kNone;
    bool start_failed = false;
    std::int32_t exit_code = -1;  ///< -1: nobody saw it.
  };

  void adopt(const State& state, const Attempt& attempt, std::int32_t instance, Time end);
  [[nodiscard]] static ReportedInstance reported(const Key& key, const Running& run);
  void report(const Key& key, const Running& run);
  void run(const Key& key, Running& run);
  void exit(const Key& key, Running& run, std::int32_t code);
  void advance(const Key& key, Running& run);
  [[nodiscard]] static Time due(const Running& run);
  void plan(const Key& key, const Running& run);
  [[nodiscard]] std::string name_of(NodeId node) const;

  const VirtualClock& clock_;
  PostFn post_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, bool> alive_;
  std::map<std::string, std::string> state_dirs_;
  std::map<JobId, Behaviour> behaviour_;
  std::map<JobId, Duration> progress_;      ///< Work kept by checkpoints.
  std::map<AttemptId, Duration> repeated_;  ///< Of preempted attempts.
  std::map<Key, Running> running_;          ///< Exited ones stay until forgotten.
  std::map<NodeId, std::string> names_;
  /// When something is due of whom. What has changed since is left in and found out when its time
  /// comes to the front.
  mutable std::set<std::pair<Time, Key>> agenda_;
};

}  // namespace gpuq::sim
