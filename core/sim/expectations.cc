#include "core/sim/expectations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/sim/forecast.h"

namespace gpuq::sim {

namespace {

constexpr std::size_t kWholeShare = 1'000'000'000;

std::string start_text(Time at) {
  return fmt::format("a start at {}s", static_cast<double>(to_ms(at)) / 1000);
}

std::string to_text(const JobForecast& forecast) {
  switch (forecast.outcome) {
    case ForecastOutcome::kStarts:
      return start_text(forecast.at);
    case ForecastOutcome::kUnknown:
      return "UNKNOWN";
    case ForecastOutcome::kNever:
      return "NEVER";
    case ForecastOutcome::kLater:
    case ForecastOutcome::kCut:
      return "LATER";
  }
  return "";
}

class Checker {
 public:
  Checker(const Expectation& expect, const State& state, const JobNames& names,
          std::vector<Failure>& failures)
      : expect_(expect), state_(state), names_(names), failures_(failures) {}

  void run(const StartOrderLog& started);

 private:
  void fail(const std::string& message) {
    const std::string when =
        expect_.at ? fmt::format("at {}s: ", static_cast<double>(to_ms(*expect_.at)) / 1000) : "";
    failures_.push_back({expect_.line, when + message});
  }
  [[nodiscard]] const Job* job(const std::string& name) {
    const auto it = names_.find(name);
    const Job* found = it == names_.end() ? nullptr : state_.find_job(it->second);
    if (found == nullptr) fail(fmt::format("job {} has not been submitted", name));
    return found;
  }
  [[nodiscard]] std::string name_of(JobId id) const {
    const Job* found = state_.find_job(id);
    return found == nullptr ? fmt::format("{}", id.value) : shown_name(state_, *found);
  }
  void running();
  void in_state(const std::vector<std::string>& jobs, JobState wanted);
  void not_running();
  void reasons();
  void forecasts();
  void preemptions();
  void held();
  void placed();
  void order(const StartOrderLog& started);

  const Expectation& expect_;
  const State& state_;
  const JobNames& names_;
  std::vector<Failure>& failures_;
};

void Checker::running() {
  if (!expect_.running) return;
  std::set<std::string> wanted(expect_.running->begin(), expect_.running->end());
  std::set<std::string> found;
  for (const auto& [id, record] : state_.jobs()) {
    if (record.state == JobState::kRunning) found.insert(shown_name(state_, record));
  }
  if (wanted == found) return;
  fail(fmt::format("running: expected [{}], found [{}]", fmt::join(wanted, ", "),
                   fmt::join(found, ", ")));
}

void Checker::in_state(const std::vector<std::string>& jobs, JobState wanted) {
  for (const std::string& name : jobs) {
    const Job* record = job(name);
    if (record == nullptr || state_.shown_state(*record) == wanted) continue;
    fail(fmt::format("job {}: expected {}, found {}{}", name, to_string(wanted),
                     to_string(state_.shown_state(*record)),
                     record->status_reason.empty() ? "" : " (" + record->status_reason + ")"));
  }
}

void Checker::not_running() {
  for (const std::string& name : expect_.not_running) {
    const auto it = names_.find(name);
    const Job* record = it == names_.end() ? nullptr : state_.find_job(it->second);
    if (record != nullptr && record->state == JobState::kRunning) {
      fail(fmt::format("job {}: expected not to run, it does", name));
    }
  }
}

void Checker::reasons() {
  for (const auto& [name, wanted] : expect_.reason) {
    const Job* record = job(name);
    if (record == nullptr) continue;
    const Reason reason = state_.reason_of(record->id);
    if (wanted == to_string(reason.code)) continue;
    fail(fmt::format("reason of {}: expected {}, found {} ({})", name, wanted,
                     reason.code == ReasonCode::kNone ? "none" : to_string(reason.code),
                     reason.code == ReasonCode::kNone ? to_string(record->state)
                                                      : reason_text(reason, state_.policy())));
  }
}

void Checker::forecasts() {
  if (expect_.forecast.empty() || !expect_.at) return;
  const Forecast made = make_forecast(state_.excerpt(kWholeShare), *expect_.at);
  for (const auto& [name, wanted] : expect_.forecast) {
    const Job* record = job(name);
    if (record == nullptr) continue;
    const auto it = made.jobs.find(record->id);
    const std::string found =
        it == made.jobs.end() ? to_string(record->state) : to_text(it->second);
    const std::string text = wanted.at ? start_text(*wanted.at) : wanted.word;
    if (found == text) continue;
    fail(fmt::format("forecast of {}: expected {}, found {}", name, text, found));
  }
}

void Checker::preemptions() {
  for (const auto& [name, wanted] : expect_.preempted) {
    const Job* record = job(name);
    if (record == nullptr || record->preemptions == wanted) continue;
    fail(fmt::format("job {}: expected {} preemptions, found {}", name, wanted,
                     record->preemptions));
  }
  for (const auto& [name, wanted] : expect_.preempted_by) {
    const Job* record = job(name);
    if (record == nullptr) continue;
    const auto records = state_.preemptions_of(record->id);
    if (records.empty()) {
      fail(fmt::format("job {}: expected a preemption by {}, found none", name, wanted.job));
      continue;
    }
    const Preemption& last = *records.back();
    const std::string by = name_of(last.beneficiary);
    if (by == wanted.job && last.rule == wanted.rule) continue;
    fail(fmt::format("job {}: expected a preemption by {} ({}), found {} ({})", name, wanted.job,
                     to_string(wanted.rule), by, to_string(last.rule)));
  }
}

void Checker::held() {
  for (const auto& [name, wanted] : expect_.held) {
    const auto share = share_named(state_.policy(), name);
    if (!share) {
      fail(share.error().message);
      continue;
    }
    Amount sum;
    for (const Unit& unit : state_.policy().units) {
      sum += state_.ledger().held((*share)->id, unit.id, View::kNow);
    }
    if (sum == wanted) continue;
    fail(fmt::format("share {}: expected {} held, found {}", name, to_string(wanted),
                     to_string(sum)));
  }
}

void Checker::placed() {
  for (const auto& [name, wanted] : expect_.placed) {
    const Job* record = job(name);
    if (record == nullptr) continue;
    std::set<std::string> nodes;
    if (record->attempt.valid()) {
      for (const AttemptInstance& instance : state_.attempt(record->attempt).instances) {
        nodes.insert(state_.node(instance.use.node).name);
      }
    }
    if (nodes == std::set<std::string>(wanted.begin(), wanted.end())) continue;
    fail(fmt::format("job {}: expected on [{}], found on [{}]", name, fmt::join(wanted, ", "),
                     fmt::join(nodes, ", ")));
  }
}

void Checker::order(const StartOrderLog& started) {
  if (expect_.started_order.empty()) return;
  std::vector<std::string> found;
  const std::set<std::string> asked(expect_.started_order.begin(), expect_.started_order.end());
  for (const JobId id : started.order()) {
    const std::string name = name_of(id);
    if (asked.contains(name)) found.push_back(name);
  }
  if (found == expect_.started_order) return;
  fail(fmt::format("started_order: expected [{}], found [{}]",
                   fmt::join(expect_.started_order, ", "), fmt::join(found, ", ")));
}

void Checker::run(const StartOrderLog& started) {
  running();
  in_state(expect_.pending, JobState::kPending);
  in_state(expect_.runnable, JobState::kRunnable);
  in_state(expect_.starting, JobState::kStarting);
  in_state(expect_.succeeded, JobState::kSucceeded);
  in_state(expect_.failed, JobState::kFailed);
  not_running();
  reasons();
  forecasts();
  preemptions();
  held();
  placed();
  order(started);
}

}  // namespace

void StartOrderLog::see(const Event& event) {
  if (event.type != EventType::kAttemptScheduled) return;
  if (seen_.insert(event.job).second) order_.push_back(event.job);
}

void check_expectation(const Expectation& expect, const State& state, const JobNames& names,
                       const StartOrderLog& started, std::vector<Failure>& failures) {
  Checker(expect, state, names, failures).run(started);
}

Result<const Share*> share_named(const PolicyTables& policy, const std::string& name) {
  const Share* found = nullptr;
  for (const Share& share : policy.shares) {
    const std::string full = policy.queue(share.queue)->def.name + "/" + share.def.name;
    if (share.def.name != name && full != name) continue;
    if (found != nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("several queues have a share '{}': write QUEUE/SHARE", name)};
    }
    found = &share;
  }
  if (found == nullptr) {
    return Error{ErrorCode::kNotFound, fmt::format("there is no share '{}'", name)};
  }
  return found;
}

