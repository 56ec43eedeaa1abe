#include "server/rpc/forecasts.h"

#include <fmt/format.h>

#include <utility>

namespace gpuq::rpc {

Forecasts::Forecasts(Executor& executor, const Clock& clock, QueryFn query, ForecastConfig config)
    : executor_(executor),
      clock_(clock),
      query_(std::move(query)),
      config_(config),
      pool_(config.at_once) {}

bool Forecasts::serves(const Shared& shared, const State& state, JobId job) const {
  if (job.value >= shared.next_job) return false;  // It came later.
  const Duration age = clock_.now() - shared.begun;
  return age < (shared.version == state.version() ? config_.unchanged_for : config_.fresh_for);
}

void Forecasts::ask(const State& state, JobId job, ForecastFn done) {
  if (shared_ == nullptr || !serves(*shared_, state, job)) {
    auto shared = std::make_shared<Shared>();
    shared->version = state.version();
    shared->begun = clock_.now();
    shared->next_job = state.counters().next_job;
    shared->askers.push_back(std::move(done));
    auto forecast = std::make_shared<sim::Forecast>();
    shared_ = shared;
    submit(state, {{},
                   [forecast](sim::ForecastRun& run, const sim::ForecastLimits& limits) {
                     *forecast = run.run(limits);
                   },
                   [this, shared, forecast](const Result<>& result) {
                     if (result) shared->result = forecast;
                     answer(shared, result);
                   }});
  } else if (shared_->result != nullptr) {
    done(shared_->result);
  } else {
    shared_->askers.push_back(std::move(done));
  }
}

void Forecasts::answer(const std::shared_ptr<Shared>& shared, const Result<>& done) {
  if (!done && shared_ == shared) shared_ = nullptr;  // The next one may have more luck.
  for (ForecastFn& asker : std::exchange(shared->askers, {})) {
    if (done) {
      asker(shared->result);
    } else {
      asker(done.error());
    }
  }
}

void Forecasts::run_alone(const State& state, std::vector<JobId> also, RunFn run, DoneFn done) {
  submit(state, {std::move(also), std::move(run), std::move(done)});
}

void Forecasts::submit(const State& state, Request request) {
  if (stopping_) return request.done(Error{ErrorCode::kUnavailable, "the server is stopping"});
  if (running_ < config_.at_once) return begin(state, std::move(request));
  if (waiting_.size() >= config_.may_wait) {
    return request.done(
        Error{ErrorCode::kResourceExhausted,
              fmt::format("{} forecasts are being made or wait to be: try again in a moment",
                          running_ + waiting_.size())});
  }
  waiting_.push_back(std::move(request));
}

// The copy is made now and not when the request came: it is of the moment, and few are held.
void Forecasts::begin(const State& state, Request request) {
  ++running_;
  auto excerpt = std::make_shared<StateExcerpt>(state.excerpt(config_.most_jobs, request.also));
  const Time now = std::max(clock_.now(), state.last_time());
  pool_.post([this, now, excerpt, request = std::move(request)] {
    const Time until = clock_.now() + config_.budget;
    sim::ForecastLimits limits;
    limits.go_on = [this, until] { return !stopping_ && clock_.now() < until; };
    {
      sim::ForecastRun run(std::move(*excerpt), now);
      request.run(run, limits);
    }
    executor_.post([this, request] { ended(request); });
  });
}

void Forecasts::ended(const Request& request) {
  --running_;
  request.done({});
  if (waiting_.empty()) return;
  if (stopping_) {
    for (Request& left : std::exchange(waiting_, {})) {
      left.done(Error{ErrorCode::kUnavailable, "the server is stopping"});
    }
    return;
  }
  // Committed state only: as soon as there is one.
  auto next = std::make_shared<Request>(std::move(waiting_.front()));
  waiting_.pop_front();
  query_([this, next](const State& state) { submit(state, std::move(*next)); });
}

}  // namespace gpuq::rpc
