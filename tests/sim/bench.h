#pragma once
// A server whose agents are the test itself: orders are recorded, reports are given by hand. For
// what the simulated agents never do: silence, late words, deaths at a chosen moment.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/sim/memory_store.h"
#include "core/sim/virtual_time.h"

namespace gpuq::sim_test {

class RecordingGateway final : public AgentGateway {
 public:
  void start(const StartOrder& order) override { starts.push_back(order); }
  void go(const Fence& fence, NodeId, std::int32_t instance) override {
    gos.emplace_back(fence.attempt, instance);
  }
  void stop(const StopOrder& order) override { stops.push_back(order); }
  void forget(const Fence& fence, NodeId, std::int32_t instance) override {
    forgets.emplace_back(fence.attempt, instance);
  }

  std::vector<StartOrder> starts;
  std::vector<StopOrder> stops;
  std::vector<std::pair<AttemptId, std::int32_t>> gos;
  std::vector<std::pair<AttemptId, std::int32_t>> forgets;
};

/// A short way to say how an instance ended.
struct Exit {
  std::int32_t code = 0;
  bool signalled = false;
  std::int32_t instance = 0;
};

class Bench final : public Observer {
 public:
  explicit Bench(EngineConfig config = {}) : config_(std::move(config)) {
    config_.check_invariants = true;
    store.set_executor(executor_.get());
    make_engine();
  }

  /// Kills the server and starts another on the same store; agents stay silent until
  /// register_node().
  void restart() {
    store.crash();
    engine_.reset();
    executor_ = std::make_unique<sim::VirtualExecutor>(clock_);
    store.set_executor(executor_.get());
    make_engine();
  }

  void run() { executor_->run(); }
  void run_one() { (void)executor_->run_one(); }
  /// Runs until a batch has been given to the store and its answer is still to come.
  void run_to_the_next_commit() {
    const auto batches = engine_->stats().batches;
    while (engine_->stats().batches == batches && executor_->run_one()) {
    }
  }
  void advance(Duration by) {
    const Time end = clock_.now() + by;
    while (executor_->next_timer() <= end) {
      clock_.set(std::max(clock_.now(), executor_->next_timer()));
      run();
    }
    clock_.set(end);
    run();
  }

  void post(
      CommandBody body, ReplyFn reply = [](Result<Reply>) {}) {
    engine_->post({"test", std::move(body)}, std::move(reply));
  }
  /// Posts, runs and gives the answer.
  Result<Reply> ask(CommandBody body) {
    std::optional<Result<Reply>> answer;
    post(std::move(body), [&answer](Result<Reply> reply) { answer = std::move(reply); });
    run();
    if (answer) return *answer;
    return Error{ErrorCode::kInternal, "no answer"};
  }

  void register_node(const std::string& name, int gpus,
                     std::vector<ReportedInstance> instances = {}) {
    RegisterNodeCommand command;
    command.node.name = name;
    command.node.cpus = 64;
    command.node.memory_mib = 65'536;
    command.node.state_dir_id = name;
    for (int g = 0; g < gpus; ++g) {
      Device device;
      device.uuid = name + "/" + std::to_string(g);
      device.model = "A";
      command.node.devices.push_back(std::move(device));
    }
    command.instances = std::move(instances);
    ASSERT_TRUE(ask(std::move(command)).has_value());
  }

  /// One queue `q` on one environment whose unit `gpu` is one GPU.
  void apply(std::vector<ShareDef> shares, std::int64_t pool,
             std::vector<TimeLimitAction> limits = {}) {
    ApplyPolicyCommand command;
    command.prune = true;
    command.doc.units = {{"gpu", "", 1, 0, 0}};
    EnvDef env;
    env.name = "pool";
    env.capacity_limits = {{"gpu", Amount::units(pool)}};
    command.doc.environments = {env};
    SchedulingPolicyDef policy;
    policy.name = "quotas";
    command.doc.policies = {policy};
    QueueDef queue;
    queue.name = "q";
    queue.service_environments = {"pool"};
    queue.scheduling_policy = "quotas";
    queue.shares = std::move(shares);
    queue.time_limit_actions = std::move(limits);
    command.doc.queues = {queue};
    const auto reply = ask(std::move(command));
    ASSERT_TRUE(reply.has_value()) << reply.error().message;
    for (const PolicyIssue& issue : reply->issues) ASSERT_FALSE(issue.is_error) << issue.message;
  }

