#pragma once
// The ports through which the engine meets the world: Store, AgentGateway, Observer. The daemon and
// the simulator implement them; the engine is the same. All callbacks arrive on the engine's
// thread.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/rows.h"

namespace gpuq {

/// Durable store of one server. One commit is in flight at a time.
class Store {
 public:
  virtual ~Store() = default;

  /// Reads everything live. Called at start and after a failed commit, with no commit in flight.
  /// Also raises the epoch by one, durably, and returns the raised one when `raise_epoch`.
  virtual Result<StoredState> load(bool raise_epoch) = 0;

  /// Commits `batch` in one transaction and calls `done` on the engine's thread, never inside this
  /// call. Durable when `done` gets success; nothing of it is stored when it gets an error.
  /// kAborted: the epoch is not ours any more; kResourceExhausted: the disk is full.
  virtual void commit(CommitBatch batch, std::function<void(Result<void>)> done) = 0;

  /// Tries one small durable write, to learn whether a failed store works again.
  virtual void probe(std::function<void(Result<void>)> done) = 0;
};

/// Fence of an order: agents refuse what is older than the highest they have seen.
struct Fence {
  std::string store_id;
  std::int64_t epoch = 0;
  AttemptId attempt;
  bool operator==(const Fence&) const = default;
};

/// Order to prepare (and, alone, to run) one instance of an attempt. Idempotent at the agent.
struct StartOrder {
  Fence fence;
  NodeId node;
  std::int32_t instance = 0;
  Job job;
  std::optional<JobArray> array;  ///< Of which the job is a member: the spec is the array's.
  JobClass cls;
  Attempt attempt;          ///< With all instances: gangs need the master's node.
  Duration grace{0};        ///< Resolved (P9), for stops that the agent decides itself.
  bool run_at_once = true;  ///< False: stop at the barrier until Go.
};

struct StopOrder {
  Fence fence;
  NodeId node;
  std::int32_t instance = 0;
  StopCause cause = StopCause::kTerminated;
  Duration grace{0};
};

/// Sends orders to agents. A node without a session drops them: the engine sends again when the
/// agent registers. Never blocks, never calls back inside a call.
class AgentGateway {
 public:
  virtual ~AgentGateway() = default;
  virtual void start(const StartOrder& order) = 0;
  /// Opens the gang's barrier: every instance is prepared.
  virtual void go(const Fence& fence, NodeId node, std::int32_t instance) = 0;
  virtual void stop(const StopOrder& order) = 0;
  /// The end of the attempt's instance is committed: the agent may remove what it kept of it.
  virtual void forget(const Fence& fence, NodeId node, std::int32_t instance) = 0;
};

/// Sees committed events in order, after the commit and before the replies.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_committed(const std::vector<Event>& events) = 0;
  /// The store refused a batch: nothing is stored until on_writable().
  virtual void on_read_only(const Error& /*why*/) {}
  virtual void on_writable() {}
};

}  // namespace gpuq
