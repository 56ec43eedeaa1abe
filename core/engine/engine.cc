#include "core/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/engine/gather.h"
#include "core/engine/policy_change.h"
#include "core/engine/time_limits.h"
#include "core/engine/transaction.h"
#include "core/sched/planner.h"

namespace gpuq {

namespace {

struct Queued {
  Command command;
  ReplyFn reply;
};

/// A reply that waits for its batch's commit.
struct Answer {
  ReplyFn reply;
  Result<Reply> result;
};

Error unavailable(std::string message) { return {ErrorCode::kUnavailable, std::move(message)}; }

}  // namespace

class Engine::Impl {
 public:
  Impl(Store& store, AgentGateway& gateway, Observer& observer, Executor& executor,
       const Clock& clock, const EngineConfig& config)
      : store_(store),
        gateway_(gateway),
        observer_(observer),
        executor_(executor),
        clock_(clock),
        config_(config) {}

  Result<void> start();
  void resume(State state);
  void post(Command command, ReplyFn reply);
  void query(std::function<void(const State&)> query);
  void drain(std::function<void()> done);

  [[nodiscard]] bool read_only() const { return read_only_; }
  [[nodiscard]] const Error& read_only_reason() const { return read_only_reason_; }
  [[nodiscard]] const EngineStats& stats() const { return stats_; }
  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] bool idle() const;

 private:
  void hand_over(Executor::Task task);
  void accept(Queued queued);
  void schedule_pump();
  void pump();
  void run_queries();
  bool run_commands();
  void run_pass();
  void end_overdue();
  void refuse_all(const Error& error);
  void commit(Transaction& tx, std::vector<Answer> answers);
  void committed(const std::vector<Event>& events, const std::vector<Effect>& effects,
                 std::vector<Answer> answers);
  void failed(const Error& error, const std::vector<Answer>& answers);
  void reload();
  void probe_later();
  void schedule_tick(Time when);
  void schedule_all_ticks();
  void tick();
  [[nodiscard]] Time now();
  [[nodiscard]] bool commands_due() const;
  void finish_drain();

  Store& store_;
  AgentGateway& gateway_;
  Observer& observer_;
  Executor& executor_;
  const Clock& clock_;
  EngineConfig config_;
  State state_;
  PlanCache plan_cache_;
  TimeLimits time_limits_;
  EngineStats stats_;
  Plan plan_;
  std::size_t next_decision_ = 0;
  bool pass_needed_ = false;
  bool in_flight_ = false;
  bool commands_ran_last_ = false;
  bool started_ = false;
  bool read_only_ = false;
  Error read_only_reason_;
  bool lost_state_ = false;  ///< Read-only and the reload failed: nothing to show.
  Time next_tick_ = kNever;
  Time next_wakeup_ = kNever;  ///< When time alone may change what a pass decides.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::deque<Queued> queue_;
  Gather gather_;
  Time commit_began_{};
  std::deque<std::function<void(const State&)>> queries_;
  bool pump_scheduled_ = false;
  bool stopping_ = false;
  std::function<void()> drained_;
};

Time Engine::Impl::now() {
  // Core time never goes back, also not across a restart (docs/ARCHITECTURE.md, "Time").
  return std::max(clock_.now(), state_.last_time());
}

Result<void> Engine::Impl::start() {
  auto stored = store_.load(true);
  if (!stored) return stored.error();
  auto loaded = State::from_stored(std::move(*stored));
  if (!loaded) return loaded.error();
  state_ = std::move(*loaded);
  state_.set_default_grace(config_.default_grace);
  started_ = true;
  pass_needed_ = true;
  Transaction tx(state_, config_, now());
  Event event = tx.event(EventType::kServerStarted, "");
  event.detail = fmt::format("epoch {}", state_.identity().epoch);
  if (state_.policy().next_id == 1 && state_.policy().queues.empty()) {
    event.changes.emplace_back(PutPolicy{builtin_policy(state_.policy(), state_.nodes())});
  }
  // Nobody has spoken to this process yet; every agent registers anew.
  for (const Node& node : state_.nodes()) {
    if (node.link != NodeLink::kUp) continue;
    Node silent = node;
    silent.link = NodeLink::kUnreachable;
    event.changes.emplace_back(PutNode{std::move(silent)});
  }
  tx.emit(std::move(event));
  schedule_all_ticks();
  commit(tx, {});
  return {};
}

