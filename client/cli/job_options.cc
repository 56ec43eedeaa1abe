#include "client/cli/job_options.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/values.h"
#include "common/policy/units.h"
#include "core/model/job.h"

namespace gpuq::cli {

namespace {

constexpr std::size_t kMaxCommand = 1024 * 1024;
constexpr std::size_t kMaxArgument = 128 * 1024 - 1;
constexpr std::size_t kMaxEnvironment = 1024 * 1024;
constexpr Duration kMinTimeout = std::chrono::seconds(1);
constexpr Duration kMaxTimeout = std::chrono::hours(24 * 365);
constexpr Duration kMaxGrace = std::chrono::hours(24);

Error at_option(const char* option, const Error& error) {
  return invalid(std::string(option) + ": " + error.message);
}

template <typename T>
void keep(std::optional<T>& above, const std::optional<T>& below) {
  if (!above) above = below;
}

Result<> set_integer(const char* option, const std::optional<std::string>& text, std::int64_t min,
                     std::int64_t max, const std::function<void(std::int64_t)>& set) {
  if (!text) return {};
  auto value = parse_integer(option, *text, min, max);
  if (!value) return value.error();
  set(*value);
  return {};
}

Result<> set_milli(const char* option, const std::optional<std::string>& text,
                   const std::function<void(std::int64_t)>& set) {
  if (!text) return {};
  auto value = parse_milli(*text);
  if (!value) return at_option(option, value.error());
  set(*value);
  return {};
}

Result<> set_duration(const char* option, const std::optional<std::string>& text, Duration min,
                      Duration max, const std::function<void(Duration)>& set) {
  if (!text) return {};
  auto value = gpuq::parse_duration(*text);
  if (!value) return at_option(option, value.error());
  if (*value < min || *value > max) {
    return invalid(std::string(option) + " '" + *text + "' is out of range: write " +
                   gpuq::format_duration(min) + " to " + gpuq::format_duration(max));
  }
  set(*value);
  return {};
}

Result<> first_error(const std::vector<Result<>>& results) {
  for (const auto& result : results) {
    if (!result) return result.error();
  }
  return {};
}

Result<> apply_resources(const JobOptions& o, v1::ResourceRequest& r) {
  if (o.gpus && (!o.units.empty() || o.count)) {
    return invalid("--gpus excludes --unit and --count: write --unit UNIT --count N");
  }
  if (o.count && o.units.empty() && r.capacity_units().empty()) {
    return invalid("--count needs --unit: it says of which unit");
  }
  if (o.gpus) {
    r.clear_capacity_units();
    r.clear_count_milli();
  }
  if (!o.units.empty()) {
    r.clear_gpus_milli();
    r.clear_capacity_units();
    for (const auto& unit : o.units) r.add_capacity_units(unit);
  }
  if (o.memory) {
    auto mib = gpuq::parse_memory(*o.memory);
    if (!mib) return at_option("--mem", mib.error());
    if (*mib == 0) return invalid("--mem '" + *o.memory + "' must be more than 0");
    r.set_memory_mib(*mib);
  }
  return first_error(
      {set_milli("--gpus", o.gpus, [&](std::int64_t v) { r.set_gpus_milli(v); }),
       set_milli("--count", o.count, [&](std::int64_t v) { r.set_count_milli(v); }),
       set_integer("--instances", o.instances, 1, 100'000,
                   [&](std::int64_t v) { r.set_instances(static_cast<std::int32_t>(v)); }),
       set_integer("--cpus", o.cpus, 1, 100'000,
                   [&](std::int64_t v) { r.set_cpus(static_cast<std::int32_t>(v)); })});
}

/// "exit:75,exit:137": retry on these, leave it at any other.
Result<> apply_retry_on(const std::vector<std::string>& lists, v1::RetryStrategy& strategy) {
  strategy.clear_evaluate_on_exit();
  for (const auto& list : lists) {
    std::size_t from = 0;
    while (from <= list.size()) {
      const auto comma = std::min(list.find(',', from), list.size());
      const std::string part = list.substr(from, comma - from);
      from = comma + 1;
      const bool exit = part.rfind("exit:", 0) == 0;
      if (!exit || !parse_integer("", part.substr(5), 1, 255)) {
        return invalid("--retry-on: '" + part + "' is not exit:CODE with a code from 1 to 255");
      }
      auto* rule = strategy.add_evaluate_on_exit();
      rule->set_action(v1::RETRY_ACTION_RETRY);
      rule->set_on_exit_code(part.substr(5));
    }
  }
  if (strategy.evaluate_on_exit_size() > 4) return invalid("--retry-on: at most 4 exit codes");
  auto* rest = strategy.add_evaluate_on_exit();
  rest->set_action(v1::RETRY_ACTION_EXIT);
  rest->set_on_status_reason("*");
  return {};
}

Result<> apply_ends(const JobOptions& o, v1::JobSpec& spec) {
  auto& preemption = *spec.mutable_preemption_configuration();
  if (o.no_preempt) preemption.set_preemptible(false);
  if (o.exit_zero_after_stop) {
    v1::ExitZeroAfterStop meaning = v1::EXIT_ZERO_AFTER_STOP_UNSPECIFIED;
    const bool known =
        v1::ExitZeroAfterStop_Parse("EXIT_ZERO_AFTER_STOP_" + *o.exit_zero_after_stop, &meaning);
    if (!known || meaning == v1::EXIT_ZERO_AFTER_STOP_UNSPECIFIED) {
      return invalid("--exit-zero-after-stop '" + *o.exit_zero_after_stop +
                     "' is neither PREEMPTED nor SUCCEEDED");
    }
    spec.set_exit_zero_after_stop(meaning);
  }
  if (!o.retry_on.empty()) {
    if (auto done = apply_retry_on(o.retry_on, *spec.mutable_retry_strategy()); !done) return done;
  }
  return first_error(
      {set_integer("--retries", o.retries, 0, 9,
                   [&](std::int64_t v) {
                     spec.mutable_retry_strategy()->set_attempts(static_cast<std::int32_t>(v + 1));
                   }),
       set_duration("--retry-backoff", o.retry_backoff, Duration(0), kMaxBackoff,
                    [&](Duration v) { spec.mutable_retry_strategy()->set_backoff_ms(v.count()); }),
       set_integer("--preemption-retries", o.preemption_retries, 0, 1'000'000,
                   [&](std::int64_t v) {
                     preemption.set_preemption_retries_before_termination(
                         static_cast<std::int32_t>(v));
                   }),
       set_duration("--grace", o.grace, Duration(0), kMaxGrace,
                    [&](Duration v) { preemption.set_grace_ms(v.count()); }),
       set_duration(
           "--timeout", o.timeout, kMinTimeout, kMaxTimeout,
           [&](Duration v) { spec.set_attempt_duration_seconds((v.count() + 999) / 1000); }),
       set_duration("--expect", o.expect, kMinTimeout, kMaxTimeout,
                    [&](Duration v) { spec.set_expected_run_seconds((v.count() + 999) / 1000); })});
}

bool is_variable_name(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c < 0x80 && std::isalnum(c) != 0) || c == '_';
         });
}

