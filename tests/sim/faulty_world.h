#pragma once
// A simulated cluster as sim::World is, with FaultyAgents, a store that fails and a server that is
// killed or stands still. Single thread.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/sim/memory_store.h"
#include "core/sim/virtual_time.h"
#include "tests/sim/faulty_agents.h"

namespace gpuq::sim_test {

class FaultyWorld final : public Observer {
 public:
  using EventFn = std::function<void(const std::vector<Event>&)>;

  /// `seed` decides the faults of the network; the configuration is the engine's.
  struct Config {
    EngineConfig engine;
    std::uint64_t seed = 0;
    std::function<void(Fault, AttemptId)> met;
  };

  explicit FaultyWorld(Config config, EventFn on_events = {})
      : config_(std::move(config)),
        on_events_(std::move(on_events)),
        agents_(
            clock_, config_.seed,
            {[this](Command command, ReplyFn reply) { post(std::move(command), std::move(reply)); },
             [this]() -> const State& { return engine_->state(); }, config_.met,
             [this](const std::string& what) {
               if (wrong_.empty()) wrong_ = what;
             }}) {
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
    store_.fail_next(0, {});
    engine_.reset();
    make_engine();
    if (auto started = engine_->start(); !started) return started;
    agents_.server_restarted();
    return {};
  }
  /// The server does nothing for a while; time, agents and network go on.
  void stand_still(Duration length) {
    const Time end = clock_.now() + length;
    agents_.server_stood_still();
    for (Time next = agents_.next_due(); next <= end; next = agents_.next_due()) {
      clock_.set(std::max(next, clock_.now()));
      agents_.run_due();
    }
    clock_.set(end);
    agents_.server_stood_still();
  }
  void post(Command command, ReplyFn reply) { engine_->post(std::move(command), std::move(reply)); }
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
  [[nodiscard]] FaultyAgents& agents() { return agents_; }
  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] const State& state() const { return engine_->state(); }
  /// The first thing that agents did and must never do, or "".
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  void on_committed(const std::vector<Event>& events) override {
    if (on_events_) on_events_(events);
  }
  void make_engine() {
    executor_ = std::make_unique<sim::VirtualExecutor>(clock_);
    store_.set_executor(executor_.get());
    engine_ = std::make_unique<Engine>(store_, agents_, *this, *executor_, clock_, config_.engine);
  }

  Config config_;
  EventFn on_events_;
  sim::VirtualClock clock_;
  std::unique_ptr<sim::VirtualExecutor> executor_;
  sim::MemoryStore store_;
  std::string wrong_;
  FaultyAgents agents_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace gpuq::sim_test
