#pragma once
// One running agent: everything wired together on one loop.
#include <memory>

#include "agent/config.h"
#include "common/runtime/event_loop.h"
#include "core/base/result.h"

namespace gpuq::agent {

class Agent {
 public:
  /// Opens the state directory, finds the devices and adopts what runs. Nothing is connected yet.
  /// `loop` must outlive the agent.
  static Result<std::unique_ptr<Agent>> create(EventLoop& loop, const AgentConfig& config);
  ~Agent();

  /// Connects, and keeps connecting, to the server. Jobs live on when the agent is destroyed.
  void start();

 private:
  struct Parts;
  explicit Agent(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace gpuq::agent
