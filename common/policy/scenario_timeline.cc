// The timeline of a scenario.
#include <fmt/format.h>

#include <algorithm>

#include "common/policy/job_reader.h"
#include "common/policy/policy_reader.h"
#include "common/policy/scenario_reader.h"
#include "core/base/text.h"

namespace gpuq {

namespace {

constexpr std::int64_t kMaxCopies = 1'000'000;

std::vector<std::pair<std::string, Amount>> requested_units(const JobFile& job, bool short_form) {
  std::vector<std::pair<std::string, Amount>> units;
  const Amount count = job.count.value_or(Amount::units(1));
  for (const std::string& unit : job.units) units.emplace_back(unit, count);
  if (!units.empty()) return units;
  if (short_form) return {{kShortFormUnit, job.gpus.value_or(Amount::units(1))}};
  if (job.gpus) return {{"", *job.gpus}};
  return units;
}

JobRequest to_request(const JobFile& job, bool short_form) {
  JobRequest request;
  request.name = job.name.value_or("");
  request.queue = job.queue.value_or("");
  request.share = job.share.value_or("");
  request.priority = job.priority.value_or(0);
  request.units = requested_units(job, short_form);
  request.instances = job.instances.value_or(1);
  request.cpus = job.cpus.value_or(0);
  request.memory_mib = job.memory_mib.value_or(0);
  request.topology_label = job.topology_label.value_or("");
  request.topology_required = job.topology_required;
  request.timeout = job.timeout;
  request.expected_run_time = job.expected_run_time;
  request.grace = job.grace;
  request.preemptible = job.preemptible.value_or(true);
  request.exit_zero_after_stop_succeeds = job.exit_zero_after_stop_succeeds.value_or(false);
  request.preemption_retries = job.preemption_retries;
  request.max_attempts = job.attempts.value_or(1);
  request.exit_rules = job.exit_rules;
  request.backoff = job.backoff.value_or(Duration(0));
  request.held = job.hold;
  request.array = job.array;
  return request;
}

/// Keys that a submit has beside those of a job file, most of them shorter ways to say the same.
void read_short_keys(MapReader& map, JobFile& job) {
  if (map.require("job") && !map.has("name")) {
    read_job_name(map, "job", job);
  } else if (map.has("name")) {
    map.error("name", "the job's name is given by the key 'job'");
  }
  const auto both = [&](const char* key, bool given_in_section, const char* section) {
    if (map.find(key) != nullptr && given_in_section) {
      map.error(key, fmt::format("is given under {} too: keep one", section));
    }
  };
  both("gpus", job.gpus || job.count || !job.units.empty(), "resources");
  Amount gpus;
  if (map.amount("gpus", gpus)) job.gpus = gpus;
  check_count(map, "gpus", job.gpus);
  both("instances", job.instances.has_value(), "resources");
  map.integer("instances", job.instances, 1, kMaxInstances);
  both("attempts", job.attempts.has_value(), "retry");
  map.integer("attempts", job.attempts, 1, 10);
  both("grace", job.grace.has_value(), "preemption");
  map.duration("grace", job.grace, std::chrono::hours(24));
  both("preemptible", job.preemptible.has_value(), "preemption");
  bool preemptible = true;
  if (map.boolean("preemptible", preemptible)) job.preemptible = preemptible;
  both("preemption_retries_before_termination", job.preemption_retries.has_value(), "preemption");
  map.integer("preemption_retries_before_termination", job.preemption_retries, 0, 1'000'000);
}

void check_queue_and_share(MapReader& map, const JobFile& job, ScenarioReader& reader) {
  const auto& queues = reader.scenario.policy.queues;
  if (!queues || queues->empty()) return;  // An issue of its own.
  if (!job.queue && queues->size() > 1) {
    map.error_here("needs the key 'queue': the policy has several queues");
    return;
  }
  const auto queue =
      job.queue ? std::ranges::find(*queues, *job.queue, &QueueDef::name) : queues->begin();
  if (queue == queues->end()) {
    map.error("queue", fmt::format("there is no queue {}", quote(*job.queue)));
    return;
  }
  if (!job.share) {
    if (queue->shares.size() > 1) {
      map.error_here("needs the key 'share': the queue has several quota shares");
    }
  } else if (std::ranges::find(queue->shares, *job.share, &ShareDef::name) == queue->shares.end()) {
    map.error("share", fmt::format("queue {} has no share {}", queue->name, quote(*job.share)));
  }
}

void check_units(MapReader& map, const JobFile& job, ScenarioReader& reader) {
  const auto& units = reader.scenario.policy.units;
  for (const std::string& unit : job.units) {
    if (units && std::ranges::find(*units, unit, &UnitDef::name) == units->end()) {
      map.error("resources", fmt::format("there is no capacity unit {}", quote(unit)));
    }
  }
}

void add_submit(const YamlNode& node, const sim::SubmitStep& step,
                std::optional<std::int64_t> copies, sim::TimelineStep at, const std::string& path,
                ScenarioReader& reader) {
  for (std::int64_t i = 0; i < copies.value_or(1); ++i) {
    sim::SubmitStep copy = step;
    if (copies) copy.request.name += fmt::format("-{}", i);
    const auto [it, fresh] = reader.jobs.emplace(copy.request.name, node.at.line);
    if (!fresh) {
      reader.add_error_at(node, path,
                          fmt::format("job {} is submitted twice, first in line {}",
                                      quote(copy.request.name), it->second));
      return;
    }
    if (copy.request.array) {
      const JobArray array{JobId(), *copy.request.array};
      for (std::int32_t k = 0; k < array.size(); ++k) {
        reader.jobs.emplace(sim::member_name(copy.request.name, array.index(array.member(k))),
                            node.at.line);
      }
    }
    at.what = std::move(copy);
    reader.scenario.timeline.push_back(at);
  }
}

void read_submit(const YamlNode& node, const std::string& path, const sim::TimelineStep& at,
                 ScenarioReader& reader) {
  MapReader map(node, path, reader.issues);
  JobFile job;
  sim::SubmitStep step;
  step.runtime = reader.default_runtime;
  read_job_keys(map, job, reader.issues);
  read_short_keys(map, job);
  map.duration("runtime", step.runtime);
  if (map.text("user", step.user) && step.user.empty()) map.error("user", "is empty: name a user");
  map.duration("start_delay", step.start_delay);
  map.duration("checkpoint", step.checkpoint);
  std::optional<std::int64_t> copies;
  map.integer("copies", copies, std::int64_t{1}, kMaxCopies);
  map.finish();
  if (step.checkpoint && *step.checkpoint <= Duration(0)) {
    map.error("checkpoint", "must be longer than 0s: leave it out for no checkpoints");
  }
  for (const JobDependency& on : job.depends_on) {
    reader.check_job(node, path, on.job);
    step.depends_on.emplace_back(on.job, on.condition);
  }
  check_queue_and_share(map, job, reader);
  check_units(map, job, reader);
  step.request = to_request(job, reader.short_form);
  add_submit(node, step, copies, at, path, reader);
}

sim::UpdateStep read_update(const YamlNode& node, const std::string& path, ScenarioReader& reader) {
  MapReader map(node, path, reader.issues);
  sim::UpdateStep step;
  map.require("job");
  if (map.text("job", step.job)) reader.check_job(node, path, step.job);
  map.require("priority");
  map.integer("priority", step.priority, 0, kMaxPriority);
  map.finish();
  return step;
}

sim::NodeStep read_node_step(const YamlNode& node, const std::string& path,
                             ScenarioReader& reader) {
  MapReader map(node, path, reader.issues);
  sim::NodeStep step;
  map.require("name");
  if (map.text("name", step.node)) reader.check_node(node, path, step.node);
  map.require("state");
  map.word("state", step.state,
           {{"UP", sim::NodeStepState::kUp},
            {"DOWN", sim::NodeStepState::kDown},
            {"CORDONED", sim::NodeStepState::kCordoned},
            {"DRAINING", sim::NodeStepState::kDraining}});
  map.finish();
  return step;
}

sim::ShareStep read_share_step(const YamlNode& node, const std::string& path,
                               ScenarioReader& reader) {
  MapReader map(node, path, reader.issues);
  sim::ShareStep step;
  map.require("name");
  const bool known = map.text("name", step.share) && reader.check_share(node, path, step.share);
  Amount capacity;
  if (map.amount("capacity", capacity)) step.capacity = capacity;
  if (step.capacity && known && reader.shares[step.share] != 1) {
    map.error("capacity", "the share has limits of several units: this key changes the only one");
  }
  SharingStrategy strategy{};
  if (map.word("strategy", strategy, kStrategyWords)) step.strategy = strategy;
  map.integer("borrow_limit", step.borrow_limit, -1, kMaxBorrowPercent);
  bool flag = false;
  if (map.boolean("in_share_preemption", flag)) step.in_share_preemption = flag;
  map.duration("min_runtime", step.min_runtime);
  map.duration("head_wait_limit", step.head_wait_limit);
  map.duration("grace", step.grace, std::chrono::hours(24));
  UserOrder order{};
  if (map.word("user_order", order, kUserOrderWords)) step.user_order = order;
  if (map.word("state", flag, kEnabledWords)) step.enabled = flag;
  map.boolean("drain", step.drain);
  map.finish();
  return step;
}

sim::FailStep read_fail(const YamlNode& node, const std::string& path, ScenarioReader& reader) {
  MapReader map(node, path, reader.issues);
  sim::FailStep step;
  map.require("job");
  if (map.text("job", step.job)) reader.check_job(node, path, step.job);
  map.integer("exit_code", step.exit_code, 1, 255);
  map.finish();
  return step;
}

void read_entry(const YamlNode& item, const std::string& path, ScenarioReader& reader) {
  MapReader map(item, path, reader.issues);
  Duration at{0};
  map.require("at");
  map.duration("at", at);
  sim::TimelineStep step{Time(at), item.at.line, false, sim::RestartStep{}};
  int actions = 0;
  const auto take = [&](const char* key) {
    const YamlNode* node = map.find(key);
    actions += int{node != nullptr};
    return node;
  };
  const std::size_t steps_before = reader.scenario.timeline.size();
  auto& timeline = reader.scenario.timeline;
  const auto add = [&](auto what) {
    step.what = std::move(what);
    timeline.push_back(step);
  };
  if (const YamlNode* n = take("submit")) read_submit(*n, map.path_of("submit"), step, reader);
  if (const YamlNode* n = take("update")) add(read_update(*n, map.path_of("update"), reader));
  if (const YamlNode* n = take("node")) add(read_node_step(*n, map.path_of("node"), reader));
  if (const YamlNode* n = take("share")) add(read_share_step(*n, map.path_of("share"), reader));
  if (const YamlNode* n = take("fail")) add(read_fail(*n, map.path_of("fail"), reader));
  const auto job_of = [&](const char* key, const YamlNode& node) {
    std::string job;
    if (map.text(key, job)) reader.check_job(node, map.path_of(key), job);
    return job;
  };
  if (const YamlNode* n = take("terminate")) add(sim::TerminateStep{job_of("terminate", *n)});
  if (const YamlNode* n = take("hold")) add(sim::HoldStep{job_of("hold", *n), true});
  if (const YamlNode* n = take("release")) add(sim::HoldStep{job_of("release", *n), false});
  if (take("restart") != nullptr) {
    bool server = true;
    map.word("restart", server, {{"server", true}});
    add(sim::RestartStep{});
  }
  map.finish();
  if (actions != 1 && item.kind == YamlNode::Kind::kMap) {
    map.error_here(
        "needs exactly one of submit, update, terminate, hold, release, node, share, fail, "
        "restart");
    timeline.resize(steps_before, step);
  }
}

}  // namespace

void read_timeline(MapReader& root, ScenarioReader& reader) {
  root.list("timeline",
            [&](const YamlNode& item, const std::string& path) { read_entry(item, path, reader); });
  std::ranges::stable_sort(reader.scenario.timeline, {}, &sim::TimelineStep::at);
}

}  // namespace gpuq
