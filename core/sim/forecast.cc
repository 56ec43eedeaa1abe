#include "core/sim/forecast.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "core/engine/engine.h"
#include "core/sim/blockers.h"
#include "core/sim/expected_end.h"
#include "core/sim/sim_agents.h"
#include "core/sim/virtual_time.h"

namespace gpuq::sim {

namespace {

/// Takes everything and keeps nothing.
class ForgetfulStore final : public Store {
 public:
  explicit ForgetfulStore(Executor& executor) : executor_(executor) {}
  Result<StoredState> load(bool) override {
    return Error{ErrorCode::kUnavailable, "a forecast stores nothing"};
  }
  void commit(CommitBatch, std::function<void(Result<void>)> done) override {
    executor_.post([done = std::move(done)] { done({}); });
  }
  void probe(std::function<void(Result<void>)> done) override { commit({}, std::move(done)); }

 private:
  Executor& executor_;
};

// No invariant is checked and nothing is archived: the copy lives for seconds. How large a policy
// may be has been judged before.
EngineConfig forecast_config() {
  EngineConfig config;
  config.keep_ended_jobs = 1'000'000'000;
  config.max_shares_per_queue = 1'000'000;
  config.max_units_per_share = 1'000;
  return config;
}

bool waits(const Job& job) { return !is_terminal(job.state) && !is_active(job.state); }

}  // namespace

class ForecastRun::Impl final : public Observer {
 public:
  Impl(StateExcerpt excerpt, Time now);

  Result<Reply> ask(Command command);
  bool settle(const std::function<bool()>& go_on);
  Forecast run(const ForecastLimits& limits, JobId only);
  [[nodiscard]] const State& state() const { return engine_.state(); }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] std::int64_t left_out() const { return forecast_.left_out; }

 private:
  void on_committed(const std::vector<Event>& events) override;
  void see_running(const State& state);
  void open_jobs(JobId only);
  [[nodiscard]] Time next_due() const;
  bool run_forward(const ForecastLimits& limits, Time horizon);
  [[nodiscard]] JobForecast of(const Job& job, const Forecast& forecast, Blockers& blockers) const;

  VirtualClock clock_;
  VirtualExecutor executor_{clock_};
  ForgetfulStore store_{executor_};
  SimAgents agents_;
  Engine engine_;
  bool running_ = false;  ///< run() has begun: events are not kept any more.
  std::vector<Event> events_;
  std::set<JobId> open_;   ///< Wait for their first start in this run.
  std::set<JobId> asked_;  ///< All that are to be forecast.
  std::map<JobId, Time> started_;
  Forecast forecast_;
};

ForecastRun::Impl::Impl(StateExcerpt excerpt, Time now)
    : agents_(clock_,
              [this](Command command, ReplyFn reply) {
                engine_.post(std::move(command), std::move(reply));
              }),
      engine_(store_, agents_, *this, executor_, clock_, forecast_config()) {
  clock_.set(now);
  forecast_.made_at = now;
  forecast_.left_out = excerpt.left_out;
  State state = std::move(excerpt).state();
  forecast_.next_job = state.counters().next_job;
  see_running(state);
  engine_.resume(std::move(state));
}

void ForecastRun::Impl::see_running(const State& state) {
  const Time now = clock_.now();
  agents_.adopt(state,
                [&](const Attempt& attempt) { return expected_end(state, attempt, now).at; });
  for (const AttemptId id : state.live_attempts()) {
    const Attempt& attempt = state.attempt(id);
    const ExpectedEnd end = expected_end(state, attempt, now);
    count(end.ground, forecast_.basis[state.ledger().environment(attempt.share)]);
  }
  for (const auto& [id, job] : state.jobs()) {
    agents_.set_behaviour(id, {expected_run(state, job), Duration(0), std::nullopt});
  }
}

Result<Reply> ForecastRun::Impl::ask(Command command) {
  std::optional<Result<Reply>> answer;
  const JobId first_new(state().counters().next_job);
  engine_.post(std::move(command), [&answer](Result<Reply> reply) { answer = std::move(reply); });
  while (!answer && executor_.run_one()) {
  }
  GPUQ_CHECK(answer.has_value());
  for (auto it = state().jobs().lower_bound(first_new); it != state().jobs().end(); ++it) {
    agents_.set_behaviour(it->first,
                          {expected_run(state(), it->second), Duration(0), std::nullopt});
  }
  return *answer;
}

