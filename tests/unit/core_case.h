#pragma once
// A state built by hand, and what a pass makes of it: for tests of single rules of the planner.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/sched/planner.h"
#include "core/state/state.h"

namespace gpuq::core_test {

/// One queue on one environment; unit `gpu` is one GPU unless changed.
class Case {
 public:
  explicit Case(std::int64_t limit = 1'000) {
    policy().units = {{next<UnitId>(), {"gpu", "", 1, 0, 0}}};
    unit = policy().units.front().id;
    Environment environment;
    environment.id = env = next<EnvId>();
    environment.def.name = "pool";
    environment.def.capacity_limits = {{"gpu", Amount::units(limit)}};
    policy().environments = {environment};
    SchedulingPolicy scheduling;
    scheduling.id = next<PolicyId>();
    scheduling.def.name = "quotas";
    policy().policies = {scheduling};
    Queue queue_record;
    queue_record.id = queue = next<QueueId>();
    queue_record.def.name = "q";
    queue_record.def.service_environments = {"pool"};
    queue_record.def.scheduling_policy = "quotas";
    policy().queues = {queue_record};
    policy().builtin = false;
  }

  UnitDef& unit_def() { return policy().units.front().def; }

  ShareId share(const std::string& name, Amount cap, SharingStrategy strategy,
                std::int32_t borrow_limit = -1, bool in_share = false) {
    Share record;
    record.id = next<ShareId>();
    record.queue = queue;
    record.def.name = name;
    record.def.capacity_limits = {{"gpu", cap}};
    record.def.strategy = strategy;
    record.def.borrow_limit = borrow_limit;
    record.def.in_share_preemption = in_share;
    policy().shares.push_back(record);
    return record.id;
  }
  ShareId reserve(const std::string& name, std::int64_t cap) {
    return share(name, Amount::units(cap), SharingStrategy::kReserve);
  }
  ShareId lend(const std::string& name, std::int64_t cap) {
    return share(name, Amount::units(cap), SharingStrategy::kLend);
  }
  ShareId borrow(const std::string& name, std::int64_t cap, std::int32_t limit = -1,
                 bool in_share = false) {
    return share(name, Amount::units(cap), SharingStrategy::kLendAndBorrow, limit, in_share);
  }

  NodeId node(int gpus, std::int32_t cpus = 1'000, std::int64_t memory_mib = 1 << 20) {
    Node record;
    record.id = NodeId(stored.counters.next_node++);
    record.name = "n-" + std::to_string(record.id.value);
    record.cpus = cpus;
    record.memory_mib = memory_mib;
    record.env = env;
    for (int g = 0; g < gpus; ++g) {
      Device device;
      device.uuid = record.name + "/" + std::to_string(g);
      device.model = "A";
      record.devices.push_back(device);
    }
    stored.nodes.push_back(record);
    return record.id;
  }

  /// A waiting job; `change` may set what its class asks for.
  template <typename Change>
  JobId wait(ShareId share, Amount count, std::int32_t priority, std::int64_t created_s,
             Change&& change) {
    JobClass cls;
    cls.units = {{unit, count}};
    change(cls);
    Job job;
    job.id = JobId(stored.counters.next_job++);
    job.cls = intern(cls);
    job.queue = queue;
    job.share = share;
    job.priority = priority;
    job.created_at = job.runnable_since = time_from_ms(created_s * 1'000);
    stored.jobs.push_back(job);
    return job.id;
  }
  JobId wait(ShareId share, std::int64_t gpus, std::int32_t priority = 0,
             std::int64_t created_s = 0) {
    return wait(share, Amount::units(gpus), priority, created_s, [](JobClass&) {});
  }

  static InstanceUse use(NodeId node, const std::vector<std::int32_t>& devices,
                         std::int32_t milli = 1'000, std::int32_t cpus = 0) {
    InstanceUse made;
    made.node = node;
    for (const std::int32_t device : devices) made.devices.push_back({device, milli, {}});
    made.cpus = cpus;
    return made;
  }

  /// A running job on these devices.
  JobId run(ShareId share, const std::vector<InstanceUse>& uses, std::int32_t priority = 0,
            std::int64_t since_s = 0) {
    std::int64_t milli = 0;
    for (const InstanceUse& u : uses) {
      for (const DeviceUse& d : u.devices) milli += d.milli;
    }
    const auto instances = static_cast<std::int32_t>(uses.size());
    const JobId id = wait(share, Amount(milli / instances), priority, since_s,
                          [&](JobClass& cls) { cls.instances = instances; });
    Attempt attempt;
    attempt.id = AttemptId(stored.counters.next_attempt++);
    attempt.job = id;
    attempt.share = share;
    attempt.unit = unit;
    attempt.demand = Amount(milli);
    attempt.state = JobState::kRunning;
    attempt.scheduled_at = attempt.running_at = time_from_ms(since_s * 1'000);
    for (const InstanceUse& u : uses) {
      attempt.instances.push_back({u, InstanceState::kRunning, -1, false, false});
    }
    Job& job = stored.jobs.back();
    job.state = JobState::kRunning;
    job.attempt = attempt.id;
    job.attempt_count = 1;
    stored.attempts.push_back(std::move(attempt));
    return id;
  }

  AttemptId attempt_of(JobId job) const {
    return stored.jobs.at(static_cast<std::size_t>(job.value - 1)).attempt;
  }

  void stop(JobId job) {
    for (Attempt& attempt : stored.attempts) {
      if (attempt.job != job) continue;
      attempt.stop = StopCause::kPreempted;
      attempt.stop_at = Time{};
    }
  }

  State state() const {
    auto made = State::from_stored(stored);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return std::move(*made);
  }

  Plan plan(std::int64_t now_s = 1'000) const {
    const State made = state();
    PlanCache cache;
    return make_plan(made, time_from_ms(now_s * 1'000), cache);
  }

  StoredState stored;
  UnitId unit;
  EnvId env;
  QueueId queue;

 private:
  template <typename Id>
  Id next() {
    return Id(policy().next_id++);
  }
  PolicyTables& policy() { return stored.policy; }

  ClassId intern(JobClass cls) {
    for (const JobClass& known : stored.classes) {
      if (known.same_as(cls)) return known.id;
    }
    cls.id = ClassId(stored.counters.next_class++);
    stored.classes.push_back(cls);
    return cls.id;
  }
};

/// Jobs of the plan's decisions of one kind, in order.
inline std::vector<JobId> jobs_of(const Plan& plan, DecisionKind kind) {
  std::vector<JobId> jobs;
  for (const Decision& d : plan.decisions) {
    if (d.kind == kind) jobs.push_back(d.job);
  }
  return jobs;
}
inline std::vector<JobId> started(const Plan& plan) { return jobs_of(plan, DecisionKind::kStart); }

/// Jobs that the plan stops, in order.
inline std::vector<JobId> evicted(const Plan& plan) {
  std::vector<JobId> jobs;
  for (const Decision& d : plan.decisions) {
    for (const Eviction& eviction : d.evictions) jobs.push_back(eviction.job);
  }
  return jobs;
}

}  // namespace gpuq::core_test
