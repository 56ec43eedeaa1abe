#include "tests/property/case_text.h"

#include <fmt/format.h>

#include <sstream>
#include <variant>

#include "common/policy/policy_file.h"

namespace gpuq::property {

namespace {

std::string ms(Duration duration) { return fmt::format("{}ms", duration.count()); }

std::string text(const sim::SubmitStep& step) {
  const JobRequest& job = step.request;
  std::string line =
      fmt::format("submit: {{job: {}, share: {}, user: {}, runtime: {}, priority: {}", job.name,
                  job.share, step.user, ms(step.runtime), job.priority);
  if (job.instances != 1) line += fmt::format(", instances: {}", job.instances);
  if (job.grace) line += fmt::format(", grace: {}", ms(*job.grace));
  if (job.timeout) line += fmt::format(", timeout: {}", ms(*job.timeout));
  if (!job.preemptible) line += ", preemptible: false";
  if (job.exit_zero_after_stop_succeeds) line += ", exit_zero_after_stop: SUCCEEDED";
  if (job.preemption_retries) {
    line += fmt::format(", preemption_retries_before_termination: {}", *job.preemption_retries);
  }
  if (job.max_attempts != 1) line += fmt::format(", attempts: {}", job.max_attempts);
  if (job.backoff.count() > 0) line += fmt::format(", retry: {{backoff: {}}}", ms(job.backoff));
  std::string on;
  for (const auto& [name, condition] : step.depends_on) {
    on += fmt::format("{}{{job: {}, condition: {}}}", on.empty() ? "" : ", ", name,
                      to_string(condition));
  }
  if (!on.empty()) line += fmt::format(", depends_on: [{}]", on);
  if (job.held) line += ", hold: true";
  if (job.array) line += fmt::format(", array: \"{}\"", to_string(*job.array));
  if (step.start_delay.count() > 0) line += fmt::format(", start_delay: {}", ms(step.start_delay));
  if (step.checkpoint) line += fmt::format(", checkpoint: {}", ms(*step.checkpoint));
  std::string units;
  for (const auto& [unit, count] : job.units) units += (units.empty() ? "" : ", ") + unit;
  line += fmt::format(", resources: {{unit: [{}], count: {}", units,
                      to_string(job.units.front().second));
  if (job.cpus > 0) line += fmt::format(", cpus: {}", job.cpus);
  if (job.memory_mib > 0) line += fmt::format(", memory: {}MiB", job.memory_mib);
  if (!job.topology_label.empty()) {
    line += fmt::format(", topology: {{label: {}, required: {}}}", job.topology_label,
                        job.topology_required);
  }
  return line + "}}";
}

std::string text(const sim::UpdateStep& step) {
  return fmt::format("update: {{job: {}, priority: {}}}", step.job, step.priority);
}
std::string text(const sim::TerminateStep& step) { return fmt::format("terminate: {}", step.job); }
std::string text(const sim::HoldStep& step) {
  return fmt::format("{}: {}", step.held ? "hold" : "release", step.job);
}
std::string text(const sim::NodeStep& step) {
  static const char* const kNames[] = {"UP", "DOWN", "CORDONED", "DRAINING"};
  return fmt::format("node: {{name: {}, state: {}}}", step.node,
                     kNames[static_cast<std::size_t>(step.state)]);
}
std::string text(const sim::ShareStep& step) {
  std::string line = fmt::format("share: {{name: {}", step.share);
  if (step.capacity) line += fmt::format(", capacity: {}", to_string(*step.capacity));
  if (step.strategy) line += fmt::format(", strategy: {}", to_string(*step.strategy));
  if (step.borrow_limit) line += fmt::format(", borrow_limit: {}", *step.borrow_limit);
  if (step.drain) line += ", drain: true";
  if (step.min_runtime) line += fmt::format(", min_runtime: {}", ms(*step.min_runtime));
  if (step.head_wait_limit) line += fmt::format(", head_wait_limit: {}", ms(*step.head_wait_limit));
  if (step.user_order) line += fmt::format(", user_order: {}", to_string(*step.user_order));
  if (step.in_share_preemption) {
    line += fmt::format(", in_share_preemption: {}", *step.in_share_preemption);
  }
  return line + "}";
}
std::string text(const sim::FailStep& step) {
  return fmt::format("fail: {{job: {}, exit_code: {}}}", step.job, step.exit_code);
}
std::string text(const sim::RestartStep&) { return "restart: server"; }

}  // namespace

std::string to_yaml(const sim::Scenario& scenario) {
  std::string yaml = "scenario: " + scenario.title + "\ncluster:\n  nodes:\n";
  for (const Node& node : scenario.nodes) {
    yaml += fmt::format("    - {{name: {}, cpus: {}, memory: {}MiB", node.name, node.cpus,
                        node.memory_mib);
    for (const auto& [key, value] : node.labels) {
      yaml += fmt::format(", labels: {{{}: {}}}", key, value);
    }
    if (!node.devices.empty()) {
      yaml +=
          fmt::format(", gpus: {}, gpu_model: {}", node.devices.size(), node.devices.front().model);
    }
    yaml += "}\n";
  }
  yaml += "policy:\n";
  std::istringstream policy(gpuq::to_yaml(scenario.policy));
  for (std::string line; std::getline(policy, line);) yaml += "  " + line + "\n";
  yaml += fmt::format("defaults: {{grace: {}}}\ntimeline:\n", ms(scenario.default_grace));
  for (const sim::TimelineStep& step : scenario.timeline) {
    yaml += fmt::format("  - {{at: {}ms, {}}}\n", to_ms(step.at),
                        std::visit([](const auto& what) { return text(what); }, step.what));
  }
  return yaml;
}

}  // namespace gpuq::property