Result<> apply_env(const std::vector<std::string>& entries, const Environment& environment,
                   v1::JobSpec& spec) {
  for (const auto& entry : entries) {
    const auto equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (!is_variable_name(name)) {
      return invalid("--env '" + entry + "' is neither NAME=VALUE nor NAME");
    }
    if (equals != std::string::npos) {
      (*spec.mutable_env())[name] = entry.substr(equals + 1);
    } else if (const auto value = environment(name)) {
      (*spec.mutable_env())[name] = *value;
    } else {
      return invalid("--env " + name + ": not set here; write " + name + "=VALUE");
    }
  }
  return {};
}

Result<> apply_labels(const std::vector<std::string>& entries, v1::JobSpec& spec) {
  for (const auto& entry : entries) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid("--label '" + entry + "' is not KEY=VALUE");
    }
    (*spec.mutable_labels())[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return {};
}

/// One list of `option`: "ID,..." where `prefixed` is false, else "ok:ID,any:ID,fail:ID".
Result<> apply_after(const char* option, const std::string& list, bool prefixed,
                     v1::JobSpec& spec) {
  static constexpr std::pair<const char*, v1::DependencyCondition> kWords[] = {
      {"ok:", v1::DEPENDENCY_CONDITION_SUCCEEDED},
      {"any:", v1::DEPENDENCY_CONDITION_ENDED},
      {"fail:", v1::DEPENDENCY_CONDITION_FAILED}};
  for (std::size_t from = 0; from <= list.size();) {
    const auto comma = std::min(list.find(',', from), list.size());
    std::string part = list.substr(from, comma - from);
    from = comma + 1;
    auto condition = v1::DEPENDENCY_CONDITION_SUCCEEDED;
    bool known = !prefixed;
    std::string id = part;
    for (const auto& [word, meaning] : kWords) {
      if (!prefixed || part.rfind(word, 0) != 0) continue;
      condition = meaning;
      id = part.substr(std::char_traits<char>::length(word));
      known = true;
    }
    const auto dot = id.find('.');
    const auto number =
        parse_integer("", id.substr(0, dot), 1, std::numeric_limits<std::int64_t>::max());
    std::optional<std::int64_t> index;
    if (dot != std::string::npos) {
      const auto parsed = parse_integer("", id.substr(dot + 1), 0, kMaxArrayIndex);
      if (parsed) index = *parsed;
    }
    if (!known || !number || index.has_value() != (dot != std::string::npos)) {
      return invalid(std::string(option) + ": '" + part + "' is not " +
                     (prefixed ? "ok:ID, any:ID or fail:ID" : "the id of a job or member"));
    }
    auto* on = spec.add_depends_on();
    on->set_job_id(*number);
    if (index) on->set_array_index(static_cast<std::int32_t>(*index));
    on->set_condition(condition);
  }
  return {};
}

