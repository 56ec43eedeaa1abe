#include "core/sim/world.h"

#include <algorithm>
#include <utility>

namespace gpuq::sim {

World::World(EngineConfig config, EventFn on_events)
    : config_(config),
      on_events_(std::move(on_events)),
      agents_(clock_, [this](Command command, ReplyFn reply) {
        post(std::move(command), std::move(reply));
      }) {
  make_engine();
}

World::~World() = default;

void World::make_engine() {
  executor_ = std::make_unique<VirtualExecutor>(clock_);
  store_.set_executor(executor_.get());
  engine_ = std::make_unique<Engine>(store_, agents_, *this, *executor_, clock_, config_);
}

Result<void> World::start() {
  if (auto started = engine_->start(); !started) return started;
  agents_.register_all();
  settle();
  return {};
}

Result<void> World::restart() {
  store_.crash();
  engine_.reset();
  make_engine();
  if (auto started = engine_->start(); !started) return started;
  agents_.register_all();
  return {};
}

void World::post(Command command, ReplyFn reply) {
  engine_->post(std::move(command), std::move(reply));
}

void World::settle() {
  do {
    agents_.run_due();
    executor_->run();
  } while (next_due() <= clock_.now());
}

Time World::next_due() const { return std::min(agents_.next_due(), executor_->next_timer()); }

void World::on_committed(const std::vector<Event>& events) {
  if (on_events_) on_events_(events);
}

}  // namespace gpuq::sim
