#pragma once
// ServiceContext: what every call reaches. Owned by RpcServer's wiring; outlives all calls.
#include <functional>
#include <string>

#include "core/base/clock.h"
#include "core/engine/engine.h"
#include "server/auth/authorize.h"
#include "server/auth/peer.h"
#include "server/rpc/agent_hub.h"
#include "server/rpc/forecasts.h"
#include "server/rpc/history.h"
#include "server/rpc/log_files.h"
#include "server/rpc/log_hub.h"
#include "server/rpc/open_streams.h"
#include "server/rpc/spec_cache.h"
#include "server/rpc/watch_hub.h"
#include "server/rpc/worker_pool.h"

namespace gpuq::rpc {

struct ServiceContext {
  Engine& engine;      ///< post() and query() from any thread, the rest on its own.
  Executor& executor;  ///< The engine's thread.
  const Clock& clock;
  History& history;  ///< Only on `pool`.
  WorkerPool& pool;
  auth::PeerIdentifier& peers;
  AgentHub& agents;      ///< Engine's thread.
  WatchHub& watchers;    ///< Engine's thread.
  SpecCache& specs;      ///< Engine's thread.
  Forecasts& forecasts;  ///< Engine's thread.
  LogHub& log_hub;       ///< Any thread.
  LogFiles& log_files;   ///< Only on `pool`.
  OpenStreams& streams;  ///< Any thread.
  Time started_at{};
  std::string store_id;
};

}  // namespace gpuq::rpc
