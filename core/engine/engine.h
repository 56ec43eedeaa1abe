#pragma once
// Engine: the one place where things happen. Commands of a drained batch are validated, turned into
// events, applied to the state, committed in one transaction, and only then shown and acted on;
// then a pass plans, and its decisions go the same way. The daemon, `gpuq simulate` and the tests
// run this class over different ports. Owner: the program's wiring. Thread: the executor's, for
// everything but post(). While a commit is in flight the state is ahead of the store; queries wait
// for it.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/engine/command.h"
#include "core/engine/ports.h"
#include "core/state/state.h"

namespace gpuq {

struct EngineConfig {
  std::size_t max_queued_commands = 100'000;  ///< Beyond: RESOURCE_EXHAUSTED.
  std::size_t max_batch_commands = 4'096;     ///< Commands in one transaction.
  std::size_t max_batch_decisions = 1'000;    ///< Decisions in one transaction.
  Duration unconfirmed_stop_margin{60'000};   ///< P9: grace plus this, then LOST (stuck).
  Duration token_lifetime{std::chrono::hours(24)};
  std::size_t keep_ended_jobs = 10'000;    ///< In memory; older ones move to the archive.
  Duration default_grace = kDefaultGrace;  ///< P9, where neither job nor share sets one.
  Duration probe_interval{1'000};          ///< While read-only.
  /// Wall clock minus core time at start, ms; only for Event::wall_ms.
  std::int64_t wall_offset_ms = 0;
  bool check_invariants = false;  ///< sanity_check() and the invariants after every event.
  std::int32_t max_shares_per_queue = 20;
  std::int32_t max_units_per_share = 5;
};

/// Figures for status and metrics.
struct EngineStats {
  std::uint64_t commands = 0;
  std::uint64_t batches = 0;
  std::uint64_t passes = 0;
  std::uint64_t decisions = 0;
  std::uint64_t failed_commits = 0;
};

class Engine {
 public:
  Engine(Store& store, AgentGateway& gateway, Observer& observer, Executor& executor,
         const Clock& clock, EngineConfig config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Loads, checks, raises the epoch and readies the first pass. Live attempts stay live: their
  /// nodes start as UNREACHABLE until their agents register. kDataLoss when what is stored
  /// contradicts itself.
  Result<void> start();

  /// F1: goes on from `state` as it is, in place of start(): nothing is loaded or stored, no node
  /// is taken as silent. For runs forward in virtual time, over a store that keeps nothing.
  void resume(State state);

  /// Queues `command`; `reply` is called on the engine's thread after its commit (or refusal).
  /// Thread-safe, never blocks. kResourceExhausted when the queue is full, kUnavailable when
  /// read-only or stopping, through `reply` on the engine's thread.
  void post(Command command, ReplyFn reply);

  /// Runs `query` on the engine's thread as soon as no commit is in flight, so that it sees
  /// committed state only. Thread-safe. The reference is valid during the call only.
  void query(std::function<void(const State&)> query);

  /// Stops taking commands; `done` runs when everything queued is committed and answered.
  void drain(std::function<void()> done);

  /// True after a failed commit until a probe write succeeds. Engine's thread.
  [[nodiscard]] bool read_only() const;
  /// Why it is read-only: what callers are answered.
  [[nodiscard]] const Error& read_only_reason() const;
  [[nodiscard]] const EngineStats& stats() const;
  [[nodiscard]] const StoreIdentity& identity() const;
  /// Nothing queued, in flight or left to plan: the simulator moves time on. Engine's thread.
  [[nodiscard]] bool idle() const;
  /// The state as it is, also while a commit is in flight. For the simulator's checks. Engine's
  /// thread.
  [[nodiscard]] const State& state() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuq
