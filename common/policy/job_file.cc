#include "common/policy/job_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/policy/job_reader.h"
#include "core/base/text.h"

namespace gpuq {

namespace {

using Issues = std::vector<FileIssue>;

constexpr Duration kMaxTimeout = std::chrono::hours(24 * 365);
constexpr Duration kMaxGrace = std::chrono::hours(24);
constexpr std::size_t kMaxExitRules = 5;
constexpr Amount kMaxCount = Amount::units(1'000'000);

void read_units(MapReader& map, JobFile& job) {
  const YamlNode* node = map.find("unit");
  if (node == nullptr) return;
  if (node->kind == YamlNode::Kind::kList) {
    map.texts("unit", job.units);
    if (job.units.empty()) map.error("unit", "the list is empty: name a unit or leave the key out");
  } else {
    std::string unit;
    if (map.text("unit", unit)) job.units = {unit};
  }
  if (job.units.size() > 8) map.error("unit", "names more than 8 units");
}

void read_topology(const YamlNode& node, const std::string& path, JobFile& job, Issues& issues) {
  MapReader map(node, path, issues);
  map.require("label");
  map.text("label", job.topology_label);
  map.boolean("required", job.topology_required);
  if (job.topology_label && (job.topology_label->empty() || job.topology_label->size() > 128)) {
    map.error("label", "is the name of a node label, 1 to 128 bytes");
  }
  map.finish();
}

void read_resources(const YamlNode& node, const std::string& path, JobFile& job, Issues& issues) {
  MapReader map(node, path, issues);
  read_units(map, job);
  Amount amount;
  if (map.amount("count", amount)) job.count = amount;
  if (map.amount("gpus", amount)) job.gpus = amount;
  check_count(map, "count", job.count);
  check_count(map, "gpus", job.gpus);
  map.integer("instances", job.instances, 1, kMaxInstances);
  map.integer("cpus", job.cpus, 0, 100'000);
  std::int64_t memory = 0;
  if (map.memory_mib("memory", memory)) job.memory_mib = memory;
  if (const YamlNode* topology = map.find("topology")) {
    read_topology(*topology, map.path_of("topology"), job, issues);
  }
  if (map.has("gpus") && (map.has("unit") || map.has("count"))) {
    map.error("gpus", "excludes unit and count: give one or the other");
  }
  if (map.has("count") && !map.has("unit") && !map.has("gpus")) {
    map.error("count", "counts what? Name the unit, or write gpus instead");
  }
  map.finish();
}

void read_exit_rule(const YamlNode& node, const std::string& path, std::vector<ExitRule>& rules,
                    Issues& issues) {
  MapReader map(node, path, issues);
  ExitRule rule;
  map.text("on_status_reason", rule.on_status_reason);
  map.text("on_exit_code", rule.on_exit_code);
  map.require("action");
  map.word("action", rule.action, {{"RETRY", RetryAction::kRetry}, {"EXIT", RetryAction::kExit}});
  if (!map.has("on_status_reason") && !map.has("on_exit_code")) {
    map.error_here("needs on_exit_code or on_status_reason");
  }
  if (std::max(rule.on_status_reason.size(), rule.on_exit_code.size()) > 512) {
    map.error_here("holds a pattern of more than 512 bytes");
  }
  map.finish();
  rules.push_back(std::move(rule));
}

void read_retry(const YamlNode& node, const std::string& path, JobFile& job, Issues& issues) {
  MapReader map(node, path, issues);
  map.integer("attempts", job.attempts, 1, 10);
  map.duration("backoff", job.backoff, kMaxBackoff);
  map.list("evaluate_on_exit", [&](const YamlNode& item, const std::string& at) {
    read_exit_rule(item, at, job.exit_rules, issues);
  });
  if (job.exit_rules.size() > kMaxExitRules) {
    map.error("evaluate_on_exit",
              fmt::format("has {} rules: at most {}", job.exit_rules.size(), kMaxExitRules));
  }
  map.finish();
}

void read_preemption(const YamlNode& node, const std::string& path, JobFile& job, Issues& issues) {
  MapReader map(node, path, issues);
  bool preemptible = true;
  if (map.boolean("preemptible", preemptible)) job.preemptible = preemptible;
  map.integer("retries_before_termination", job.preemption_retries, 0, 1'000'000);
  map.duration("grace", job.grace, kMaxGrace);
  map.finish();
}

void read_command(MapReader& map, JobFile& job) {
  const YamlNode* node = map.find("command");
  if (node == nullptr) return;
  if (node->kind == YamlNode::Kind::kScalar) {
    map.error("command",
              "expected a list, found a text: write [program, argument, ...], or "
              "[sh, -c, '...'] for a shell");
    return;
  }
  if (map.texts("command", job.command) && job.command.empty()) {
    map.error("command", "the list is empty: name at least a program");
  }
}

void read_dependencies(MapReader& map, JobFile& job, Issues& issues) {
  map.list("depends_on", [&](const YamlNode& item, const std::string& at) {
    MapReader entry(item, at, issues);
    JobDependency dependency;
    entry.require("job");
    entry.text("job", dependency.job);
    entry.word("condition", dependency.condition,
               {{"SUCCEEDED", DependencyCondition::kSucceeded},
                {"FAILED", DependencyCondition::kFailed},
                {"ENDED", DependencyCondition::kEnded}});
    entry.finish();
    job.depends_on.push_back(std::move(dependency));
  });
}

void read_array(MapReader& map, JobFile& job) {
  std::string text;
  if (!map.text("array", text)) return;
  auto range = parse_array(text);
  if (range) {
    job.array = *range;
  } else {
    map.error("array", range.error().message);
  }
}

}  // namespace

void read_job_name(MapReader& map, const std::string& key, JobFile& job) {
  if (!map.text(key, job.name)) return;
  if (job.name->empty() || job.name->size() > 128 || has_control_characters(*job.name)) {
    map.error(key,
              fmt::format("job name {} is not valid: 1 to 128 bytes without control characters",
                          quote(*job.name)));
  }
}

void check_count(MapReader& map, const std::string& key, const std::optional<Amount>& amount) {
  if (amount && (*amount <= kZero || *amount > kMaxCount)) {
    map.error(key, fmt::format("{} is out of range: more than 0, at most {}", to_string(*amount),
                               to_string(kMaxCount)));
  }
}

void read_job_keys(MapReader& map, JobFile& job, std::vector<FileIssue>& issues) {
  read_job_name(map, "name", job);
  map.text("queue", job.queue);
  map.text("share", job.share);
  map.integer("priority", job.priority, 0, kMaxPriority);
  if (const YamlNode* node = map.find("resources")) {
    read_resources(*node, map.path_of("resources"), job, issues);
  }
  read_command(map, job);
  map.text("image", job.image);
  map.text("workdir", job.workdir);
  map.text_map("env", job.env);
  map.text_map("labels", job.labels);
  map.duration("timeout", job.timeout, kMaxTimeout);
  if (job.timeout && *job.timeout < std::chrono::seconds(1)) {
    map.error("timeout", "is shorter than a second: leave it out for no limit");
  }
  map.duration("expected_run_time", job.expected_run_time, kMaxTimeout);
  if (job.expected_run_time && *job.expected_run_time < std::chrono::seconds(1)) {
    map.error("expected_run_time", "is shorter than a second: leave it out if it is not known");
  } else if (job.expected_run_time && job.timeout && *job.expected_run_time > *job.timeout) {
    map.error("expected_run_time", "is longer than the timeout: raise that or expect less");
  }
  if (const YamlNode* node = map.find("retry")) {
    read_retry(*node, map.path_of("retry"), job, issues);
  }
  if (const YamlNode* node = map.find("preemption")) {
    read_preemption(*node, map.path_of("preemption"), job, issues);
  }
  bool succeeds = false;
  if (map.word("exit_zero_after_stop", succeeds, {{"SUCCEEDED", true}, {"PREEMPTED", false}})) {
    job.exit_zero_after_stop_succeeds = succeeds;
  }
  read_array(map, job);
  map.boolean("hold", job.hold);
  read_dependencies(map, job, issues);
}

ParsedJob parse_job_text(std::string_view text) {
  ParsedJob parsed;
  const auto root = parse_yaml(text, parsed.issues);
  if (!root) return parsed;
  MapReader map(*root, "", parsed.issues);
  read_job_keys(map, parsed.job, parsed.issues);
  map.finish();
  return parsed;
}

Result<JobFile> parse_job_file(const std::string& path) {
  const auto text = read_policy_file(path);
  if (!text) return text.error();
  ParsedJob parsed = parse_job_text(*text);
  if (has_errors(parsed.issues)) return as_error(parsed.issues, path);
  return std::move(parsed.job);
}

}  // namespace gpuq
