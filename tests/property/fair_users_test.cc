// Users of a fair share who want as much as they can get hold the same over time, whatever their
// jobs look like and whoever came first (O10).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/property/drive.h"
#include "tests/property/random_case.h"
#include "tests/property/seeds.h"

namespace gpuq::property {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr int kGpus = 8;

ShareDef fair_share() {
  ShareDef share;
  share.name = "S";
  share.capacity_limits = {{"gpu", Amount::units(kGpus)}};
  share.user_order = UserOrder::kFair;
  share.head_wait_limit = Duration(0);  // Else narrow jobs pass wide ones for a while.
  return share;
}

sim::Scenario one_share() {
  sim::Scenario scenario;
  Node node;
  node.name = "n";
  node.cpus = 64;
  node.memory_mib = 1 << 20;
  for (int g = 0; g < kGpus; ++g) {
    Device device;
    device.uuid = fmt::format("GPU-{}", g);
    device.model = "A";
    node.devices.push_back(device);
  }
  scenario.nodes.push_back(node);
  EnvDef env;
  env.name = "pool";
  env.capacity_limits = {{"gpu", Amount::units(kGpus)}};
  SchedulingPolicyDef policy;
  policy.name = "quotas";
  policy.half_life = hours(12);  // Much longer than a job: else what one job is ahead counts.
  QueueDef queue;
  queue.name = "q";
  queue.service_environments = {"pool"};
  queue.scheduling_policy = "quotas";
  queue.shares = {fair_share()};
  scenario.policy.units = std::vector<UnitDef>{{"gpu", "", 1, 0, 0}};
  scenario.policy.environments = std::vector<EnvDef>{env};
  scenario.policy.policies = std::vector<SchedulingPolicyDef>{policy};
  scenario.policy.queues = std::vector<QueueDef>{queue};
  return scenario;
}

/// Jobs of `user` for some 300 GPU-hours, all sent at `at`: more than there is time for.
void flood(sim::Scenario& scenario, Dice& dice, const std::string& user, Duration at) {
  const int gpus = dice.between(1, 3);
  const int length = dice.between(10, 60);
  int sent = 0;
  for (int left = 300 * 60; left > 0; left -= gpus * length) {
    sim::SubmitStep step;
    step.user = user;
    step.request.name = fmt::format("{}-{}", user, sent++);
    step.request.share = "S";
    step.request.units = {{"gpu", Amount::units(gpus)}};
    step.runtime = minutes(dice.between(length / 2, length));
    sim::TimelineStep& sent_at = scenario.timeline.emplace_back();
    sent_at.at = time_from_ms(0) + at;
    sent_at.what = std::move(step);
  }
}

/// GPU-hours that `user` held from `from` to `until`.
std::int64_t held_hours(const State& state, const std::string& user, Time from, Time until) {
  std::int64_t milli_ms = 0;
  for (const auto& [id, attempt] : state.attempts()) {
    if (state.job(attempt.job).user != user) continue;
    const Time began = std::max(attempt.scheduled_at, from);
    const Time ended = std::min(attempt.ended_at, until);
    if (began < ended) milli_ms += attempt.demand.milli * (ended - began).count();
  }
  return milli_ms / 1000 / Duration(hours(1)).count();
}

// Everybody waits from 2h on, and by 8h has caught up with who came first. Of the 24h x 8 GPUs what
// no head fits stays idle; a third of the rest is some 50 GPU-hours. At either end somebody may be
// ahead by a job or two, of 3 at most.
std::string equal_demand(std::uint64_t seed) {
  Dice dice(seed);
  sim::Scenario scenario = one_share();
  flood(scenario, dice, "ann", hours(0));
  flood(scenario, dice, "bob", hours(dice.roll(3)));
  flood(scenario, dice, "eve", hours(dice.roll(3)));
  std::ranges::stable_sort(scenario.timeline, {}, &sim::TimelineStep::at);
  Drive drive(scenario, EngineConfig{}, {});
  if (const std::string fault = drive.run(); !fault.empty()) return fault;
  const Time from = time_from_ms(0) + hours(8);
  std::vector<std::int64_t> held;
  for (const char* user : {"ann", "bob", "eve"}) {
    held.push_back(held_hours(drive.state(), user, from, from + hours(24)));
  }
  const auto [least, most] = std::ranges::minmax(held);
  if (least >= 40 && most - least <= 6) return {};
  return fmt::format("ann, bob and eve held {}, {} and {} GPU-hours", held[0], held[1], held[2]);
}

TEST(FairUsers, WithEqualDemandHoldTheSame) { for_seeds(10, equal_demand); }

}  // namespace
}  // namespace gpuq::property
