#pragma once
// A simulated cluster as sim::World is, whose orders to agents are watched: an instance that an
// agent has run must not be ordered again once the agent has forgotten it or died with it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/engine/engine.h"
#include "core/sim/memory_store.h"
#include "core/sim/sim_agents.h"
#include "core/sim/virtual_time.h"

namespace gpuq::sim_test {

class CountingWorld final : public Observer, public AgentGateway {
 public:
  using EventFn = std::function<void(const std::vector<Event>&)>;

  explicit CountingWorld(EngineConfig config, EventFn on_events = {})
      : config_(std::move(config)),
        on_events_(std::move(on_events)),
        agents_(clock_, [this](Command command, ReplyFn reply) {
          post(std::move(command), std::move(reply));
        }) {
    make_engine();
  }

  Result<void> start() {
    if (auto started = engine_->start(); !started) return started;
    agents_.register_all();
    settle();
    return {};
  }
  Result<void> restart() {
    store_.crash();
    engine_.reset();
    make_engine();
    if (auto started = engine_->start(); !started) return started;
    agents_.register_all();
    return {};
  }
  void post(Command command, ReplyFn reply) {
    ++asked_;
    engine_->post(std::move(command), [this, reply = std::move(reply)](Result<Reply> answer) {
      ++answered_;
      reply(std::move(answer));
    });
  }
  void settle() {
    do {
      agents_.run_due();
      executor_->run();
    } while (next_due() <= clock_.now());
  }
  [[nodiscard]] Time next_due() const {
    return std::min(agents_.next_due(), executor_->next_timer());
  }

  [[nodiscard]] sim::VirtualClock& clock() { return clock_; }
  [[nodiscard]] sim::VirtualExecutor& executor() { return *executor_; }
  [[nodiscard]] sim::MemoryStore& store() { return store_; }
  [[nodiscard]] sim::SimAgents& agents() { return agents_; }
  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] const State& state() const { return engine_->state(); }

  /// Commands posted and answered; a crash leaves some unanswered.
  [[nodiscard]] std::size_t asked() const { return asked_; }
  [[nodiscard]] std::size_t answered() const { return answered_; }
  /// The first instance that ran twice, or "".
  [[nodiscard]] const std::string& ran_twice() const { return ran_twice_; }

  void start(const StartOrder& order) override {
    const Key key{order.fence.attempt, order.instance};
    if (forgotten_.contains(key)) {
      ran_twice_ = fmt::format("attempt {} is started after its end", key.first.value);
    }
    agents_.start(order);
  }
  void go(const Fence& fence, NodeId node, std::int32_t instance) override {
    agents_.go(fence, node, instance);
  }
  void stop(const StopOrder& order) override { agents_.stop(order); }
  void forget(const Fence& fence, NodeId node, std::int32_t instance) override {
    forgotten_.insert({fence.attempt, instance});
    agents_.forget(fence, node, instance);
  }

 private:
  using Key = std::pair<AttemptId, std::int32_t>;

  void on_committed(const std::vector<Event>& events) override {
    for (const Event& event : events) {
      if (event.type != EventType::kAttemptRunning) continue;
      if (!running_.insert(event.attempt).second) {
        ran_twice_ = fmt::format("attempt {} is RUNNING twice", event.attempt.value);
      }
    }
    if (on_events_) on_events_(events);
  }
  void make_engine() {
    executor_ = std::make_unique<sim::VirtualExecutor>(clock_);
    store_.set_executor(executor_.get());
    engine_ = std::make_unique<Engine>(store_, *this, *this, *executor_, clock_, config_);
  }

  EngineConfig config_;
  EventFn on_events_;
  sim::VirtualClock clock_;
  std::unique_ptr<sim::VirtualExecutor> executor_;
  sim::MemoryStore store_;
  sim::SimAgents agents_;
  std::size_t asked_ = 0;
  std::size_t answered_ = 0;
  std::set<Key> forgotten_;
  std::set<AttemptId> running_;
  std::string ran_twice_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace gpuq::sim_test