void Engine::Impl::resume(State state) {
  state_ = std::move(state);
  config_.default_grace = state_.default_grace();
  started_ = true;
  pass_needed_ = true;
  schedule_all_ticks();
  schedule_pump();
}

// Other threads reach the engine through the executor only: no lock here, and what is handed over
// in one turn of the loop makes one batch.
void Engine::Impl::hand_over(Executor::Task task) {
  executor_.post([alive = std::weak_ptr<bool>(alive_), task = std::move(task)] {
    if (!alive.expired()) task();
  });
}

void Engine::Impl::post(Command command, ReplyFn reply) {
  auto queued = std::make_shared<Queued>(Queued{std::move(command), std::move(reply)});
  hand_over([this, queued] { accept(std::move(*queued)); });
}

void Engine::Impl::accept(Queued queued) {
  if (stopping_) {
    queued.reply(unavailable("the server is stopping: try again in a moment"));
  } else if (queue_.size() >= config_.max_queued_commands) {
    queued.reply(
        Error{ErrorCode::kResourceExhausted,
              fmt::format("{} commands wait already: try again in a moment", queue_.size())});
  } else {
    queue_.push_back(std::move(queued));
    schedule_pump();
  }
}

void Engine::Impl::query(std::function<void(const State&)> query) {
  hand_over([this, query = std::move(query)] {
    queries_.push_back(query);
    schedule_pump();
  });
}

void Engine::Impl::drain(std::function<void()> done) {
  hand_over([this, done = std::move(done)] {
    stopping_ = true;
    drained_ = done;
    schedule_pump();
  });
}

void Engine::Impl::schedule_pump() {
  if (pump_scheduled_) return;
  pump_scheduled_ = true;
  hand_over([this] {
    pump_scheduled_ = false;
    pump();
  });
}

void Engine::Impl::pump() {
  if (in_flight_ || !started_) return;
  // What is in memory after a failed reload was never committed: nobody may see it.
  if (!lost_state_) run_queries();
  if (read_only_) {
    refuse_all(read_only_reason_);
    return finish_drain();
  }
  const bool pass_due = pass_needed_ || next_decision_ < plan_.decisions.size();
  // Commands and passes take turns, so that neither starves the other.
  if (!(pass_due && commands_ran_last_) && run_commands()) return;
  if (pass_due) {
    run_pass();
    return;
  }
  commands_ran_last_ = false;
  if (commands_due() || !queries_.empty()) return schedule_pump();
  finish_drain();
}

void Engine::Impl::run_queries() {
  std::deque<std::function<void(const State&)>> queries;
  queries.swap(queries_);
  for (const auto& query : queries) query(state_);
}

bool Engine::Impl::commands_due() const {
  return !queue_.empty() && gather_.done(queue_.size(), clock_.now());
}

bool Engine::Impl::run_commands() {
  if (!commands_due()) return false;
  std::deque<Queued> batch;
  while (!queue_.empty() && batch.size() < config_.max_batch_commands) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  Transaction tx(state_, config_, now());
  std::vector<Answer> answers;
  answers.reserve(batch.size());
  for (Queued& queued : batch) {
    ++stats_.commands;
    Result<Reply> result =
        std::visit([&](const auto& body) { return handle(tx, queued.command.actor, body); },
                   queued.command.body);
    answers.push_back({std::move(queued.reply), std::move(result)});
  }
  if (!tx.events().empty()) {
    finish_deletions(tx);
    archive_ended(tx, config_.keep_ended_jobs);
    pass_needed_ = true;
  }
  commands_ran_last_ = true;
  commit(tx, std::move(answers));
  return true;
}

