#pragma once
// Forecasts: runs forward from copies of the live state, on threads of their own. The copy is made
// on the engine's thread, the run is not. Two runs at once; a few more requests wait for their
// turn, the rest are refused. A forecast of all waiting jobs serves everybody who asks while it is
// fresh. Owner: RpcServer. Engine's thread, but for stop().
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/sim/forecast.h"
#include "server/rpc/worker_pool.h"

namespace gpuq::rpc {

struct ForecastConfig {
  std::size_t at_once = 2;
  std::size_t may_wait = 16;
  std::size_t most_jobs = 20'000;  ///< That wait, see StateExcerpt.
  Duration budget{2'000};          ///< Of one run; then it says how far it came.
  Duration fresh_for{1'000};       ///< Whatever has happened meanwhile.
  Duration unchanged_for{10'000};  ///< While the state is the same.
};

class Forecasts {
 public:
  using State = gpuq::State;
  using QueryFn = std::function<void(std::function<void(const State&)>)>;
  /// On a forecast thread.
  using RunFn = std::function<void(sim::ForecastRun&, const sim::ForecastLimits&)>;
  using DoneFn = std::function<void(Result<>)>;
  using SharedForecast = std::shared_ptr<const sim::Forecast>;
  using ForecastFn = std::function<void(Result<SharedForecast>)>;

  /// `executor` is the engine's, `query` is Engine::query.
  Forecasts(Executor& executor, const Clock& clock, QueryFn query, ForecastConfig config = {});

  /// The forecast of all waiting jobs, one that knows `job`. `done` is called on the engine's
  /// thread, perhaps inside this call.
  void ask(const State& state, JobId job, ForecastFn done);
  /// A run for one caller: `run` has the copy to itself, which `also` are a part of. `done` on the
  /// engine's thread: success after `run` has returned, else it was not called.
  void run_alone(const State& state, std::vector<JobId> also, RunFn run, DoneFn done);

  /// Any thread: runs under way end as if their budget were used up, what waits is refused.
  void begin_stop() { stopping_ = true; }
  /// Waits for the threads.
  void finish_stop() { pool_.stop(); }

 private:
  struct Request {
    std::vector<JobId> also;
    RunFn run;
    DoneFn done;
  };
  /// Someone who waits for the shared forecast that is being made.
  struct Shared {
    std::uint64_t version = 0;
    Time begun{};
    std::int64_t next_job = 0;
    SharedForecast result;  ///< Unset: still being made.
    std::vector<ForecastFn> askers;
  };

  [[nodiscard]] bool serves(const Shared& shared, const State& state, JobId job) const;
  void submit(const State& state, Request request);
  void begin(const State& state, Request request);
  void ended(const Request& request);
  void answer(const std::shared_ptr<Shared>& shared, const Result<>& done);

  Executor& executor_;
  const Clock& clock_;
  QueryFn query_;
  ForecastConfig config_;
  std::atomic<bool> stopping_{false};
  std::size_t running_ = 0;
  std::deque<Request> waiting_;
  std::shared_ptr<Shared> shared_;
  WorkerPool pool_;  ///< Last: its threads use the rest.
};

}  // namespace gpuq::rpc