Result<QueueDef> changed_share(const PolicyTables& policy, const ShareStep& step) {
  const auto share = share_named(policy, step.share);
  if (!share) return share.error();
  ShareDef def = (*share)->def;
  if (step.capacity) {
    if (def.capacity_limits.size() != 1) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("share '{}' counts {} units: capacity needs exactly one", step.share,
                               def.capacity_limits.size())};
    }
    def.capacity_limits.front().max_capacity = *step.capacity;
  }
  def.strategy = step.strategy.value_or(def.strategy);
  def.borrow_limit = step.borrow_limit.value_or(def.borrow_limit);
  if (def.strategy != SharingStrategy::kLendAndBorrow) def.borrow_limit = -1;
  def.in_share_preemption = step.in_share_preemption.value_or(def.in_share_preemption);
  def.min_runtime = step.min_runtime.value_or(def.min_runtime);
  if (step.head_wait_limit) def.head_wait_limit = step.head_wait_limit;
  if (step.grace) def.grace = step.grace;
  def.user_order = step.user_order.value_or(def.user_order);
  def.enabled = step.enabled.value_or(def.enabled);
  QueueDef queue;
  queue.name = policy.queue((*share)->queue)->def.name;
  queue.shares.push_back(std::move(def));
  return queue;
}

std::string shown_name(const State& state, const Job& job) {
  const JobArray* array = state.array_of(job.id);
  return array == nullptr ? job.name : member_name(job.name, array->index(job.id));
}

LogLine log_line(const Event& event, const State& state) {
  LogLine line;
  line.at = event.at;
  line.event = to_string(event.type);
  line.reason = event.detail;
  if (const Job* job = state.find_job(event.job)) line.job = shown_name(state, *job);
  if (const Share* share = state.policy().share(event.share)) line.share = share->def.name;
  if (const Attempt* attempt = state.find_attempt(event.attempt)) {
    line.attempt = attempt->number;
    for (const AttemptInstance& instance : attempt->instances) {
      line.nodes.push_back(state.node(instance.use.node).name);
    }
  }
  if (event.node.valid()) line.nodes.push_back(state.node(event.node).name);
  return line;
}

}  // namespace gpuq::sim
