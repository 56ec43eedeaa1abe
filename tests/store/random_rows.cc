#include "tests/store/random_rows.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace gpuq::store {

std::int64_t BatchGenerator::number(std::int64_t low, std::int64_t high) {
  const auto span = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<std::int64_t>(random_() % span);
}

std::string BatchGenerator::text() {
  static const std::vector<std::string> kPieces = {
      "train", "'", "\"", "\n", "é", "\U0001F680", "%", "a b", "--", "0", ";", ":", ",", "[x]"};
  std::string result;
  for (auto left = number(0, 5); left > 0; --left) {
    result +=
        kPieces[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(kPieces.size()) - 1))];
  }
  return result;
}

std::optional<Duration> BatchGenerator::maybe_duration() {
  return chance(50) ? std::optional(duration()) : std::nullopt;
}

std::vector<CapacityLimit> BatchGenerator::limits() {
  std::vector<CapacityLimit> result(static_cast<std::size_t>(number(0, 3)));
  for (CapacityLimit& limit : result) {
    limit = {text(), chance(10) ? kUnlimited : Amount(number(0, 1'000'000))};
  }
  return result;
}

std::map<std::string, std::string> BatchGenerator::labels() {
  std::map<std::string, std::string> result;
  for (auto left = number(0, 3); left > 0; --left) result[text()] = text();
  return result;
}

Queue BatchGenerator::queue(QueueId id) {
  Queue result{id, {}};
  result.def.name = "queue " + std::to_string(id.value);
  result.def.priority = static_cast<std::int32_t>(number(-5, 1000));
  for (auto left = number(0, 2); left > 0; --left) {
    result.def.service_environments.push_back(text());
    result.def.time_limit_actions.push_back({text(), duration()});
  }
  result.def.scheduling_policy = text();
  result.def.enabled = chance(70);
  result.deleting = chance(20);
  return result;
}

Share BatchGenerator::share(ShareId id, QueueId queue) {
  Share result{id, queue, {}};
  result.def.name = "share " + std::to_string(id.value);
  result.def.capacity_limits = limits();
  result.def.strategy = static_cast<SharingStrategy>(number(1, 3));
  result.def.borrow_limit = static_cast<std::int32_t>(number(-1, 500));
  result.def.in_share_preemption = chance(50);
  result.def.min_runtime = duration();
  result.def.grace = maybe_duration();
  result.def.head_wait_limit = maybe_duration();
  result.def.user_order = static_cast<UserOrder>(number(1, 2));
  result.def.enabled = chance(70);
  result.deleting = chance(20);
  return result;
}

PolicyTables BatchGenerator::policy(const PolicyTables& before) {
  PolicyTables tables = before;
  tables.builtin = chance(50);
  const auto thin_out = [&](auto& records) {
    std::erase_if(records, [&](const auto&) { return chance(20); });
  };
  thin_out(tables.units);
  thin_out(tables.environments);
  thin_out(tables.policies);
  thin_out(tables.queues);
  std::erase_if(tables.shares,
                [&](const Share& s) { return chance(20) || tables.queue(s.queue) == nullptr; });
  const auto small = [&] { return static_cast<std::int32_t>(number(0, 1024)); };
  do {
    const UnitId id(tables.next_id++);
    tables.units.push_back(
        {id, {"unit " + std::to_string(id.value), text(), small(), small(), number(0, 1 << 20)}});
  } while (chance(50));
  do {
    const EnvId id(tables.next_id++);
    tables.environments.push_back(
        {id, {"env " + std::to_string(id.value), labels(), limits(), chance(70)}});
    const PolicyId policy_id(tables.next_id++);
    tables.policies.push_back(
        {policy_id,
         {"policy " + std::to_string(policy_id.value), static_cast<QueueKind>(number(1, 3)),
          static_cast<IdleOrder>(number(1, 3)), Duration(number(1, 1 << 30))}});
  } while (chance(50));
  do {
    tables.queues.push_back(queue(QueueId(tables.next_id++)));
    tables.shares.push_back(share(ShareId(tables.next_id++), tables.queues.back().id));
    tables.shares.push_back(share(ShareId(tables.next_id++), tables.queues.back().id));
  } while (chance(50));
  return tables;
}

