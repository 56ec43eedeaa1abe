#pragma once
// RpcServer: the gRPC side of gpuqd, with everything that its calls reach. Owner: the daemon. Made
// before the engine starts, because it provides the engine's AgentGateway and Observer.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/engine/engine.h"
#include "core/engine/ports.h"
#include "server/rpc/agent_hub.h"
#include "server/rpc/history.h"

namespace gpuq::rpc {

struct RpcConfig {
  std::vector<std::string> listen;  ///< "host:port"; port 0 = any free one.
  bool allow_remote = false;        ///< Callers from other machines are let in (--insecure).
  AgentHubConfig agents;
  std::string log_dir;  ///< Output of ended attempts.
  std::int64_t log_cap_bytes = std::int64_t{1} << 30;
  std::size_t spec_cache_bytes = std::size_t{64} << 20;
  std::size_t worker_threads = 2;
  int max_message_bytes = 16 << 20;
};

class RpcServer {
 public:
  RpcServer(Executor& executor, const Clock& clock, RpcConfig config);
  ~RpcServer();  ///< After the loop has ended for good.
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// The engine's ports.
  AgentGateway& gateway();
  Observer& observer();

  /// Opens the ports and takes calls. After Engine::start(); both must outlive the server's stop().
  /// kUnavailable naming the address that can not be listened on.
  Result<> start(Engine& engine, History& history);
  /// The ports in the order of RpcConfig::listen.
  [[nodiscard]] std::vector<std::uint16_t> ports() const;

  /// Engine's thread: sessions, watches and log streams end; new calls are refused.
  void begin_stop();
  /// Waits until all calls have ended, at most `patience`; then they are cut off. Blocks: not on
  /// the engine's thread, which calls need to end.
  void finish_stop(Duration patience);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuq::rpc
