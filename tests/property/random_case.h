#pragma once
// Random small clusters, policies and timelines: one seed, one case. A case is a sim::Scenario, so
// that a failing one can be cut down and kept as a scenario file. Targets are names that need not
// exist by then: any step can be left out.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/sim/scenario.h"

namespace gpuq::property {

/// What kind of cases to make.
struct Shape {
  bool plain = false;  ///< One model, jobs of one GPU, nothing else binds, nodes stay.
  int max_steps = 40;
  bool arrays = true;  ///< False: what else a seed means does not change.
};

/// A generator of which only the seed decides: no distribution of the standard library, whose
/// numbers differ between libraries.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  /// 0 .. below-1
  int roll(int below) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(below)); }
  int between(int low, int high) { return low + roll(high - low + 1); }
  bool one_in(int n) { return roll(n) == 0; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(roll(static_cast<int>(from.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

class CaseMaker {
 public:
  CaseMaker(std::uint64_t seed, const Shape& shape)
      : dice_(seed), array_dice_(~seed), shape_(shape) {}

  sim::Scenario make() {
    scenario_.title = "A random case";
    scenario_.file = "random";
    make_nodes();
    make_policy();
    make_timeline();
    return std::move(scenario_);
  }

 private:
  using Seconds = std::chrono::seconds;

  void make_nodes() {
    timeouts_ = dice_.one_in(2);
    two_models_ = !shape_.plain && dice_.one_in(3);
    const int count = dice_.between(1, dice_.one_in(3) ? 6 : 3);
    for (int n = 0; n < count; ++n) {
      Node node;
      node.name = fmt::format("n{}", n);
      node.cpus = dice_.pick<int>({4, 8, 16, 64});
      node.memory_mib = 1024 * dice_.pick<int>({8, 64, 512});
      const int gpus = dice_.one_in(8) ? 0 : dice_.between(1, dice_.one_in(4) ? 8 : 4);
      const bool mixed = two_models_ && dice_.one_in(3);
      const bool second = two_models_ && dice_.one_in(2);
      for (int g = 0; g < gpus; ++g) {
        Device device;
        device.uuid = fmt::format("GPU-{}-{}", n, g);
        const bool b = mixed ? g % 2 == 1 : second;
        device.model = b ? "B" : "A";
        ++gpus_[b ? 1 : 0];
        node.devices.push_back(std::move(device));
      }
      cpus_ += node.cpus;
      if (!dice_.one_in(6)) node.labels["rack"] = dice_.one_in(2) ? "r0" : "r1";
      if (shape_.plain) node.cpus = 1'000;
      scenario_.nodes.push_back(std::move(node));
    }
  }

  int total(const std::string& unit) const {
    if (unit == "cpu") return cpus_;
    return unit == "b" ? gpus_[1] : gpus_[0] / pair_;
  }

  void make_policy() {
    std::vector<UnitDef> units;
    pair_ = !shape_.plain && dice_.one_in(8) ? 2 : 1;
    UnitDef a{"a", two_models_ || dice_.one_in(2) ? "A" : "", pair_, 0, 0};
    if (!shape_.plain && dice_.one_in(4)) a.cpus = dice_.between(1, 4);
    units.push_back(a);
    if (two_models_) units.push_back({"b", "B", 1, 0, 0});
    if (!shape_.plain && dice_.one_in(3)) units.push_back({"cpu", "", 0, 1, 0});
    EnvDef env;
    env.name = "pool";
    for (const UnitDef& unit : units) {
      units_.push_back(unit.name);
      const int all = total(unit.name);
      const int limit = dice_.one_in(5) ? dice_.between(0, all + 2) : all;
      env.capacity_limits.push_back({unit.name, Amount::units(limit)});
    }
    QueueDef queue;
    queue.name = "q";
    queue.service_environments = {"pool"};
    queue.scheduling_policy = "quotas";
    if (dice_.one_in(4)) {
      queue.time_limit_actions = {
          {dice_.pick<std::string>({"MISCONFIGURATION:NO_NODE_FITS",
                                    "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED",
                                    "SHARE_FULL", "NODES_FRAGMENTED"}),
           Seconds(600)}};
    }
    const int count = dice_.between(1, 5);
    for (int s = 0; s < count; ++s) queue.shares.push_back(make_share(s, count));
    SchedulingPolicyDef policy;
    policy.name = "quotas";
    scenario_.policy.units = std::move(units);
    scenario_.policy.environments = std::vector<EnvDef>{std::move(env)};
    scenario_.policy.policies = std::vector<SchedulingPolicyDef>{policy};
    scenario_.policy.queues = std::vector<QueueDef>{std::move(queue)};
    scenario_.default_grace = Seconds(dice_.pick<int>({0, 0, 10, 30}));
    SchedulingPolicyDef& how = scenario_.policy.policies->front();
    how.idle_order = dice_.pick<IdleOrder>(
        {IdleOrder::kFifo, IdleOrder::kLeastBorrowed, IdleOrder::kDecayedUsage});
    how.half_life = timeouts_ ? kMinHalfLife : kDefaultHalfLife;
  }

  ShareDef make_share(int index, int count) {
    ShareDef share;
    share.name = fmt::format("S{}", index);
    shares_.push_back(share.name);
    for (const std::string& unit : units_) {
      const int fair = total(unit) / count;
      int cap = dice_.between(std::max(0, fair - 1), fair + 1);
      if (dice_.one_in(4)) cap = dice_.between(0, total(unit));
      if (dice_.one_in(8)) cap = 0;
      share.capacity_limits.push_back({unit, Amount::units(cap)});
    }
    const int kind = dice_.roll(4);
    share.strategy = kind == 0   ? SharingStrategy::kReserve
                     : kind == 1 ? SharingStrategy::kLend
                                 : SharingStrategy::kLendAndBorrow;
    if (kind >= 2) share.borrow_limit = dice_.pick<int>({-1, -1, 0, 50, 100, 200});
    share.in_share_preemption = dice_.one_in(2);
    if (dice_.one_in(4)) share.min_runtime = Seconds(dice_.pick<int>({5, 10, 40}));
    if (dice_.one_in(3)) share.head_wait_limit = Seconds(dice_.pick<int>({0, 0, 10, 60}));
    if (dice_.one_in(4)) share.grace = Seconds(dice_.pick<int>({0, 5, 60}));
    if ((index + count) % 2 == 0) share.user_order = UserOrder::kFair;
    return share;
  }

  void make_timeline() {
    const int steps = dice_.between(6, shape_.max_steps);
    Time at{};
    for (int i = 0; i < steps; ++i) {
      at += Seconds(dice_.pick<int>({0, 0, 1, 1, 7, 20}));
      sim::TimelineStep step;
      step.at = at;
      const int kind = submitted_ < 3 ? 0 : dice_.roll(23);
      if (kind < 11) {
        step.what = make_submit();
      } else if (kind < 13) {
        step.what = sim::UpdateStep{some_job(), dice_.roll(6)};
      } else if (kind < 14) {
        step.what = sim::TerminateStep{some_job()};
      } else if (kind < 16) {
        step.what = make_share_step();
      } else if (kind < 18 && !shape_.plain) {
        step.what = make_node_step();
      } else if (kind == 18) {
        step.what = sim::FailStep{some_job(), dice_.between(1, 3)};
      } else if (kind >= 20) {
        step.what = sim::HoldStep{some_job(), kind == 20};
      } else {
        step.what = sim::RestartStep{};
      }
      scenario_.timeline.push_back(std::move(step));
    }
  }

  std::string some_job() {
    if (!members_.empty() && array_dice_.one_in(3)) return array_dice_.pick(members_);
    return fmt::format("j{}", dice_.roll(submitted_));
  }

  void make_array(JobRequest& job) {
    const std::int32_t first = array_dice_.roll(3);
    ArrayRange range{first, first + array_dice_.roll(8), array_dice_.between(1, 2), 0};
    if (!array_dice_.one_in(3)) range.limit = array_dice_.between(1, 4);
    job.array = range;
    for (std::int32_t n = 0; n < range.size(); ++n) {
      members_.push_back(sim::member_name(job.name, first + n * range.step));
    }
  }

  sim::SubmitStep make_submit() {
    sim::SubmitStep step;
    JobRequest& job = step.request;
    job.name = fmt::format("j{}", submitted_++);
    job.share = dice_.pick(shares_);
    step.user = fmt::format("u{}", submitted_ % 3);
    job.priority = dice_.roll(5);
    job.held = dice_.one_in(12);
    while (submitted_ > 1 && dice_.one_in(5)) {
      const bool on_member = !members_.empty() && array_dice_.one_in(3);
      step.depends_on.emplace_back(
          on_member ? array_dice_.pick(members_) : fmt::format("j{}", dice_.roll(submitted_ - 1)),
          dice_.pick<DependencyCondition>({DependencyCondition::kSucceeded,
                                           DependencyCondition::kEnded,
                                           DependencyCondition::kFailed}));
    }
    if (shape_.arrays && array_dice_.one_in(6)) make_array(job);
    step.runtime = Seconds(dice_.pick<int>({5, 20, 60, 120, 300}));
    if (dice_.one_in(3)) job.grace = Seconds(dice_.pick<int>({0, 3, 15}));
    if (shape_.plain) {
      job.units = {{"a", Amount::units(1)}};
      job.preemptible = !dice_.one_in(10);
      return step;
    }
    add_units(job);
    if (dice_.one_in(4)) job.instances = dice_.between(2, 4);
    if (dice_.one_in(3)) job.topology_label = "rack";
    job.topology_required = !job.topology_label.empty() && dice_.one_in(2);
    if (dice_.one_in(4)) job.cpus = dice_.between(1, 6);
    if (dice_.one_in(6)) job.memory_mib = 1024 * dice_.between(1, 32);
    if (dice_.one_in(timeouts_ ? 2 : 8)) job.timeout = Seconds(dice_.pick<int>({10, 50}));
    if (timeouts_ && !job.timeout) job.timeout = Seconds(200);
    job.preemptible = !dice_.one_in(10);
    job.exit_zero_after_stop_succeeds = dice_.one_in(6);
    if (dice_.one_in(8)) job.preemption_retries = dice_.roll(2);
    job.max_attempts = dice_.between(1, 3);
    if (dice_.one_in(3)) job.backoff = Seconds(dice_.pick<int>({1, 5, 30, 600}));
    if (dice_.one_in(5)) step.start_delay = Seconds(dice_.between(1, 10));
    if (dice_.one_in(8)) step.checkpoint = Seconds(10);
    return step;
  }

  void add_units(JobRequest& job) {
    const std::string first = dice_.pick(units_);
    const Amount count = count_of(first);
    job.units.emplace_back(first, count);
    if (units_.size() < 2 || !dice_.one_in(4)) return;
    const std::string second = dice_.pick(units_);
    if (second != first && count.milli % 1000 == 0) job.units.emplace_back(second, count);
  }

  Amount count_of(const std::string& unit) {
    const bool parts = unit == "b" || (unit == "a" && pair_ == 1);
    if (parts && dice_.one_in(4)) return Amount(dice_.pick<int>({250, 250, 500, 750, 400, 1500}));
    return Amount::units(dice_.one_in(3) ? dice_.between(2, 4) : 1);
  }

  sim::ShareStep make_share_step() {
    sim::ShareStep step;
    step.share = dice_.pick(shares_);
    step.drain = dice_.one_in(3);
    switch (dice_.roll(7)) {
      case 6:
        step.user_order = dice_.pick<UserOrder>({UserOrder::kFifo, UserOrder::kFair});
        break;
      case 5:
        step.head_wait_limit = Seconds(dice_.pick<int>({0, 10, 900}));
        break;
      case 4:
        step.min_runtime = Seconds(dice_.pick<int>({0, 5, 30}));
        break;
      case 0:
        step.strategy = dice_.pick<SharingStrategy>(
            {SharingStrategy::kReserve, SharingStrategy::kLend, SharingStrategy::kLendAndBorrow});
        break;
      case 1:
        step.in_share_preemption = dice_.one_in(2);
        break;
      case 2:
        step.borrow_limit = dice_.pick<int>({-1, 0, 100});
        break;
      default:
        if (units_.size() == 1) step.capacity = Amount::units(dice_.between(0, total("a")));
        break;
    }
    return step;
  }

  sim::NodeStep make_node_step() {
    const auto n = static_cast<std::size_t>(dice_.roll(static_cast<int>(scenario_.nodes.size())));
    sim::NodeStep step;
    step.node = scenario_.nodes[n].name;
    step.state = dice_.pick<sim::NodeStepState>(
        {sim::NodeStepState::kUp, sim::NodeStepState::kUp, sim::NodeStepState::kUp,
         sim::NodeStepState::kDown, sim::NodeStepState::kCordoned, sim::NodeStepState::kDraining});
    return step;
  }

  Dice dice_;
  Dice array_dice_;
  Shape shape_;
  sim::Scenario scenario_;
  std::vector<std::string> units_;
  std::vector<std::string> shares_;
  std::vector<std::string> members_;  ///< Of arrays, by the names that scenarios give them.
  bool two_models_ = false;
  bool timeouts_ = false;  ///< Every job has one (O5).
  int pair_ = 1;
  int gpus_[2] = {0, 0};
  int cpus_ = 0;
  int submitted_ = 0;
};

inline sim::Scenario random_case(std::uint64_t seed, const Shape& shape = {}) {
  return CaseMaker(seed, shape).make();
}

}  // namespace gpuq::property
