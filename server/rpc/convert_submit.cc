#include "server/rpc/convert_submit.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

std::string check_command(const v1::JobSpec& spec) {
  if (spec.command().empty() || spec.command(0).empty()) {
    return "command is empty: name a program to run";
  }
  std::size_t bytes = 0;
  for (const std::string& argument : spec.command()) {
    bytes += argument.size() + 1;
    if (has_nul(argument)) {
      return fmt::format("command argument {} holds a NUL character: remove it", quote(argument));
    }
  }
  if (bytes > kMaxCommandBytes) {
    return fmt::format("command has {} bytes with its arguments: at most {}", bytes,
                       kMaxCommandBytes);
  }
  return "";
}

bool is_env_name(const std::string& name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string check_env(const v1::JobSpec& spec) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : spec.env()) {
    bytes += name.size() + value.size() + 2;
    if (!is_env_name(name)) {
      return fmt::format("env name {} must be letters, digits and '_', and not begin with a digit",
                         quote(name));
    }
    if (name.starts_with("GPUQ_")) {
      return fmt::format("env name {} is reserved: names that begin with GPUQ_ are set by gpuq",
                         quote(name));
    }
    if (has_nul(value)) return fmt::format("env {} holds a NUL character: remove it", quote(name));
  }
  if (bytes > kMaxEnvBytes) {
    return fmt::format("env has {} bytes: at most {}", bytes, kMaxEnvBytes);
  }
  return "";
}

std::string check_labels(const v1::JobSpec& spec) {
  if (static_cast<std::size_t>(spec.labels_size()) > kMaxLabels) {
    return fmt::format("labels has {} entries: at most {}", spec.labels_size(), kMaxLabels);
  }
  for (const auto& [key, value] : spec.labels()) {
    if (key.empty()) return "labels has an empty key: name it";
    if (auto fault = check_line("label key", key, 128); !fault.empty()) return fault;
    if (auto fault = check_line("label value", value, 256); !fault.empty()) return fault;
  }
  return "";
}

std::string check_names(const v1::JobSpec& spec) {
  if (auto fault = check_line("job_name", spec.job_name(), 128); !fault.empty()) return fault;
  if (!spec.job_queue().empty()) {
    if (auto fault = check_name("job_queue", spec.job_queue()); !fault.empty()) return fault;
  }
  if (!spec.quota_share_name().empty()) {
    if (auto fault = check_name("quota_share_name", spec.quota_share_name()); !fault.empty()) {
      return fault;
    }
  }
  if (!spec.workdir().empty() && (spec.workdir()[0] != '/' || has_nul(spec.workdir()))) {
    return fmt::format("workdir {} is not an absolute path: begin it with '/'",
                       quote(spec.workdir()));
  }
  return check_line("workdir", spec.workdir(), 4096);
}

