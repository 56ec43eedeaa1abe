#include "core/sim/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/sim/expectations.h"
#include "core/sim/summary.h"
#include "core/sim/world.h"

namespace gpuq::sim {

namespace {

EngineConfig engine_config(const Scenario& scenario, const RunOptions& options) {
  EngineConfig config;
  config.default_grace = scenario.default_grace;
  config.check_invariants = options.check_invariants;
  config.max_batch_commands = 1'000'000'000;  // What has one `at` is one batch.
  config.max_queued_commands = 1'000'000'000;
  config.keep_ended_jobs = 1'000'000'000;
  config.max_shares_per_queue = 1'000'000;
  config.max_units_per_share = 1'000;
  return config;
}

class Runner {
 public:
  Runner(const Scenario& scenario, const RunOptions& options)
      : scenario_(scenario),
        options_(options),
        world_(engine_config(scenario, options),
               [this](const std::vector<Event>& events) { record(events); }),
        meter_(options.samples,
               [this](AttemptId attempt) { return world_.agents().repeated(attempt); }) {}

  Result<RunResult> run();

 private:
  Result<void> set_up();
  void apply(const TimelineStep& at, const SubmitStep& step);
  void apply(const TimelineStep& at, const UpdateStep& step);
  void apply(const TimelineStep& at, const TerminateStep& step);
  void apply(const TimelineStep& at, const HoldStep& step);
  void apply(const TimelineStep& at, const NodeStep& step);
  void apply(const TimelineStep& at, const ShareStep& step);
  void apply(const TimelineStep& at, const FailStep& step);
  void apply(const TimelineStep& at, const RestartStep& step);
  void post(const TimelineStep& at, CommandBody body);
  void wrong(const TimelineStep& at, const std::string& message);
  [[nodiscard]] std::optional<JobId> find(const TimelineStep& at, const std::string& job);
  void record(const std::vector<Event>& events);
  void run_until(Time end, bool to_the_end);
  void check(Time at);

  const Scenario& scenario_;
  const RunOptions& options_;
  World world_;
  Meter meter_;
  RunResult result_;
  JobNames names_;
  StartOrderLog started_;
  std::optional<Error> error_;
  std::int64_t submitted_ = 0;
  std::size_t next_step_ = 0;
  std::size_t next_expect_ = 0;
};

void Runner::wrong(const TimelineStep& at, const std::string& message) {
  if (error_) return;
  error_ = Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}:{}: {}", at.traced ? scenario_.trace_file : scenario_.file,
                             at.line, message)};
}

Result<void> Runner::set_up() {
  for (const Node& node : scenario_.nodes) world_.agents().add_node(node);
  if (auto started = world_.start(); !started) return started;
  std::optional<Error> failed;
  ApplyPolicyCommand apply;
  apply.doc = scenario_.policy;
  apply.prune = true;
  world_.post({"simulate", apply}, [&failed](Result<Reply> reply) {
    if (!reply) {
      failed = reply.error();
      return;
    }
    for (const PolicyIssue& issue : reply->issues) {
      if (issue.is_error && !failed) {
        failed =
            Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", issue.path, issue.message)};
      }
    }
  });
  world_.settle();
  if (failed) {
    failed->message = fmt::format("{}: {}", scenario_.file, failed->message);
    return *failed;
  }
  return {};
}

void Runner::post(const TimelineStep& at, CommandBody body) {
  world_.post({"simulate", std::move(body)}, [this, &at](Result<Reply> reply) {
    if (!reply) return wrong(at, reply.error().message);
    for (const PolicyIssue& issue : reply->issues) {
      if (issue.is_error) wrong(at, issue.message);
    }
  });
}

std::optional<JobId> Runner::find(const TimelineStep& at, const std::string& job) {
  const auto it = names_.find(job);
  if (it != names_.end()) return it->second;
  wrong(at, fmt::format("job '{}' has not been submitted by then", job));
  return std::nullopt;
}

void Runner::apply(const TimelineStep& at, const SubmitStep& step) {
  SubmitCommand command;
  command.user = step.user;
  command.jobs.push_back(step.request);
  for (const auto& [name, condition] : step.depends_on) {
    const auto on = find(at, name);
    if (!on) return;
    command.jobs.front().depends_on.push_back({*on, condition});
  }
  // Ids are given in order of submission, and nobody else submits here: known before the commit, so
  // that later steps of this instant can name the job.
  const JobArray array{JobId(++submitted_), step.request.array.value_or(ArrayRange())};
  const JobId id = array.id;
  const Behaviour behaviour{step.runtime, step.start_delay, step.checkpoint};
  names_[step.request.name] = id;
  world_.agents().set_behaviour(id, behaviour);
  for (std::int32_t k = 0; step.request.array && k < array.size(); ++k, ++submitted_) {
    names_[member_name(step.request.name, array.index(array.member(k)))] = array.member(k);
    world_.agents().set_behaviour(array.member(k), behaviour);
  }
  world_.post({"simulate", std::move(command)}, [this, &at, id](Result<Reply> reply) {
    if (!reply) return wrong(at, reply.error().message);
    if (reply->jobs.front() != id) wrong(at, "an earlier submission was refused");
  });
}