void Engine::Impl::run_pass() {
  commands_ran_last_ = false;
  if (next_decision_ >= plan_.decisions.size() || plan_.state_version != state_.version()) {
    pass_needed_ = false;
    plan_ = make_plan(state_, now(), plan_cache_);
    next_decision_ = 0;
    ++stats_.passes;
    state_.set_reasons(plan_.reasons);
    if (plan_.decisions.empty()) time_limits_.see(state_, now());
    next_wakeup_ = std::min(plan_.next_wakeup, time_limits_.next_due(now()));
    schedule_tick(next_wakeup_);
  }
  if (plan_.decisions.empty()) return end_overdue();
  pass_needed_ = true;  // Until a pass finds nothing (O3, invariant 9).
  Transaction tx(state_, config_, now());
  for (std::size_t n = 0; n < config_.max_batch_decisions; ++n) {
    if (next_decision_ >= plan_.decisions.size()) break;
    carry_out(tx, plan_.decisions[next_decision_++]);
    ++stats_.decisions;
  }
  plan_.state_version = state_.version();
  commit(tx, {});
}

// J4. Only when a pass finds nothing to decide do the reasons hold.
void Engine::Impl::end_overdue() {
  const auto overdue = time_limits_.overdue(state_);
  if (overdue.empty()) return schedule_pump();
  pass_needed_ = true;
  Transaction tx(state_, config_, now());
  for (const auto& [id, code] : overdue) {
    fail_waiting_job(
        tx, "", id,
        fmt::format("Terminated by JobStateTimeLimit action due to reason: {}", to_string(code)),
        false);
    settle_dependants(tx, id);
  }
  commit(tx, {});
}

void Engine::Impl::refuse_all(const Error& error) {
  std::deque<Queued> batch;
  batch.swap(queue_);
  for (Queued& queued : batch) queued.reply(error);
}

void Engine::Impl::commit(Transaction& tx, std::vector<Answer> answers) {
  for (const Time when : tx.wakeups()) schedule_tick(when);
  for (const Event& event : tx.events()) time_limits_.note(event);
  CommitBatch batch;
  batch.rows = state_.take_changes();
  if (tx.events().empty() && batch.rows.empty()) {
    return committed({}, tx.effects(), std::move(answers));
  }
  batch.epoch = state_.identity().epoch;
  batch.time = tx.now();
  batch.counters = state_.counters();
  batch.events = tx.events();
  ++stats_.batches;
  in_flight_ = true;
  commit_began_ = clock_.now();
  store_.commit(std::move(batch),
                [this, alive = std::weak_ptr<bool>(alive_), events = std::move(tx.events()),
                 effects = std::move(tx.effects()),
                 answers = std::move(answers)](const Result<void>& result) mutable {
                  if (alive.expired()) return;
                  in_flight_ = false;
                  if (result) {
                    committed(events, effects, std::move(answers));
                  } else {
                    failed(result.error(), answers);
                  }
                });
}

void Engine::Impl::committed(const std::vector<Event>& events, const std::vector<Effect>& effects,
                             std::vector<Answer> answers) {
  if (!events.empty()) observer_.on_committed(events);
  for (Answer& answer : answers) answer.reply(std::move(answer.result));
  for (const Effect& effect : effects) effect(gateway_);
  const Time now = clock_.now();
  if (gather_.begin(answers.size(), queue_.size(), now - commit_began_, now)) {
    executor_.call_at(gather_.until(), [this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) schedule_pump();
    });
  }
  schedule_pump();
}

// Nothing of the batch may be seen: the memory is thrown away and loaded again.
void Engine::Impl::failed(const Error& error, const std::vector<Answer>& answers) {
  ++stats_.failed_commits;
  read_only_ = true;
  plan_ = {};
  next_decision_ = 0;
  time_limits_ = {};
  next_wakeup_ = kNever;
  const bool full = error.code == ErrorCode::kResourceExhausted;
  const bool for_good = error.code == ErrorCode::kAborted;
  read_only_reason_ = {
      full ? ErrorCode::kResourceExhausted : ErrorCode::kUnavailable,
      fmt::format("nothing can be stored, nothing was changed: {}{}", error.message,
                  for_good ? "" : "; running jobs go on, try again later")};
  reload();
  for (const Answer& answer : answers) answer.reply(read_only_reason_);
  observer_.on_read_only(read_only_reason_);
  if (!for_good) probe_later();
  schedule_pump();
}