// Where the name is left out: the program without its folders, as a listing can show it.
std::string default_name(const std::string& program) {
  std::string name = program.substr(program.rfind('/') + 1);
  std::erase_if(name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  std::size_t size = std::min<std::size_t>(name.size(), 128);
  while (size < name.size() && size > 0 &&
         (static_cast<unsigned char>(name[size]) & 0xc0) == 0x80) {
    --size;
  }
  name.resize(size);
  return name.empty() ? "job" : name;
}

std::string read_units(const v1::ResourceRequest& from, JobRequest& to) {
  if (from.has_gpus_milli()) {
    if (from.has_count_milli() || from.capacity_units_size() > 0) {
      return "resources.gpus_milli excludes count_milli and capacity_units: give one of both";
    }
    auto fault = check_range("resources.gpus_milli", from.gpus_milli(), 1, kMaxMilli);
    if (fault.empty()) to.units.emplace_back("", Amount(from.gpus_milli()));
    return fault;
  }
  if (static_cast<std::size_t>(from.capacity_units_size()) > kMaxUnits) {
    return fmt::format("resources.capacity_units has {} entries: at most {}",
                       from.capacity_units_size(), kMaxUnits);
  }
  const std::int64_t count = from.has_count_milli() ? from.count_milli() : 1000;
  if (auto fault = check_range("resources.count_milli", count, 1, kMaxMilli); !fault.empty()) {
    return fault;
  }
  if (count > 1000 && count % 1000 != 0) {
    return fmt::format("resources.count_milli is {}: above 1000 only whole units (x 1000)", count);
  }
  for (const std::string& unit : from.capacity_units()) {
    if (auto fault = check_name("resources.capacity_units", unit); !fault.empty()) return fault;
    const auto same = [&](const auto& entry) { return entry.first == unit; };
    if (std::ranges::any_of(to.units, same)) {
      return fmt::format("resources.capacity_units names {} twice", quote(unit));
    }
    to.units.emplace_back(unit, Amount(count));
  }
  if (to.units.empty() && from.has_count_milli()) to.units.emplace_back("cpu", Amount(count));
  return "";
}

std::string read_resources(const v1::ResourceRequest& from, JobRequest& to) {
  to.instances = from.has_instances() ? from.instances() : 1;
  to.cpus = from.cpus();
  to.memory_mib = from.memory_mib();
  to.topology_label = from.topology_label();
  to.topology_required = from.topology_required();
  for (auto fault : {check_range("resources.instances", to.instances, 1, kMaxInstances),
                     check_range("resources.cpus", to.cpus, 0, 100'000),
                     check_range("resources.memory_mib", to.memory_mib, 0, 1'000'000'000)}) {
    if (!fault.empty()) return fault;
  }
  return read_units(from, to);
}

std::string read_exit_rule(const v1::EvaluateOnExit& from, JobRequest& to) {
  ExitRule rule;
  switch (from.action()) {
    case v1::RETRY_ACTION_RETRY:
      rule.action = RetryAction::kRetry;
      break;
    case v1::RETRY_ACTION_EXIT:
      rule.action = RetryAction::kExit;
      break;
    default:
      return "retry_strategy.evaluate_on_exit.action is missing: use RETRY or EXIT";
  }
  for (auto fault : {check_line("evaluate_on_exit.on_status_reason", from.on_status_reason(), 512),
                     check_line("evaluate_on_exit.on_exit_code", from.on_exit_code(), 64)}) {
    if (!fault.empty()) return fault;
  }
  rule.on_status_reason = from.on_status_reason();
  rule.on_exit_code = from.on_exit_code();
  to.exit_rules.push_back(std::move(rule));
  return "";
}

std::string read_retry(const v1::RetryStrategy& from, JobRequest& to) {
  to.max_attempts = from.has_attempts() ? from.attempts() : 1;
  if (auto fault = check_range("retry_strategy.attempts", to.max_attempts, 1, 10); !fault.empty()) {
    return fault;
  }
  if (static_cast<std::size_t>(from.evaluate_on_exit_size()) > kMaxExitRules) {
    return fmt::format("retry_strategy.evaluate_on_exit has {} rules: at most {}",
                       from.evaluate_on_exit_size(), kMaxExitRules);
  }
  for (const auto& rule : from.evaluate_on_exit()) {
    if (auto fault = read_exit_rule(rule, to); !fault.empty()) return fault;
  }
  to.backoff = Duration(from.backoff_ms());
  return check_range("retry_strategy.backoff_ms", from.backoff_ms(), 0, kMaxBackoff.count());
}

std::string read_preemption(const v1::JobPreemptionConfiguration& from, JobRequest& to) {
  to.preemptible = !from.has_preemptible() || from.preemptible();
  if (from.has_preemption_retries_before_termination()) {
    const std::int32_t retries = from.preemption_retries_before_termination();
    auto fault = check_range("preemption_configuration.preemption_retries_before_termination",
                             retries, 0, 1'000'000);
    if (!fault.empty()) return fault;
    to.preemption_retries = retries;
  }
  if (from.has_grace_ms()) {
    auto fault = check_range("preemption_configuration.grace_ms", from.grace_ms(), 0, kMaxGraceMs);
    if (!fault.empty()) return fault;
    to.grace = Duration(from.grace_ms());
  }
  return "";
}

std::string read_dependencies(const v1::JobSpec& from, JobRequest& to) {
  for (const v1::JobDependency& on : from.depends_on()) {
    DependencyRequest dependency{JobId(on.job_id())};
    if (on.has_array_index()) dependency.index = on.array_index();
    switch (on.condition()) {
      case v1::DEPENDENCY_CONDITION_UNSPECIFIED:
      case v1::DEPENDENCY_CONDITION_SUCCEEDED:
        break;
      case v1::DEPENDENCY_CONDITION_ENDED:
        dependency.condition = DependencyCondition::kEnded;
        break;
      case v1::DEPENDENCY_CONDITION_FAILED:
        dependency.condition = DependencyCondition::kFailed;
        break;
      default:
        return fmt::format("depends_on.condition is {}: use SUCCEEDED, ENDED or FAILED",
                           static_cast<int>(on.condition()));
    }
    if (on.job_id() <= 0) return "depends_on.job_id is missing: give a job's number";
    to.depends_on.push_back(dependency);
  }
  return "";
}

void read_array(const v1::JobSpec& from, JobRequest& to) {
  if (!from.has_array()) return;
  const v1::ArrayRange& range = from.array();
  to.array = ArrayRange{range.first(), range.last(), range.step() == 0 ? 1 : range.step(),
                        range.limit()};  // The engine checks it.
}

std::string read_rest(const v1::JobSpec& from, JobRequest& to) {
  if (auto fault = check_range("scheduling_priority", from.scheduling_priority(), 0, kMaxPriority);
      !fault.empty()) {
    return fault;
  }
  to.priority = from.scheduling_priority();
  to.held = from.hold();
  read_array(from, to);
  if (from.has_attempt_duration_seconds()) {
    const std::int64_t seconds = from.attempt_duration_seconds();
    if (auto fault = check_range("attempt_duration_seconds", seconds, 1, 31'536'000);
        !fault.empty()) {
      return fault;
    }
    to.timeout = std::chrono::seconds(seconds);
  }
  if (from.has_expected_run_seconds()) {
    const std::int64_t seconds = from.expected_run_seconds();
    if (auto fault = check_range("expected_run_seconds", seconds, 1, 31'536'000); !fault.empty()) {
      return fault;
    }
    to.expected_run_time = std::chrono::seconds(seconds);
  }
  switch (from.exit_zero_after_stop()) {
    case v1::EXIT_ZERO_AFTER_STOP_UNSPECIFIED:
    case v1::EXIT_ZERO_AFTER_STOP_PREEMPTED:
      break;
    case v1::EXIT_ZERO_AFTER_STOP_SUCCEEDED:
      to.exit_zero_after_stop_succeeds = true;
      break;
    default:
      return fmt::format("exit_zero_after_stop is {}: use PREEMPTED or SUCCEEDED",
                         static_cast<int>(from.exit_zero_after_stop()));
  }
  return "";
}

}  // namespace

Result<JobRequest> to_job_request(const v1::JobSpec& spec) {
  JobRequest request;
  for (auto* check : {check_command, check_env, check_labels, check_names}) {
    if (auto fault = check(spec); !fault.empty()) return invalid(std::move(fault));
  }
  if (auto fault = read_resources(spec.resources(), request); !fault.empty()) {
    return invalid(std::move(fault));
  }
  if (auto fault = read_retry(spec.retry_strategy(), request); !fault.empty()) {
    return invalid(std::move(fault));
  }
  if (auto fault = read_preemption(spec.preemption_configuration(), request); !fault.empty()) {
    return invalid(std::move(fault));
  }
  if (auto fault = read_dependencies(spec, request); !fault.empty()) {
    return invalid(std::move(fault));
  }
  if (auto fault = read_rest(spec, request); !fault.empty()) return invalid(std::move(fault));
  if (!spec.image().empty()) {
    return Error{ErrorCode::kFailedPrecondition,
                 fmt::format("image {}: this release runs plain processes only; leave it out",
                             quote(spec.image()))};
  }
  request.name = spec.job_name().empty() ? default_name(spec.command(0)) : spec.job_name();
  request.queue = spec.job_queue();
  request.share = spec.quota_share_name();
  request.spec = SharedBytes(spec.SerializeAsString());
  return request;
}

std::string check_client_token(const std::string& token) {
  return check_line("client_token", token, 64);
}

}  // namespace gpuq::rpc
