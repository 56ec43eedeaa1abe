#pragma once
// Drives a sim::World through a case, one executor task at a time, and shows every state on the
// way. Steps that name something unknown are passed over, so that every part of a case is a case.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "core/sim/expectations.h"
#include "core/sim/scenario.h"
#include "core/sim/world.h"

namespace gpuq::property {

inline EngineConfig strict_config(const sim::Scenario& scenario) {
  EngineConfig config;
  config.default_grace = scenario.default_grace;
  config.check_invariants = true;
  return config;
}

/// `World` is a sim::World or something with the same members.
template <typename World>
class DriveOn {
 public:
  struct Hooks {
    std::function<void()> changed;  ///< After a task that changed the state.
    std::function<void()> settled;  ///< After everything of one instant.
    std::function<void()> acted;    ///< After an instant's steps, before they are worked off.
    std::function<void(const std::vector<Event>&)> committed;
    std::function<void(const Result<Reply>&)> replied;
  };

  /// `config` is what a World is made of: an EngineConfig for sim::World.
  template <typename Config>
  DriveOn(const sim::Scenario& scenario, Config config, Hooks hooks)
      : scenario_(scenario),
        hooks_(std::move(hooks)),
        world_(std::move(config), [this](const std::vector<Event>& events) {
          if (hooks_.committed) hooks_.committed(events);
        }) {}

  /// Empty when the run came to its end, else why it did not.
  std::string run() {
    if (std::string fault = set_up(); !fault.empty()) return fault;
    return go_on();
  }

  /// Goes on until nothing is due any more.
  std::string go_on() {
    for (int rounds = 0; rounds < 20'000; ++rounds) {
      Time now = world_.next_due();
      const bool more = next_step_ < scenario_.timeline.size();
      if (more) now = std::min(now, scenario_.timeline[next_step_].at);
      if (now == kNever) return {};
      world_.clock().set(std::max(now, world_.clock().now()));
      world_.agents().run_due();
      while (next_step_ < scenario_.timeline.size() && scenario_.timeline[next_step_].at <= now) {
        std::visit([this](const auto& what) { this->apply(what); },
                   scenario_.timeline[next_step_++].what);
      }
      if (hooks_.acted) hooks_.acted();
      settle();
    }
    return "the run does not come to its end";
  }

  World& world() { return world_; }
  [[nodiscard]] const State& state() const { return world_.state(); }
  /// Jobs whose submission was answered, by name.
  [[nodiscard]] const std::map<std::string, JobId>& acknowledged() const { return names_; }

  void settle() {
    do {
      world_.agents().run_due();
      while (world_.executor().run_one()) show();
    } while (world_.next_due() <= world_.clock().now());
    if (hooks_.settled) hooks_.settled();
  }

  /// Runs at most `tasks` tasks, then kills the server and starts it anew.
  void crash_after(int tasks) {
    for (int i = 0; i < tasks && world_.executor().run_one(); ++i) show();
    GPUQ_CHECK(world_.restart().has_value());
    show();
  }

 private:
  std::string set_up() {
    for (const Node& node : scenario_.nodes) world_.agents().add_node(node);
    if (!world_.start()) return "the server does not start";
    ApplyPolicyCommand apply;
    apply.doc = scenario_.policy;
    apply.prune = true;
    std::string fault;
    world_.post({"test", apply}, [&fault](Result<Reply> reply) {
      if (!reply) fault = reply.error().message;
      if (!reply) return;
      for (const PolicyIssue& issue : reply->issues) {
        if (issue.is_error) fault = issue.path + ": " + issue.message;
      }
    });
    settle();
    return fault;
  }

  void show() {
    if (state().policy().builtin) return;  // Nothing of the scenario holds yet.
    if (world_.state().version() == shown_) return;
    shown_ = world_.state().version();
    if (hooks_.changed) hooks_.changed();
  }

  void post(CommandBody body) {
    world_.post({"test", std::move(body)}, [this](Result<Reply> reply) {
      if (hooks_.replied) hooks_.replied(reply);
    });
  }

  void apply(const sim::SubmitStep& step) {
    SubmitCommand command;
    command.user = step.user;
    command.jobs.push_back(step.request);
    for (const auto& [name, condition] : step.depends_on) {
      if (!names_.contains(name)) continue;
      command.jobs.front().depends_on.push_back({names_[name], condition});
    }
    world_.post({"test", std::move(command)}, [this, step](Result<Reply> reply) {
      if (reply) {
        know(step, reply->jobs.front());
      }
      if (hooks_.replied) hooks_.replied(reply);
    });
  }

  void know(const sim::SubmitStep& step, JobId id) {
    const sim::Behaviour behaviour{step.runtime, step.start_delay, step.checkpoint};
    names_[step.request.name] = id;
    world_.agents().set_behaviour(id, behaviour);
    if (!step.request.array) return;
    const JobArray array{id, *step.request.array};
    for (std::int32_t k = 0; k < array.size(); ++k) {
      names_[sim::member_name(step.request.name, array.index(array.member(k)))] = array.member(k);
      world_.agents().set_behaviour(array.member(k), behaviour);
    }
  }

  void apply(const sim::UpdateStep& step) {
    if (names_.contains(step.job)) post(UpdateJobCommand{names_[step.job], step.priority});
  }
  void apply(const sim::TerminateStep& step) {
    if (names_.contains(step.job)) post(CancelCommand{names_[step.job], "terminated"});
  }
  void apply(const sim::HoldStep& step) {
    if (!names_.contains(step.job)) return;
    post(UpdateJobCommand{names_[step.job], std::nullopt, step.held});
  }
  void apply(const sim::FailStep& step) {
    if (names_.contains(step.job)) world_.agents().fail(names_[step.job], step.exit_code);
  }
  void apply(const sim::ShareStep& step) {
    const auto share = sim::changed_share(world_.state().policy(), step);
    if (!share) return;
    ApplyPolicyCommand command;
    command.partial = true;
    command.must_exist = true;
    command.drain = step.drain;
    command.doc.queues = std::vector<QueueDef>{*share};
    post(std::move(command));
  }
  void apply(const sim::NodeStep& step) {
    if (world_.state().find_node(step.node) == nullptr) return;
    const bool alive = world_.agents().alive(step.node);
    switch (step.state) {
      case sim::NodeStepState::kUp:
        if (!alive) world_.agents().set_alive(step.node, true);
        return post(SetNodeAdminCommand{step.node, NodeAdmin::kOpen});
      case sim::NodeStepState::kDown:
        if (alive) world_.agents().set_alive(step.node, false);
        return;
      case sim::NodeStepState::kCordoned:
        return post(SetNodeAdminCommand{step.node, NodeAdmin::kCordoned});
      case sim::NodeStepState::kDraining:
        return post(SetNodeAdminCommand{step.node, NodeAdmin::kDraining});
    }
  }
  void apply(const sim::RestartStep&) {
    settle();
    GPUQ_CHECK(world_.restart().has_value());
    show();
  }

  const sim::Scenario& scenario_;
  Hooks hooks_;
  World world_;
  std::map<std::string, JobId> names_;
  std::size_t next_step_ = 0;
  std::uint64_t shown_ = 0;
};

using Drive = DriveOn<sim::World>;

}  // namespace gpuq::property