void Engine::Impl::reload() {
  lost_state_ = true;
  auto stored = store_.load(false);
  if (!stored) return;
  const StoreIdentity identity = state_.identity();
  auto loaded = State::from_stored(std::move(*stored));
  GPUQ_CHECK_MSG(loaded.has_value(), loaded ? "" : loaded.error().message);
  state_ = std::move(*loaded);
  state_.set_default_grace(config_.default_grace);
  state_.identity() = identity;
  plan_cache_ = {};
  lost_state_ = false;
  next_tick_ = kNever;
  schedule_all_ticks();
}

void Engine::Impl::probe_later() {
  executor_.call_at(clock_.now() + config_.probe_interval,
                    [this, alive = std::weak_ptr<bool>(alive_)] {
                      if (alive.expired()) return;
                      store_.probe([this, alive](const Result<void>& result) {
                        if (alive.expired()) return;
                        if (result && lost_state_) reload();
                        if (!result || lost_state_) return probe_later();
                        read_only_ = false;
                        observer_.on_writable();
                        pass_needed_ = true;
                        schedule_all_ticks();
                        schedule_pump();
                      });
                    });
}

void Engine::Impl::schedule_tick(Time when) {
  if (when == kNever || when >= next_tick_) return;
  next_tick_ = when;
  executor_.call_at(when, [this, when, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired() || next_tick_ != when) return;
    next_tick_ = kNever;
    tick();
  });
}

void Engine::Impl::tick() {
  if (now() >= next_wakeup_) {
    next_wakeup_ = kNever;
    pass_needed_ = true;
  }
  // Refused while read-only: then the resumption schedules the next one.
  const auto done = [this](const Result<Reply>& result) {
    if (result) schedule_all_ticks();
  };
  queue_.push_back({Command{"", TickCommand{}}, done});
  schedule_pump();
}

// The earliest moment at which handle(TickCommand) or a pass would do something.
void Engine::Impl::schedule_all_ticks() {
  Time next = next_wakeup_;
  const Duration margin = config_.unconfirmed_stop_margin;
  for (const AttemptId id : state_.live_attempts()) {
    const Attempt& attempt = state_.attempt(id);
    if (attempt.stopping()) {
      next = std::min(next, attempt.stop_at + attempt.grace + margin);
    } else if (const auto timeout = state_.job_class(state_.job(attempt.job).cls).timeout;
               timeout && attempt.running_at != kNever) {
      next = std::min(next, attempt.running_at + *timeout + margin);
    }
  }
  if (!state_.backoffs().empty()) next = std::min(next, state_.backoffs().begin()->first);
  for (const auto& [key, token] : state_.tokens()) next = std::min(next, token.expires);
  schedule_tick(next);
}

bool Engine::Impl::idle() const {
  return queue_.empty() && queries_.empty() && !in_flight_ && !pass_needed_ && !pump_scheduled_ &&
         next_decision_ >= plan_.decisions.size();
}

void Engine::Impl::finish_drain() {
  if (!stopping_ || !queue_.empty()) return;
  if (const auto done = std::exchange(drained_, nullptr)) done();
}

Engine::Engine(Store& store, AgentGateway& gateway, Observer& observer, Executor& executor,
               const Clock& clock, EngineConfig config)
    : impl_(std::make_unique<Impl>(store, gateway, observer, executor, clock, config)) {}
Engine::~Engine() = default;

Result<void> Engine::start() { return impl_->start(); }
void Engine::resume(State state) { impl_->resume(std::move(state)); }
void Engine::post(Command command, ReplyFn reply) {
  impl_->post(std::move(command), std::move(reply));
}
void Engine::query(std::function<void(const State&)> query) { impl_->query(std::move(query)); }
void Engine::drain(std::function<void()> done) { impl_->drain(std::move(done)); }
bool Engine::read_only() const { return impl_->read_only(); }

const Error& Engine::read_only_reason() const { return impl_->read_only_reason(); }
const EngineStats& Engine::stats() const { return impl_->stats(); }
const StoreIdentity& Engine::identity() const { return impl_->state().identity(); }
bool Engine::idle() const { return impl_->idle(); }
const State& Engine::state() const { return impl_->state(); }

}  // namespace gpuq