Result<> apply_dependencies(const JobOptions& o, v1::JobSpec& spec) {
  for (const auto& list : o.after) {
    if (auto done = apply_after("--after", list, true, spec); !done) return done;
  }
  for (const auto& list : o.after_ok) {
    if (auto done = apply_after("--after-ok", list, false, spec); !done) return done;
  }
  return {};
}

Result<> apply_array(const JobOptions& o, v1::JobSpec& spec) {
  if (!o.array) return {};
  const auto range = parse_array(*o.array);
  if (!range) return at_option("--array", range.error());
  set_array(*range, spec);
  return {};
}

Result<> check_text(const std::string& what, const std::string& text) {
  if (is_text(text)) return {};
  return invalid(what + " is not valid UTF-8: gpuq takes text only");
}

Result<> check_command(const v1::JobSpec& spec) {
  if (spec.command().empty() || spec.command(0).empty()) {
    return invalid("no command: write gpuq submit [OPTIONS] -- PROGRAM [ARG...]");
  }
  std::size_t total = 0;
  for (const auto& word : spec.command()) total += word.size() + 1;
  if (total > kMaxCommand) {
    return invalid("the command has " + std::to_string(total) + " bytes, at most " +
                   std::to_string(kMaxCommand) + " are possible: put its data into a file");
  }
  for (int i = 0; i < spec.command_size(); ++i) {
    const std::string what = i == 0 ? "the program's name" : "argument " + std::to_string(i);
    if (spec.command(i).size() > kMaxArgument) {
      return invalid(what + " has " + std::to_string(spec.command(i).size()) + " bytes, at most " +
                     std::to_string(kMaxArgument) + " are possible: put it into a file");
    }
    if (auto done = check_text(what, spec.command(i)); !done) return done;
  }
  return {};
}

}  // namespace

void set_array(const ArrayRange& range, v1::JobSpec& spec) {
  spec.mutable_array()->set_first(range.first);
  spec.mutable_array()->set_last(range.last);
  spec.mutable_array()->set_step(range.step);
  spec.mutable_array()->set_limit(range.limit);
}