Node BatchGenerator::node(NodeId id) {
  Node result;
  result.id = id;
  result.name = "node " + std::to_string(id.value);
  result.labels = labels();
  result.cpus = static_cast<std::int32_t>(number(0, 512));
  result.memory_mib = number(0, 1 << 22);
  result.devices.resize(static_cast<std::size_t>(number(0, 8)));
  for (Device& device : result.devices) {
    device = {text(), text(), number(0, 1 << 18), text(), chance(80), chance(20)};
  }
  result.link = static_cast<NodeLink>(number(1, 3));
  result.admin = static_cast<NodeAdmin>(number(1, 3));
  result.healthy = chance(80);
  result.env = EnvId(static_cast<std::int32_t>(number(0, 3)));
  result.boot_id = text();
  result.state_dir_id = text();
  result.agent_version = text();
  result.address = text();
  return result;
}

JobClass BatchGenerator::job_class(ClassId id, const PolicyTables& policy) {
  JobClass result;
  result.id = id;
  for (const Unit& unit : policy.units) {
    if (result.units.empty() || chance(50)) {
      result.units.push_back({unit.id, Amount(number(0, 64'000))});
    }
  }
  result.instances = static_cast<std::int32_t>(number(1, kMaxInstances));
  result.cpus = static_cast<std::int32_t>(number(0, 100));
  result.memory_mib = number(0, 1 << 20);
  if (chance(50)) result.topology_label = "rack";
  result.topology_required = chance(50);
  result.timeout = maybe_duration();
  result.grace = maybe_duration();
  result.preemptible = chance(50);
  result.exit_zero_after_stop_succeeds = chance(50);
  if (chance(50)) result.preemption_retries = static_cast<std::int32_t>(number(0, 10));
  result.max_attempts = static_cast<std::int32_t>(number(1, 10));
  result.backoff = duration();
  result.exit_rules.resize(static_cast<std::size_t>(number(0, 5)));
  for (ExitRule& rule : result.exit_rules) {
    rule = {text(), text(), static_cast<RetryAction>(number(1, 2))};
  }
  return result;
}

InstanceUse BatchGenerator::use(const std::vector<NodeId>& nodes) {
  InstanceUse result;
  result.node =
      nodes[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(nodes.size()) - 1))];
  result.devices.resize(static_cast<std::size_t>(number(0, 8)));
  for (DeviceUse& device : result.devices) {
    device = {static_cast<std::int32_t>(number(0, 15)), static_cast<std::int32_t>(number(1, 1000)),
              AttemptId(chance(30) ? number(1, std::int64_t{1} << 40) : 0)};
  }
  result.cpus = static_cast<std::int32_t>(number(0, 100));
  result.memory_mib = number(0, 1 << 20);
  result.awaited.resize(static_cast<std::size_t>(number(0, 2)));
  for (AwaitedHost& host : result.awaited) {
    host = {AttemptId(number(1, 1 << 30)), static_cast<std::int32_t>(number(0, 64)),
            number(0, 1 << 20)};
  }
  return result;
}

Job BatchGenerator::job(JobId id, ClassId cls, const PolicyTables& policy) {
  const Share& share = policy.shares.empty() ? Share{} : policy.shares.front();
  Job result;
  result.id = id;
  result.cls = cls;
  result.queue = policy.queues.front().id;
  result.share = share.id;
  result.priority = static_cast<std::int32_t>(number(0, kMaxPriority));
  result.state = static_cast<JobState>(number(1, 8));
  result.terminating = chance(20);
  result.attempt_count = static_cast<std::int32_t>(number(0, 20));
  result.counted_attempts = static_cast<std::int32_t>(number(0, 10));
  result.node_losses = static_cast<std::int32_t>(number(0, kMaxNodeLosses));
  result.preemptions = static_cast<std::int32_t>(number(0, 100));
  result.attempt = AttemptId(number(0, 1 << 30));
  result.created_at = time();
  result.runnable_since = time();
  result.ended_at = time();
  result.exit_code = static_cast<std::int32_t>(number(-1, 255));
  result.name = text();
  result.user = "user " + std::to_string(number(1, 3));
  result.status_reason = text();
  result.held = chance(20);
  if (chance(30)) result.retry_at = time();
  if (chance(30)) result.expected_run_time = duration() + Duration(1);
  if (!is_terminal(result.state)) {
    for (auto left = number(0, 3); left > 0; --left) {
      result.depends_on.push_back(
          {JobId(number(1, 1 << 30)), static_cast<DependencyCondition>(number(1, 3))});
    }
  }
  result.over_array_limit = !is_terminal(result.state) && chance(20);
  return result;
}

JobArray BatchGenerator::array(JobId id) {
  const auto up_to = [this](std::int64_t high) {
    return static_cast<std::int32_t>(number(0, high));
  };
  JobArray result{id, {up_to(9), 0, 1 + up_to(3), up_to(5)}};
  result.range.last = result.range.first + up_to(9);
  result.made = up_to(result.size());
  if (chance(30)) result.dropped_at = time();
  result.archived_succeeded = up_to(3);
  result.archived_failed = up_to(3);
  result.archived_exit_code = up_to(256) - 1;
  return result;
}

Attempt BatchGenerator::attempt(AttemptId id, JobId job, std::int32_t attempt_number,
                                const std::vector<NodeId>& nodes) {
  Attempt result;
  result.id = id;
  result.job = job;
  result.number = attempt_number;
  result.share = ShareId(static_cast<std::int32_t>(number(0, 50)));
  result.unit = UnitId(static_cast<std::int32_t>(number(1, 50)));
  result.demand = Amount(number(0, 1 << 30));
  result.state = static_cast<JobState>(number(4, 6));
  result.stop = static_cast<StopCause>(number(0, 5));
  result.outcome = static_cast<AttemptOutcome>(number(0, 7));
  result.lost_to_node = chance(20);
  result.scheduled_at = time();
  if (chance(70)) result.running_at = time();
  if (chance(50)) result.stop_at = time();
  result.grace = duration();
  if (chance(50)) result.ended_at = time();
  result.exit_code = static_cast<std::int32_t>(number(-1, 255));
  result.status_reason = text();
  result.instances.resize(static_cast<std::size_t>(number(0, 4)));
  for (AttemptInstance& instance : result.instances) {
    instance = {use(nodes), static_cast<InstanceState>(number(1, 5)),
                static_cast<std::int32_t>(number(-1, 255)), chance(50), chance(50)};
  }
  return result;
}

Booking BatchGenerator::booking(JobId job, const std::vector<NodeId>& nodes) {
  Booking result;
  result.job = job;
  result.share = ShareId(static_cast<std::int32_t>(number(1, 50)));
  result.unit = UnitId(static_cast<std::int32_t>(number(1, 50)));
  result.demand = Amount(number(0, 1 << 30));
  result.lacking = chance(30);
  result.made_at = time();
  result.instances.resize(static_cast<std::size_t>(number(0, 4)));
  for (InstanceUse& instance : result.instances) instance = use(nodes);
  for (auto left = number(0, 4); left > 0; --left) {
    result.victims.emplace_back(number(1, std::int64_t{1} << 40));
  }
  return result;
}

Preemption BatchGenerator::preemption(PreemptionId id, JobId job) {
  Preemption result;
  result.id = id;
  result.attempt = AttemptId(number(1, 1 << 30));
  result.job = job;
  result.beneficiary = JobId(number(0, 1 << 30));
  result.rule = static_cast<PreemptRule>(number(1, 2));
  result.end = static_cast<PreemptionEnd>(number(0, 3));
  result.handed = static_cast<std::int32_t>(number(0, 9));
  result.at = time();
  result.lost_unit_ms = number(0, std::int64_t{1} << 50);
  result.end_rule = text();
  return result;
}

Event BatchGenerator::event() {
  Event result;
  result.id = EventId(next_.next_event++);
  result.at = time_from_ms(clock_ += number(0, 3));
  result.wall_ms = number(0, std::int64_t{1} << 45);
  result.type = static_cast<EventType>(number(1, 60));
  result.actor = text();
  result.job = JobId(number(0, 5));
  result.attempt = AttemptId(number(0, 1 << 30));
  result.queue = QueueId(static_cast<std::int32_t>(number(0, 3)));
  result.share = ShareId(static_cast<std::int32_t>(number(0, 3)));
  result.node = NodeId(static_cast<std::int32_t>(number(0, 9)));
  result.job_state = static_cast<JobState>(number(1, 8));
  result.detail = text();
  return result;
}

void BatchGenerator::add_jobs(const ExpectedStore& now, CommitBatch& batch,
                              const std::vector<NodeId>& nodes) {
  RowChanges& rows = batch.rows;
  const PolicyTables& tables = rows.policy ? *rows.policy : now.policy;
  if (tables.units.empty() || tables.queues.empty()) return;
  rows.classes.push_back(job_class(ClassId(next_.next_class++), tables));
  for (auto left = number(1, 5); left > 0; --left) {
    const JobId id(next_.next_job++);
    rows.jobs.push_back(job(id, rows.classes.back().id, tables));
    if (chance(30)) {
      rows.arrays.push_back(array(id));
      next_.next_job += rows.arrays.back().size();
    }
    rows.specs.push_back({id, SharedBytes(text() + std::string("\0\xff", 2))});
    for (std::int32_t n = 1; n <= number(0, 3); ++n) {
      rows.attempts.push_back(attempt(AttemptId(next_.next_attempt++), id, n, nodes));
    }
    if (chance(30)) rows.bookings.push_back(booking(id, nodes));
    if (chance(30)) {
      rows.preemptions.push_back(preemption(PreemptionId(next_.next_preemption++), id));
    }
  }
  TokenRecord token{text() + std::to_string(next_.next_job), random_(), time(), {}};
  for (const Job& added : rows.jobs) token.jobs.push_back(added.id);
  if (chance(30)) token.jobs.emplace_back(number(1, 9));
  UsageRecord fresh = usage({ShareId(static_cast<std::int32_t>(number(1, 9))), UsageKind::kBorrowed,
                             UnitId(static_cast<std::int32_t>(number(1, 3))), text()});
  if (!now.usage.contains(fresh.key)) rows.usage.push_back(std::move(fresh));
  rows.tokens.push_back(std::move(token));
}

void BatchGenerator::change_jobs(const ExpectedStore& now, CommitBatch& batch,
                                 const std::vector<NodeId>& nodes) {
  RowChanges& rows = batch.rows;
  for (const auto& [id, old] : now.jobs) {
    if (!chance(40)) continue;
    Job changed = job(id, old.cls, now.policy.queues.empty() ? *rows.policy : now.policy);
    changed.queue = old.queue;
    rows.jobs.push_back(changed);
    if (const auto known = now.arrays.find(id); known != now.arrays.end()) {
      JobArray renewed = array(id);
      renewed.range = known->second.range;
      rows.arrays.push_back(renewed);
    }
    const bool booked = now.bookings.contains(id);
    if (booked && chance(40)) {
      rows.drop_bookings.push_back(id);
    } else if (booked && chance(40)) {
      rows.bookings.push_back(booking(id, nodes));
    } else if (!booked && is_terminal(changed.state) && chance(60)) {
      rows.archive_jobs.push_back(id);
    }
  }
  for (const auto& [id, old] : now.attempts) {
    if (chance(40)) rows.attempts.push_back(attempt(id, old.job, old.number, nodes));
  }
  for (const auto& [id, old] : now.preemptions) {
    if (chance(40)) rows.preemptions.push_back(preemption(id, old.job));
  }
}

UsageRecord BatchGenerator::usage(const UsageKey& key) {
  return {key,
          {number(0, std::numeric_limits<std::int64_t>::max() - 1)},
          time(),
          Amount(number(0, 9000))};
}

void BatchGenerator::drop_records(const ExpectedStore& now, CommitBatch& batch) {
  RowChanges& rows = batch.rows;
  for (const auto& [key, token] : now.tokens) {
    if (chance(20)) {
      rows.drop_tokens.push_back(key);
    } else if (chance(20)) {
      rows.tokens.push_back({key, random_(), time(), {JobId(7), JobId(3), JobId(4)}});
    }
  }
  for (const auto& [key, record] : now.usage) {
    if (chance(20)) {
      rows.drop_usage.push_back(key);
    } else if (chance(40)) {
      rows.usage.push_back(usage(key));
    }
  }
  for (const auto& [id, old] : now.nodes) {
    if (now.nodes.size() > 1 && chance(10)) {
      rows.drop_nodes.push_back(id);
    } else if (chance(20)) {
      rows.nodes.push_back(node(id));
    }
  }
  const std::set<JobId> leaving(rows.archive_jobs.begin(), rows.archive_jobs.end());
  std::set<ClassId> used;
  for (const auto& [id, old] : now.jobs) {
    if (!leaving.contains(id)) used.insert(old.cls);
  }
  for (const auto& [id, old] : now.classes) {
    if (!used.contains(id)) rows.drop_classes.push_back(id);
  }
}

CommitBatch BatchGenerator::next(const ExpectedStore& now) {
  CommitBatch batch;
  batch.epoch = 1;
  RowChanges& rows = batch.rows;
  if (now.policy.queues.empty() || chance(20)) rows.policy = policy(now.policy);
  std::vector<NodeId> nodes;
  for (const auto& [id, old] : now.nodes) nodes.push_back(id);
  if (now.nodes.empty() || chance(30)) {
    rows.nodes.push_back(node(NodeId(next_.next_node++)));
    nodes.push_back(rows.nodes.back().id);
  }
  add_jobs(now, batch, nodes);
  change_jobs(now, batch, nodes);
  drop_records(now, batch);
  for (auto left = number(1, 8); left > 0; --left) batch.events.push_back(event());
  batch.time = time_from_ms(clock_);
  batch.counters = next_;
  return batch;
}

}  // namespace gpuq::store
