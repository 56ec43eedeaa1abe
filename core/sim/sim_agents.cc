#include "core/sim/sim_agents.h"

#include <algorithm>
#include <tuple>

#include "core/base/check.h"

namespace gpuq::sim {

namespace {

constexpr std::int32_t kTerminatedBySignal = 128 + 15;

}  // namespace

void SimAgents::add_node(Node node) {
  alive_[node.name] = true;
  state_dirs_[node.name] = node.name;
  const std::string name = node.name;
  nodes_[name] = std::move(node);
}

void SimAgents::register_all() {
  for (const auto& [name, alive] : alive_) {
    if (alive) register_node(name);
  }
}

void SimAgents::register_node(const std::string& name) {
  RegisterNodeCommand command;
  command.node = nodes_.at(name);
  command.node.state_dir_id = state_dirs_.at(name);
  for (const auto& [key, run] : running_) {
    if (run.node == name) command.instances.push_back(reported(key, run));
  }
  post_({"agent:" + name, std::move(command)}, [this, name](Result<Reply> reply) {
    if (!reply) return;
    nodes_.at(name).id = reply->node;
    names_[reply->node] = name;
    for (const Key& key : reply->forget) running_.erase(key);
    for (const Key& key : reply->fenced_off) {
      const auto it = running_.find(key);
      if (it == running_.end()) continue;
      it->second.signalled = true;
      exit(key, it->second, kTerminatedBySignal);
    }
  });
}

void SimAgents::adopt(const State& state, const std::function<Time(const Attempt&)>& end_of) {
  for (const Node& node : state.nodes()) {
    alive_[node.name] = node.link == NodeLink::kUp;
    state_dirs_[node.name] = node.state_dir_id;
    names_[node.id] = node.name;
    nodes_[node.name] = node;
  }
  for (const AttemptId id : state.live_attempts()) {
    const Attempt& attempt = state.attempt(id);
    const Time end = end_of(attempt);
    for (std::size_t i = 0; i < attempt.instances.size(); ++i) {
      adopt(state, attempt, static_cast<std::int32_t>(i), end);
    }
  }
}

void SimAgents::adopt(const State& state, const Attempt& attempt, std::int32_t instance, Time end) {
  const AttemptInstance& known = attempt.instances[static_cast<std::size_t>(instance)];
  const std::string name = name_of(known.use.node);
  if (known.state == InstanceState::kExited || !alive_.at(name)) return;
  const Job& job = state.job(attempt.job);
  const bool all_prepared = std::ranges::all_of(attempt.instances, [](const AttemptInstance& i) {
    return i.state >= InstanceState::kPrepared;
  });
  const Key key{attempt.id, instance};
  Running& run = running_[key];
  run.node = name;
  run.job = job.id;
  run.gang = attempt.instances.size() > 1 && !all_prepared;
  run.timeout = state.job_class(job.cls).timeout;
  run.grace = grace_of(state, job);
  run.state = known.state;
  const bool waits_for_others = known.state == InstanceState::kPrepared && !all_prepared;
  if (known.state == InstanceState::kRunning) {
    run.running_at = std::min(attempt.running_at, clock_.now());
    run.planned_end = end;
    if (run.timeout) run.timeout_at = std::max(clock_.now(), run.running_at + *run.timeout);
  } else if (!waits_for_others) {
    // Prepared ones with an open barrier too: the word to go is on its way.
    run.state = InstanceState::kStarting;
    run.ready_at = clock_.now();
  }
  if (attempt.stopping()) {
    const bool runs = run.state == InstanceState::kRunning;
    run.signalled = true;
    run.cause = attempt.stop;
    run.kill_at = runs ? std::max(clock_.now(), attempt.stop_at + attempt.grace) : clock_.now();
  }
  plan(key, run);
}

void SimAgents::set_alive(const std::string& name, bool alive) {
  alive_.at(name) = alive;
  if (!alive) {
    std::erase_if(running_, [&](const auto& entry) { return entry.second.node == name; });
    post_({"agent:" + name, NodeLinkCommand{name, NodeLink::kDown}}, [](const Result<Reply>&) {});
  } else {
    register_node(name);
  }
}

void SimAgents::reboot(const std::string& name, bool keeps_journal) {
  if (!keeps_journal) {
    std::erase_if(running_, [&](const auto& entry) { return entry.second.node == name; });
    state_dirs_.at(name) += "'";
    return;
  }
  for (auto& [key, run] : running_) {
    if (run.node == name) run.state = InstanceState::kExited;
  }
}

std::set<std::pair<AttemptId, std::int32_t>> SimAgents::unfinished(const std::string& name) const {
  std::set<Key> keys;
  for (const auto& [key, run] : running_) {
    if (run.node == name && run.state != InstanceState::kExited) keys.insert(key);
  }
  return keys;
}

std::string SimAgents::name_of(NodeId node) const {
  const auto it = names_.find(node);
  return it == names_.end() ? std::string() : it->second;
}

void SimAgents::start(const StartOrder& order) {
  const Key key{order.fence.attempt, order.instance};
  if (running_.contains(key)) return;  // A repeat.
  const std::string name = name_of(order.node);
  if (name.empty() || !alive_.at(name)) return;
  const Behaviour behaviour = behaviour_[order.job.id];
  Running run;
  run.node = name;
  run.job = order.job.id;
  run.gang = !order.run_at_once;
  run.ready_at = clock_.now() + behaviour.start_delay;
  run.timeout = order.cls.timeout;
  run.grace = order.grace;
  Running& placed = running_[key] = run;
  if (placed.ready_at > clock_.now()) {
    plan(key, placed);
    report(key, placed);
  } else {
    advance(key, placed);
  }
}

void SimAgents::refuse(const StartOrder& order) {
  const Key key{order.fence.attempt, order.instance};
  if (running_.contains(key)) return;
  Running refused;
  refused.node = name_of(order.node);
  refused.job = order.job.id;
  refused.state = InstanceState::kExited;
  refused.start_failed = true;
  report(key, running_[key] = refused);
}

void SimAgents::go(const Fence& fence, NodeId, std::int32_t instance) {
  const auto it = running_.find({fence.attempt, instance});
  if (it != running_.end() && it->second.state == InstanceState::kPrepared) {
    run(it->first, it->second);
  }
}

void SimAgents::run(const Key& key, Running& run) {
  const Behaviour& behaviour = behaviour_[run.job];
  run.state = InstanceState::kRunning;
  run.running_at = clock_.now();
  run.ready_at = kNever;
  run.planned_end =
      behaviour.runtime == kForever
          ? kNever
          : clock_.now() + std::max(Duration(0), behaviour.runtime - progress_[run.job]);
  if (run.timeout) run.timeout_at = clock_.now() + *run.timeout;
  plan(key, run);
  report(key, run);
}

void SimAgents::stop(const StopOrder& order) {
  const Key key{order.fence.attempt, order.instance};
  const auto it = running_.find(key);
  if (it == running_.end()) {
    const std::string name = name_of(order.node);
    if (name.empty() || !alive_.at(name)) return;
    // Never seen: nothing runs and, with the fence on record, nothing will.
    Running never;
    never.node = name;
    never.signalled = true;
    never.state = InstanceState::kExited;
    running_[key] = never;
    report(key, running_[key]);
    return;
  }
  Running& run = it->second;
  if (run.state == InstanceState::kExited) return;
  run.signalled = true;
  if (run.cause == StopCause::kNone) run.cause = order.cause;
  run.kill_at = std::min(run.kill_at, clock_.now() + order.grace);
  // What has not begun has nothing to save.
  if (run.state != InstanceState::kRunning) run.kill_at = clock_.now();
  if (run.kill_at <= clock_.now()) return exit(key, run, kTerminatedBySignal);
  plan(key, run);
}

void SimAgents::forget(const Fence& fence, NodeId, std::int32_t instance) {
  const auto it = running_.find({fence.attempt, instance});
  // What still runs was given up, not ended: its exit is yet to be told.
  if (it != running_.end() && it->second.state == InstanceState::kExited) running_.erase(it);
}

void SimAgents::fail(JobId job, std::int32_t exit_code) {
  std::vector<Key> keys;
  for (const auto& [key, run] : running_) {
    if (run.job == job && run.state != InstanceState::kExited) keys.push_back(key);
  }
  for (const Key& key : keys) exit(key, running_.at(key), exit_code);
}

void SimAgents::exit(const Key& key, Running& run, std::int32_t code) {
  if (run.state == InstanceState::kRunning && key.second == 0) {
    const auto& checkpoint = behaviour_[run.job].checkpoint;
    const bool saves = checkpoint && checkpoint->count() > 0;
    Duration& kept = progress_[run.job];
    const Duration done = kept + (clock_.now() - run.running_at);
    if (saves) kept = *checkpoint * (done.count() / checkpoint->count());
    if (run.cause == StopCause::kPreempted) repeated_[key.first] = done - kept;
  }
  run.state = InstanceState::kExited;
  run.exit_code = code;
  report(key, run);
}

Duration SimAgents::repeated(AttemptId attempt) const {
  const auto it = repeated_.find(attempt);
  return it == repeated_.end() ? Duration(0) : it->second;
}

ReportedInstance SimAgents::reported(const Key& key, const Running& run) {
  ReportedInstance report;
  report.attempt = key.first;
  report.instance = key.second;
  report.state = run.state;
  report.exit_code = run.exit_code;
  report.exit_known = run.exit_code >= 0;
  report.signalled_before_exit = run.signalled;
  report.start_failed = run.start_failed;
  return report;
}

void SimAgents::report(const Key& key, const Running& run) {
  ReportCommand command;
  command.node = run.node;
  command.report = reported(key, run);
  command.agent_cause = run.cause == StopCause::kTimeout ? run.cause : StopCause::kNone;
  post_({"agent:" + run.node, std::move(command)}, [](const Result<Reply>&) {});
}

void SimAgents::advance(const Key& key, Running& run) {
  if (run.gang) {
    run.state = InstanceState::kPrepared;
    run.ready_at = kNever;
    report(key, run);
  } else {
    this->run(key, run);
  }
}

Time SimAgents::due(const Running& run) {
  if (run.state == InstanceState::kExited) return kNever;
  if (run.state == InstanceState::kStarting) return std::min(run.ready_at, run.kill_at);
  const Time timeout =
      run.signalled || run.state != InstanceState::kRunning ? kNever : run.timeout_at;
  return std::min({run.planned_end, run.kill_at, timeout});
}

void SimAgents::plan(const Key& key, const Running& run) {
  if (due(run) != kNever) agenda_.insert({due(run), key});
}

Time SimAgents::next_due() const {
  while (!agenda_.empty()) {
    const auto& [when, key] = *agenda_.begin();
    const auto it = running_.find(key);
    if (it != running_.end() && due(it->second) == when) return when;
    agenda_.erase(agenda_.begin());
  }
  return kNever;
}

void SimAgents::run_due() {
  const Time now = clock_.now();
  std::set<Key> keys;
  while (next_due() <= now) {
    keys.insert(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
  }
  for (const Key& key : keys) {
    Running& run = running_.at(key);
    if (run.state == InstanceState::kStarting && run.kill_at > now) {
      advance(key, run);
    } else if (run.planned_end <= now) {
      exit(key, run, 0);
    } else if (run.kill_at <= now) {
      exit(key, run, kTerminatedBySignal);
    } else {
      run.signalled = true;
      run.cause = StopCause::kTimeout;
      run.kill_at = now + run.grace;
      if (run.kill_at <= now) exit(key, run, kTerminatedBySignal);
    }
    plan(key, run);
  }
}

}  // namespace gpuq::sim