JobOptions overlay(const JobOptions& above, const JobOptions& below) {
  JobOptions o = above;
  keep(o.name, below.name);
  keep(o.queue, below.queue);
  keep(o.share, below.share);
  keep(o.priority, below.priority);
  const bool resources = o.gpus || o.count || !o.units.empty();
  if (!resources) {
    o.gpus = below.gpus;
    o.count = below.count;
    o.units = below.units;
  }
  keep(o.instances, below.instances);
  keep(o.cpus, below.cpus);
  keep(o.memory, below.memory);
  keep(o.image, below.image);
  keep(o.workdir, below.workdir);
  keep(o.timeout, below.timeout);
  keep(o.expect, below.expect);
  keep(o.grace, below.grace);
  keep(o.retries, below.retries);
  keep(o.retry_backoff, below.retry_backoff);
  keep(o.preemption_retries, below.preemption_retries);
  keep(o.exit_zero_after_stop, below.exit_zero_after_stop);
  keep(o.array, below.array);
  if (o.retry_on.empty()) o.retry_on = below.retry_on;
  o.env.insert(o.env.begin(), below.env.begin(), below.env.end());
  o.labels.insert(o.labels.begin(), below.labels.begin(), below.labels.end());
  o.after.insert(o.after.begin(), below.after.begin(), below.after.end());
  o.after_ok.insert(o.after_ok.begin(), below.after_ok.begin(), below.after_ok.end());
  o.no_preempt = o.no_preempt || below.no_preempt;
  o.hold = o.hold || below.hold;
  return o;
}

JobOptions options_from_environment(const Environment& environment) {
  JobOptions options;
  options.queue = environment("GPUQ_QUEUE");
  options.share = environment("GPUQ_SHARE");
  options.priority = environment("GPUQ_PRIORITY");
  return options;
}

Result<> apply_options(const JobOptions& o, const Environment& environment, v1::JobSpec& spec) {
  if (o.name) spec.set_job_name(*o.name);
  if (o.queue) spec.set_job_queue(*o.queue);
  if (o.share) spec.set_quota_share_name(*o.share);
  if (o.image) spec.set_image(*o.image);
  if (o.workdir) spec.set_workdir(*o.workdir);
  if (o.hold) spec.set_hold(true);
  if (auto done = apply_resources(o, *spec.mutable_resources()); !done) return done;
  if (auto done = apply_ends(o, spec); !done) return done;
  if (auto done = apply_env(o.env, environment, spec); !done) return done;
  if (auto done = apply_labels(o.labels, spec); !done) return done;
  if (auto done = apply_dependencies(o, spec); !done) return done;
  if (auto done = apply_array(o, spec); !done) return done;
  return set_integer("--priority", o.priority, 0, 9999, [&](std::int64_t v) {
    spec.set_scheduling_priority(static_cast<std::int32_t>(v));
  });
}

Result<> check_spec(const v1::JobSpec& spec) {
  if (auto done = check_command(spec); !done) return done;
  std::size_t total = 0;
  for (const auto& [name, value] : spec.env()) {
    total += name.size() + value.size() + 2;
    if (auto done = check_text("environment variable " + name, value); !done) return done;
  }
  if (total > kMaxEnvironment) {
    return invalid("the environment has " + std::to_string(total) + " bytes, at most " +
                   std::to_string(kMaxEnvironment) + " are possible");
  }
  for (const auto& [key, value] : spec.labels()) {
    if (auto done = check_text("a label", key + value); !done) return done;
  }
  const std::pair<const char*, const std::string&> texts[] = {
      {"the name", spec.job_name()},
      {"the queue", spec.job_queue()},
      {"the share", spec.quota_share_name()},
      {"the working directory", spec.workdir()},
      {"the image", spec.image()}};
  for (const auto& [what, text] : texts) {
    if (auto done = check_text(what, text); !done) return done;
  }
  for (const auto& unit : spec.resources().capacity_units()) {
    if (auto done = check_text("a capacity unit", unit); !done) return done;
  }
  return {};
}

}  // namespace gpuq::cli