  static ShareDef share(const std::string& name, std::int64_t cap,
                        SharingStrategy strategy = SharingStrategy::kLendAndBorrow) {
    ShareDef def;
    def.name = name;
    def.capacity_limits = {{"gpu", Amount::units(cap)}};
    def.strategy = strategy;
    return def;
  }

  static JobRequest request(const std::string& share, std::int64_t gpus = 1,
                            std::int32_t priority = 0) {
    JobRequest request;
    request.name = "job";
    request.share = share;
    request.units = {{"gpu", Amount::units(gpus)}};
    request.priority = priority;
    return request;
  }
  static SubmitCommand submission(JobRequest request) {
    SubmitCommand command;
    command.user = "user";
    command.jobs = {std::move(request)};
    return command;
  }
  JobId submit(JobRequest request) {
    const auto reply = ask(submission(std::move(request)));
    EXPECT_TRUE(reply.has_value()) << reply.error().message;
    return reply ? reply->jobs.front() : JobId();
  }

  void report(AttemptId attempt, InstanceState state, Exit exit = {}, bool start_failed = false) {
    const Attempt* known = this->state().find_attempt(attempt);
    ASSERT_NE(known, nullptr);
    ReportCommand command;
    const auto i = static_cast<std::size_t>(exit.instance);
    command.node = this->state().node(known->instances[i].use.node).name;
    command.report.attempt = attempt;
    command.report.instance = exit.instance;
    command.report.state = state;
    command.report.exit_code = exit.code;
    command.report.signalled_before_exit = exit.signalled;
    command.report.start_failed = start_failed;
    (void)ask(std::move(command));
  }
  /// Every instance of the job's attempt runs.
  AttemptId runs(JobId job) {
    const AttemptId attempt = state().job(job).attempt;
    EXPECT_TRUE(attempt.valid());
    const auto count = static_cast<std::int32_t>(state().attempt(attempt).instances.size());
    for (std::int32_t i = 0; i < count; ++i) {
      report(attempt, InstanceState::kRunning, {0, false, i});
    }
    return attempt;
  }
  void exits(AttemptId attempt, Exit exit) { report(attempt, InstanceState::kExited, exit); }
  void node_down(const std::string& name) { (void)ask(NodeLinkCommand{name, NodeLink::kDown}); }

  [[nodiscard]] const Job& job(JobId id) const { return engine_->state().job(id); }
  [[nodiscard]] const State& state() const { return engine_->state(); }
  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] Time now() const { return clock_.now(); }
  /// Start orders so far for one instance.
  [[nodiscard]] int start_orders(AttemptId attempt, std::int32_t instance = 0) const {
    int count = 0;
    for (const StartOrder& order : gateway.starts) {
      if (order.fence.attempt == attempt && order.instance == instance) ++count;
    }
    return count;
  }

  RecordingGateway gateway;
  sim::MemoryStore store;
  std::vector<Event> events;

 private:
  void on_committed(const std::vector<Event>& seen) override {
    events.insert(events.end(), seen.begin(), seen.end());
  }
  void make_engine() {
    engine_ = std::make_unique<Engine>(store, gateway, *this, *executor_, clock_, config_);
    ASSERT_TRUE(engine_->start().has_value());
    run();
  }

  EngineConfig config_;
  sim::VirtualClock clock_;
  std::unique_ptr<sim::VirtualExecutor> executor_ = std::make_unique<sim::VirtualExecutor>(clock_);
  std::unique_ptr<Engine> engine_;
};

}  // namespace gpuq::sim_test
