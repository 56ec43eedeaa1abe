// Submit: from what a user asks for to jobs.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/text.h"
#include "core/engine/transaction.h"

namespace gpuq {

namespace {

Error not_found(std::string message) { return {ErrorCode::kNotFound, std::move(message)}; }
Error refused(std::string message) { return {ErrorCode::kFailedPrecondition, std::move(message)}; }

constexpr std::int64_t kMaxCountMilli = 1'000'000'000;
constexpr std::int32_t kMaxCpus = 1'000'000;
constexpr std::int64_t kMaxMemoryMib = std::int64_t{1} << 40;
constexpr std::size_t kMaxUnits = 16;

/// A validated submission: the job still lacks its id.
struct Prepared {
  Job job;
  JobClass cls;
  SharedBytes spec;
  std::string never;  ///< J3: why it ends at once; empty: it does not.
  std::optional<ArrayRange> array;

  [[nodiscard]] std::int64_t numbers() const { return 1 + (array ? array->size() : 0); }
};

template <typename Range>
std::string names_of(const Range& records) {
  std::string names;
  for (const auto& name : records) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

Result<const Queue*> find_queue(const PolicyTables& policy, const std::string& name) {
  std::vector<std::string> enabled;
  const Queue* only = nullptr;
  for (const Queue& queue : policy.queues) {
    if (queue.def.name == name) only = &queue;
    if (queue.def.enabled) enabled.push_back(queue.def.name);
  }
  if (name.empty()) {
    if (enabled.size() == 1) return policy.queue(enabled.front());
    return invalid(fmt::format("no queue given: name one of {} with job_queue", names_of(enabled)));
  }
  if (only == nullptr) {
    return not_found(
        fmt::format("queue {} does not exist; there are: {}", quote(name), names_of(enabled)));
  }
  if (!only->def.enabled) {
    return refused(fmt::format("queue {} is DISABLED and takes no new jobs", quote(name)));
  }
  return only;
}

Result<const Share*> find_share(const PolicyTables& policy, const Queue& queue,
                                const std::string& name) {
  std::vector<std::string> names;
  const Share* found = nullptr;
  for (const Share& share : policy.shares) {
    if (share.queue != queue.id) continue;
    names.push_back(share.def.name);
    if (share.def.name == name || name.empty()) found = &share;
  }
  if (name.empty() && names.size() != 1) {
    return invalid(
        fmt::format("no quota share given: name one of {} with quota_share_name", names_of(names)));
  }
  if (found == nullptr) {
    return not_found(fmt::format("queue {} has no quota share {}; it has: {}",
                                 quote(queue.def.name), quote(name), names_of(names)));
  }
  if (!found->def.enabled) {
    return refused(
        fmt::format("quota share {} is DISABLED and takes no new jobs", quote(found->def.name)));
  }
  return found;
}

bool offers(const Environment& env, const std::string& unit) {
  const auto& limits = env.def.capacity_limits;
  return limits.empty() || std::any_of(limits.begin(), limits.end(),
                                       [&](const CapacityLimit& l) { return l.unit == unit; });
}

// The `gpus` shortcut: every GPU unit of the queue, the smallest count that covers the wish.
Result<std::vector<UnitRequest>> gpu_units(const PolicyTables& policy, const Environment& env,
                                           Amount gpus) {
  std::vector<UnitRequest> units;
  const auto add = [&](const Unit& unit) {
    if (unit.def.gpus == 1) {
      units.push_back({unit.id, gpus});
    } else if (unit.def.gpus > 1 && gpus.milli % 1000 == 0) {
      const std::int64_t whole = (gpus.milli / 1000 + unit.def.gpus - 1) / unit.def.gpus;
      units.push_back({unit.id, Amount::units(whole)});
    }
  };
  // Policy order is the environment's own where it names its units.
  for (const CapacityLimit& limit : env.def.capacity_limits) {
    if (const Unit* unit = policy.unit(limit.unit)) add(*unit);
  }
  if (env.def.capacity_limits.empty()) {
    for (const Unit& unit : policy.units) add(unit);
  }
  if (units.empty()) {
    return refused(
        fmt::format("environment {} offers no unit with GPUs: wait for a GPU node or ask "
                    "for another unit",
                    quote(env.def.name)));
  }
  return units;
}

Result<UnitRequest> named_unit(const PolicyTables& policy, const Environment& env,
                               const std::string& name, Amount count) {
  const Unit* unit = policy.unit(name);
  std::vector<std::string> offered;
  for (const Unit& u : policy.units) {
    if (offers(env, u.def.name)) offered.push_back(u.def.name);
  }
  if (unit == nullptr || !offers(env, name)) {
    return not_found(fmt::format("unit {} is not offered by environment {}; it offers: {}",
                                 quote(name), quote(env.def.name), names_of(offered)));
  }
  const bool one_gpu = unit->def.gpus == 1;
  if (count.milli % 1000 != 0 && !one_gpu) {
    return invalid(fmt::format("count {} of unit {}: only units of one GPU can be had in parts",
                               to_string(count), quote(name)));
  }
  return UnitRequest{unit->id, count};
}

Result<std::vector<UnitRequest>> resolve_units(const PolicyTables& policy, const Environment& env,
                                               const JobRequest& request) {
  std::vector<UnitRequest> units;
  auto wanted = request.units;
  if (wanted.empty()) wanted.emplace_back("cpu", Amount::units(1));
  if (wanted.size() > kMaxUnits) {
    return invalid(
        fmt::format("{} acceptable units: at most {} can be named", wanted.size(), kMaxUnits));
  }
  for (const auto& [name, count] : wanted) {
    if (count <= kZero || count.milli > kMaxCountMilli) {
      return invalid(
          fmt::format("count {} is out of range: a job asks for 0.001 to {} units an "
                      "instance",
                      to_string(count), kMaxCountMilli / 1000));
    }
    if (name.empty()) {
      auto gpus = gpu_units(policy, env, count);
      if (!gpus) return gpus.error();
      units.insert(units.end(), gpus->begin(), gpus->end());
      continue;
    }
    auto unit = named_unit(policy, env, name, count);
    if (!unit) return unit.error();
    units.push_back(*unit);
  }
  for (std::size_t i = 0; i < units.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (units[k].unit == units[i].unit) {
        return invalid(
            fmt::format("unit {} is named twice", quote(policy.unit(units[i].unit)->def.name)));
      }
    }
  }
  return units;
}

template <typename T>
Result<void> in_range(const char* field, T value, T low, T high) {
  if (value >= low && value <= high) return {};
  return invalid(fmt::format("{} {} is out of range: {} to {}", field, value, low, high));
}

Result<void> check_numbers(const JobRequest& request) {
  const std::int64_t max_ms = std::int64_t{1000} * 366 * 86400;
  const std::int64_t timeout = request.timeout ? request.timeout->count() : 1;
  const std::int64_t grace = request.grace ? request.grace->count() : 0;
  for (const Result<void>& checked :
       {in_range("scheduling_priority", request.priority, 0, kMaxPriority),
        in_range("instances", request.instances, 1, kMaxInstances),
        in_range("cpus", request.cpus, 0, kMaxCpus),
        in_range<std::int64_t>("memory", request.memory_mib, 0, kMaxMemoryMib),
        in_range<std::int64_t>("timeout (ms)", timeout, 1, max_ms),
        in_range<std::int64_t>("grace (ms)", grace, 0, max_ms),
        in_range("retry attempts", request.max_attempts, 1, 10),
        in_range<std::int64_t>("retry backoff (ms)", request.backoff.count(), 0,
                               kMaxBackoff.count()),
        in_range("preemption_retries_before_termination", request.preemption_retries.value_or(0), 0,
                 1'000'000)}) {
    if (!checked) return checked;
  }
  if (request.exit_rules.size() > 5) {
    return invalid(
        fmt::format("{} evaluate_on_exit rules: at most 5 are allowed", request.exit_rules.size()));
  }
  return {};
}

// A longer one would be wrong by its own words: the timeout ends the attempt before.
Result<void> check_expected(const JobRequest& request) {
  if (!request.expected_run_time) return {};
  const std::int64_t expected = request.expected_run_time->count();
  const std::int64_t max_ms = std::int64_t{1000} * 366 * 86400;
  auto checked = in_range<std::int64_t>("expected_run_time (ms)", expected, 1, max_ms);
  if (!checked || !request.timeout || expected <= request.timeout->count()) return checked;
  return invalid(fmt::format(
      "expected_run_time {} s is longer than the timeout of {} s: raise the timeout or expect less",
      (expected + 999) / 1000, request.timeout->count() / 1000));
}

Result<void> check_name(const std::string& name) {
  if (name.empty() || name.size() > 128) {
    return invalid(fmt::format("job name {} is {} bytes long: 1 to 128 are allowed", quote(name),
                               name.size()));
  }
  if (!is_valid_utf8(name) || has_control_characters(name)) {
    return invalid(fmt::format("job name {} has control characters or is no UTF-8", quote(name)));
  }
  return {};
}

Result<void> check_topology(const JobRequest& request) {
  const std::string& label = request.topology_label;
  if (label.empty() && request.topology_required) {
    return invalid("a topology domain is required, but no node label says which: name the label");
  }
  if (label.size() > 128 || !is_valid_utf8(label) || has_control_characters(label)) {
    return invalid(
        fmt::format("topology label {} is not valid: at most 128 bytes without control "
                    "characters",
                    quote(label)));
  }
  return {};
}

Result<Prepared> prepare(const State& state, const JobRequest& request) {
  const PolicyTables& policy = state.policy();
  if (auto checked = check_name(request.name); !checked) return checked.error();
  if (auto checked = check_numbers(request); !checked) return checked.error();
  if (auto checked = check_topology(request); !checked) return checked.error();
  if (auto checked = check_expected(request); !checked) return checked.error();
  if (request.array) {
    if (auto checked = check_array(*request.array); !checked) return checked.error();
  }
  const auto queue = find_queue(policy, request.queue);
  if (!queue) return queue.error();
  const auto share = find_share(policy, **queue, request.share);
  if (!share) return share.error();
  const Environment* env = policy.environment_of((*queue)->id);
  if (env == nullptr) {
    return refused(fmt::format("queue {} has no service environment", quote((*queue)->def.name)));
  }
  auto units = resolve_units(policy, *env, request);
  if (!units) return units.error();
  auto dependencies = open_dependencies(state, request.depends_on);
  if (!dependencies) return dependencies.error();
  Prepared prepared;
  prepared.job.depends_on = std::move(dependencies->open);
  prepared.never = std::move(dependencies->never);
  prepared.job.queue = (*queue)->id;
  prepared.job.share = (*share)->id;
  prepared.job.priority = request.priority;
  prepared.job.name = request.name;
  prepared.job.held = request.held;
  prepared.job.expected_run_time = request.expected_run_time;
  prepared.cls.units = std::move(*units);
  prepared.cls.instances = request.instances;
  prepared.cls.cpus = request.cpus;
  prepared.cls.memory_mib = request.memory_mib;
  prepared.cls.topology_label = request.topology_label;
  prepared.cls.topology_required = request.topology_required;
  prepared.cls.timeout = request.timeout;
  prepared.cls.grace = request.grace;
  prepared.cls.preemptible = request.preemptible;
  prepared.cls.exit_zero_after_stop_succeeds = request.exit_zero_after_stop_succeeds;
  prepared.cls.preemption_retries = request.preemption_retries;
  prepared.cls.max_attempts = request.max_attempts;
  prepared.cls.exit_rules = request.exit_rules;
  prepared.cls.backoff = request.backoff;
  prepared.spec = request.spec;
  prepared.array = request.array;
  return prepared;
}

JobId admit(Transaction& tx, const std::string& actor, const std::string& user, Prepared prepared,
            std::vector<Change> extra) {
  State& state = tx.state();
  Job job = std::move(prepared.job);
  job.id = JobId(state.counters().next_job);
  state.mutable_counters().next_job += prepared.numbers();
  job.user = user;
  job.created_at = tx.now();
  job.runnable_since = tx.now();
  job.state = waiting_state(job);
  std::vector<Change> changes;
  changes.reserve(4 + extra.size());
  if (const JobClass* known = state.find_class(prepared.cls)) {
    job.cls = known->id;
  } else {
    prepared.cls.id = ClassId(state.mutable_counters().next_class++);
    job.cls = prepared.cls.id;
    changes.emplace_back(PutClass{prepared.cls});
  }
  if (prepared.array) changes.emplace_back(PutArray{{job.id, *prepared.array}});
  changes.emplace_back(PutJob{job});
  changes.emplace_back(PutSpec{job.id, std::move(prepared.spec)});
  for (Change& change : extra) changes.push_back(std::move(change));
  Event event = tx.job_event(EventType::kJobSubmitted, actor, job);
  event.changes = std::move(changes);
  tx.emit(std::move(event));
  return job.id;
}

}  // namespace

Result<Reply> handle(Transaction& tx, const std::string& actor, const SubmitCommand& command) {
  State& state = tx.state();
  Reply reply;
  TokenRecord token;
  if (!command.client_token.empty()) {
    token.key = command.user + '\n' + command.client_token;
    if (const TokenRecord* known = state.find_token(token.key)) {
      if (known->body_hash != command.body_hash) {
        return Error{ErrorCode::kAlreadyExists,
                     fmt::format("client_token {} was used for another request: choose a new one",
                                 quote(command.client_token))};
      }
      reply.jobs = known->jobs;
      reply.repeated_token = true;
      return reply;
    }
  }
  if (command.jobs.empty()) return invalid("the submission holds no job");
  std::vector<Prepared> prepared;
  prepared.reserve(command.jobs.size());
  for (std::size_t i = 0; i < command.jobs.size(); ++i) {
    auto one = prepare(state, command.jobs[i]);
    if (!one) {
      Error error = one.error();
      if (command.jobs.size() > 1) error.message = fmt::format("jobs[{}]: {}", i, error.message);
      return error;
    }
    prepared.push_back(std::move(*one));
  }
  std::int64_t next = state.counters().next_job;
  for (const Prepared& one : prepared) {
    reply.jobs.emplace_back(next);
    next += one.numbers();
  }
  for (std::size_t i = 0; i < prepared.size(); ++i) {
    std::vector<Change> extra;
    if (i + 1 == prepared.size() && !token.key.empty()) {
      token.body_hash = command.body_hash;
      token.expires = tx.now() + tx.config().token_lifetime;
      token.jobs = reply.jobs;
      extra.emplace_back(PutToken{token});
      tx.wake_at(token.expires);
    }
    const std::string never = prepared[i].never;
    const JobId id = admit(tx, actor, command.user, std::move(prepared[i]), std::move(extra));
    if (never.empty()) continue;
    fail_waiting_job(tx, "", id, never, false);
    settle_dependants(tx, id);
  }
  return reply;
}

}  // namespace gpuq