void ForecastRun::Impl::on_committed(const std::vector<Event>& events) {
  for (const Event& event : events) {
    if (event.type == EventType::kAttemptScheduled) started_.try_emplace(event.job, event.at);
    const bool settled =
        event.type == EventType::kAttemptScheduled || event.type == EventType::kJobFailed;
    if (settled) open_.erase(event.job);
  }
  if (!running_) events_.insert(events_.end(), events.begin(), events.end());
}

Time ForecastRun::Impl::next_due() const {
  return std::min(agents_.next_due(), executor_.next_timer());
}

bool ForecastRun::Impl::settle(const std::function<bool()>& go_on) {
  do {
    agents_.run_due();
    while (executor_.run_one()) {
      ++forecast_.steps;
      if (go_on && !go_on()) return false;
    }
  } while (next_due() <= clock_.now());
  return true;
}

// What only its user keeps from starting is asked for and not waited for.
void ForecastRun::Impl::open_jobs(JobId only) {
  for (const auto& [id, job] : state().jobs()) {
    const bool wanted = !only.valid() || id == only;
    if (!wanted || (!waits(job) && !started_.contains(id))) continue;
    asked_.insert(id);
    if (waits(job) && !job.held) open_.insert(id);
  }
}

/// False: cut.
bool ForecastRun::Impl::run_forward(const ForecastLimits& limits, Time horizon) {
  if (!settle(limits.go_on)) return false;
  while (!open_.empty() && next_due() <= horizon) {
    clock_.set(next_due());
    if (!settle(limits.go_on)) return false;
  }
  return true;
}

Forecast ForecastRun::Impl::run(const ForecastLimits& limits, JobId only) {
  running_ = true;
  open_jobs(only);
  const Time horizon = clock_.now() + limits.horizon;
  forecast_.cut = !run_forward(limits, horizon);
  // A timer of the engine alone frees nothing: with the last end of an attempt all has happened.
  const bool more = agents_.next_due() != kNever;
  const bool ended_here = forecast_.cut || open_.empty();
  forecast_.looked_until = ended_here ? clock_.now() : more ? horizon : kNever;
  Blockers blockers(state(), clock_.now());
  for (const JobId id : asked_) {
    forecast_.jobs[id] = of(state().job(id), forecast_, blockers);
  }
  return std::move(forecast_);
}

JobForecast ForecastRun::Impl::of(const Job& job, const Forecast& forecast,
                                  Blockers& blockers) const {
  JobForecast result;
  result.env = state().ledger().environment(job.share);
  if (const auto start = started_.find(job.id); start != started_.end()) {
    result.outcome = ForecastOutcome::kStarts;
    result.at = start->second;
    return result;
  }
  result.outcome = ForecastOutcome::kNever;
  result.reason = state().reason_of(job.id);
  if (is_terminal(job.state)) {
    result.end = job.status_reason;
  } else if (forecast.cut) {
    result.outcome = ForecastOutcome::kCut;
    result.at = forecast.looked_until;
  } else if (!blockers.needs_a_person(job)) {
    const std::set<JobId>& jobs = blockers.of(job);
    result.waits_for_in_all = static_cast<std::int32_t>(jobs.size());
    for (const JobId id : jobs) {
      if (result.waits_for.size() < kMaxJobsNamed) result.waits_for.push_back(id);
    }
    if (!jobs.empty()) result.outcome = ForecastOutcome::kUnknown;
    if (forecast.looked_until != kNever) {
      result.outcome = ForecastOutcome::kLater;
      result.at = forecast.looked_until;
    }
  }
  return result;
}

ForecastRun::ForecastRun(StateExcerpt excerpt, Time now)
    : impl_(std::make_unique<Impl>(std::move(excerpt), now)) {}
ForecastRun::~ForecastRun() = default;

Result<Reply> ForecastRun::ask(Command command) { return impl_->ask(std::move(command)); }
bool ForecastRun::settle(const ForecastLimits& limits) { return impl_->settle(limits.go_on); }
std::int64_t ForecastRun::left_out() const { return impl_->left_out(); }
const std::vector<Event>& ForecastRun::events() const { return impl_->events(); }
const State& ForecastRun::state() const { return impl_->state(); }
Forecast ForecastRun::run(const ForecastLimits& limits, JobId only) {
  return impl_->run(limits, only);
}

Forecast make_forecast(StateExcerpt excerpt, Time now, const ForecastLimits& limits) {
  return ForecastRun(std::move(excerpt), now).run(limits);
}

}  // namespace gpuq::sim