void Runner::apply(const TimelineStep& at, const UpdateStep& step) {
  if (const auto job = find(at, step.job)) post(at, UpdateJobCommand{*job, step.priority});
}

void Runner::apply(const TimelineStep& at, const TerminateStep& step) {
  if (const auto job = find(at, step.job)) post(at, CancelCommand{*job, "terminated"});
}

void Runner::apply(const TimelineStep& at, const HoldStep& step) {
  if (const auto job = find(at, step.job)) {
    post(at, UpdateJobCommand{*job, std::nullopt, step.held});
  }
}

void Runner::apply(const TimelineStep& at, const NodeStep& step) {
  if (world_.state().find_node(step.node) == nullptr) {
    return wrong(at, fmt::format("node '{}' does not exist", step.node));
  }
  switch (step.state) {
    case NodeStepState::kUp:
      if (!world_.agents().alive(step.node)) world_.agents().set_alive(step.node, true);
      return post(at, SetNodeAdminCommand{step.node, NodeAdmin::kOpen});
    case NodeStepState::kDown:
      return world_.agents().set_alive(step.node, false);
    case NodeStepState::kCordoned:
      return post(at, SetNodeAdminCommand{step.node, NodeAdmin::kCordoned});
    case NodeStepState::kDraining:
      return post(at, SetNodeAdminCommand{step.node, NodeAdmin::kDraining});
  }
}

void Runner::apply(const TimelineStep& at, const ShareStep& step) {
  const auto share = changed_share(world_.state().policy(), step);
  if (!share) return wrong(at, share.error().message);
  ApplyPolicyCommand command;
  command.partial = true;
  command.must_exist = true;
  command.drain = step.drain;
  command.doc.queues = std::vector<QueueDef>{*share};
  post(at, std::move(command));
}

void Runner::apply(const TimelineStep& at, const FailStep& step) {
  if (const auto job = find(at, step.job)) world_.agents().fail(*job, step.exit_code);
}

void Runner::apply(const TimelineStep& at, const RestartStep&) {
  world_.settle();
  if (auto restarted = world_.restart(); !restarted) wrong(at, restarted.error().message);
}

void Runner::record(const std::vector<Event>& events) {
  const State& state = world_.state();
  for (const Event& event : events) {
    meter_.see(event, state);
    started_.see(event);
    if (!options_.keep_log) continue;
    result_.log.push_back(log_line(event, state));
  }
}

void Runner::check(Time at) {
  while (next_expect_ < scenario_.expect.size()) {
    const Expectation& expect = scenario_.expect[next_expect_];
    if (!expect.at || *expect.at > at) return;
    check_expectation(expect, world_.state(), names_, started_, result_.failures);
    ++next_expect_;
  }
}

void Runner::run_until(Time end, bool to_the_end) {
  while (!error_) {
    Time next = world_.next_due();
    if (next_step_ < scenario_.timeline.size()) {
      next = std::min(next, scenario_.timeline[next_step_].at);
    }
    if (next_expect_ < scenario_.expect.size() && scenario_.expect[next_expect_].at) {
      next = std::min(next, *scenario_.expect[next_expect_].at);
    }
    if (next == kNever || (!to_the_end && next > end)) return;
    // A timer that finds all jobs ended is no part of the run.
    const State& state = world_.state();
    if (next > end && state.ended_jobs().size() == state.jobs().size()) return;
    meter_.advance(next, world_.state());
    world_.clock().set(next);
    world_.agents().run_due();
    while (next_step_ < scenario_.timeline.size() && scenario_.timeline[next_step_].at <= next) {
      const TimelineStep& step = scenario_.timeline[next_step_++];
      std::visit([&](const auto& what) { apply(step, what); }, step.what);
    }
    world_.settle();
    check(next);
  }
}

Result<RunResult> Runner::run() {
  if (auto ready = set_up(); !ready) return ready.error();
  result_.log.clear();
  Time end{};
  for (const TimelineStep& step : scenario_.timeline) end = std::max(end, step.at);
  for (const Expectation& expect : scenario_.expect) end = std::max(end, expect.at.value_or(end));
  const bool whole_run = std::any_of(scenario_.expect.begin(), scenario_.expect.end(),
                                     [](const Expectation& e) { return !e.at.has_value(); });
  run_until(end, whole_run || scenario_.expect.empty());
  if (error_) return *error_;
  for (; next_expect_ < scenario_.expect.size(); ++next_expect_) {
    check_expectation(scenario_.expect[next_expect_], world_.state(), names_, started_,
                      result_.failures);
  }
  result_.summary = meter_.summary(world_.state());
  result_.series = meter_.series();
  return std::move(result_);
}

}  // namespace

Result<RunResult> run_scenario(const Scenario& scenario, const RunOptions& options) {
  return Runner(scenario, options).run();
}

}  // namespace gpuq::sim
