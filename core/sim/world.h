#pragma once
// World: one simulated cluster with its server: clock, executor, store, agents, engine. Shared by
// the scenario runner and the simulation tests. Single thread.
#include <memory>
#include <string>
#include <vector>

#include "core/sim/memory_store.h"
#include "core/sim/sim_agents.h"
#include "core/sim/virtual_time.h"

namespace gpuq::sim {

class World final : public Observer {
 public:
  using EventFn = std::function<void(const std::vector<Event>&)>;

  explicit World(EngineConfig config, EventFn on_events = {});
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Starts the server and runs until it is idle.
  Result<void> start();
  /// Kills the server between two steps, starts another on the same store; agents reconnect.
  Result<void> restart();
  /// Posts to the live server; the reply may be lost in a crash.
  void post(Command command, ReplyFn reply);
  /// Runs everything due at the present time until nothing is left to do.
  void settle();
  /// The next moment at which something is due by itself.
  [[nodiscard]] Time next_due() const;

  [[nodiscard]] VirtualClock& clock() { return clock_; }
  [[nodiscard]] VirtualExecutor& executor() { return *executor_; }
  [[nodiscard]] MemoryStore& store() { return store_; }
  [[nodiscard]] SimAgents& agents() { return agents_; }
  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] const State& state() const { return engine_->state(); }

 private:
  void on_committed(const std::vector<Event>& events) override;
  void make_engine();

  EngineConfig config_;
  EventFn on_events_;
  VirtualClock clock_;
  std::unique_ptr<VirtualExecutor> executor_;
  MemoryStore store_;
  SimAgents agents_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace gpuq::sim
