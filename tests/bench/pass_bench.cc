// What a pass costs: with nothing to do, after one end, while filling an empty cluster, and for one
// reclaim, on 1,250 nodes of 8 GPUs, 50 shares and up to 100,000 waiting jobs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/sched/planner.h"
#include "core/sim/world.h"
#include "tests/bench/bench_table.h"

namespace gpuq {
namespace {

constexpr int kNodes = 1250;
constexpr int kShares = 50;

double micros(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return took.count();
}

double median(int times, const std::function<void()>& work) {
  std::vector<double> samples;
  for (int i = 0; i < times; ++i) samples.push_back(micros(work));
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

PolicyDoc policy() {
  PolicyDoc doc;
  doc.units = std::vector<UnitDef>{{"gpu", "", 1, 0, 0}};
  EnvDef env;
  env.name = "pool";
  env.capacity_limits = {{"gpu", Amount::units(kNodes * 8)}};
  doc.environments = std::vector<EnvDef>{env};
  doc.policies = std::vector<SchedulingPolicyDef>{{"quotas", QueueKind::kQuota, IdleOrder::kFifo}};
  QueueDef queue;
  queue.name = "q";
  queue.service_environments = {"pool"};
  queue.scheduling_policy = "quotas";
  for (int s = 0; s < kShares; ++s) {
    ShareDef share;
    share.name = fmt::format("s{:02}", s);
    share.capacity_limits = {{"gpu", Amount::units(kNodes * 8 / kShares)}};
    share.strategy = SharingStrategy::kLendAndBorrow;
    share.in_share_preemption = true;
    queue.shares.push_back(share);
  }
  doc.queues = std::vector<QueueDef>{queue};
  return doc;
}

std::unique_ptr<sim::World> make_world() {
  EngineConfig config;
  config.max_queued_commands = 10'000'000;
  config.max_shares_per_queue = kShares;
  auto world = std::make_unique<sim::World>(config);
  for (int n = 0; n < kNodes; ++n) {
    Node node;
    node.name = fmt::format("n{:04}", n);
    node.cpus = 128;
    node.memory_mib = 1 << 20;
    for (int d = 0; d < 8; ++d) {
      Device device;
      device.uuid = fmt::format("{}-{}", node.name, d);
      device.model = "A100";
      node.devices.push_back(device);
    }
    world->agents().add_node(node);
  }
  GPUQ_CHECK(world->start().has_value());
  ApplyPolicyCommand apply;
  apply.doc = policy();
  apply.prune = true;
  world->post({"bench", apply}, [](Result<Reply> reply) { GPUQ_CHECK(reply.has_value()); });
  world->settle();
  return world;
}

// `count` jobs of 1, 2, 4 and 8 GPUs over all shares, or all of `gpus`.
void submit(sim::World& world, int count, int gpus, std::int32_t priority, int share = -1) {
  SubmitCommand command;
  for (int i = 0; i < count; ++i) {
    JobRequest request;
    request.name = "j";
    request.share = fmt::format("s{:02}", share >= 0 ? share : i % kShares);
    request.priority = priority;
    request.units = {{"gpu", Amount::units(gpus > 0 ? gpus : 1 << (i / kShares % 4))}};
    command.jobs.push_back(request);
  }
  const std::int64_t first = world.state().counters().next_job;
  for (int i = 0; i < count; ++i) {
    world.agents().set_behaviour(JobId(first + i), {std::chrono::hours(1000), Duration(0), {}});
  }
  world.post({"bench", std::move(command)},
             [](Result<Reply> reply) { GPUQ_CHECK(reply.has_value()); });
}

std::size_t plan_size(sim::World& world) {
  PlanCache cache;
  return make_plan(world.state(), world.clock().now(), cache).decisions.size();
}

double idle_pass(sim::World& world) {
  PlanCache cache;
  (void)make_plan(world.state(), world.clock().now(), cache);
  return median(51, [&] { (void)make_plan(world.state(), world.clock().now(), cache); });
}

void run(bench::Table& table) {
  auto world = make_world();
  submit(*world, kNodes * 8, 1, 5);
  // Only the submissions, not the pass behind them: the plan is what is measured.
  while (world->state().jobs().empty()) world->executor().run_one();
  std::size_t starts = 0;
  const double filling = micros([&] { starts = plan_size(*world); });
  table.row("filling the empty cluster, decisions/s", static_cast<double>(starts) / (filling / 1e6),
            "/s");
  world->settle();
  submit(*world, 1'000, 0, 0);
  world->settle();
  const double small = idle_pass(*world);
  submit(*world, 99'000, 0, 0);
  world->settle();
  GPUQ_CHECK(plan_size(*world) == 0);
  const double large = idle_pass(*world);
  table.most("idle pass, 100,000 waiting, ns", large * 1000, "the same, 1,000 waiting",
             small * 1000, 20'000, 2.0);
  const std::size_t one = [&] {
    world->agents().fail(JobId(1), 0);
    world->executor().run_one();
    while (world->state().job(JobId(1)).attempt.valid()) world->executor().run_one();
    return plan_size(*world);
  }();
  GPUQ_CHECK(one == 1);
  // 200 groups of jobs are tried anew, each with its reason: not yet what it should cost (50 us).
  table.row("pass after one end, 100,000 waiting, ns", idle_pass(*world) * 1000,
            "idle pass, 100,000 waiting", large * 1000, 0);
}

}  // namespace
}  // namespace gpuq

int main(int argc, char** argv) {
  gpuq::bench::Table table(argc, argv);
  gpuq::run(table);
  return table.finish();
}
