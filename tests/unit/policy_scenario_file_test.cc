#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/policy/scenario_file.h"
#include "core/engine/policy_change.h"

namespace gpuq {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

Result<sim::Scenario> parse(const std::string& text, const ScenarioOptions& options = {}) {
  return parse_scenario_text(text, "f", options);
}

sim::Scenario good(const std::string& text) {
  auto parsed = parse(text);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? std::move(*parsed) : sim::Scenario();
}

std::string error_of(const std::string& text) {
  const auto parsed = parse(text);
  EXPECT_FALSE(parsed) << text;
  if (parsed) return "";
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  return parsed.error().message;
}

constexpr const char* kShort = R"(scenario: s
shares:
  A: {capacity: 1.5, strategy: LEND_AND_BORROW, borrow_limit: 100, in_share_preemption: true, min_runtime: 1m, head_wait_limit: 0s, grace: 5s}
  B: {capacity: 2}
)";

TEST(ScenarioFile, ShortFormMakesClusterAndPolicy) {
  const sim::Scenario s = good(kShort);
  EXPECT_EQ(s.title, "s");
  EXPECT_EQ(s.file, "f");
  ASSERT_EQ(s.nodes.size(), 1u);
  EXPECT_EQ(s.nodes[0].name, "pool");
  EXPECT_EQ(s.nodes[0].devices.size(), 4u);  // 3.5 GPUs of capacity need four devices.
  EXPECT_GE(s.nodes[0].cpus, 1024);
  ASSERT_TRUE(s.policy.units && s.policy.environments && s.policy.policies && s.policy.queues);
  EXPECT_EQ(s.policy.units->front().name, "gpu");
  EXPECT_TRUE(s.policy.units->front().gpu_model.empty());
  EXPECT_EQ(s.policy.environments->front().capacity_limits,
            (std::vector<CapacityLimit>{{"gpu", Amount(3500)}}));
  const QueueDef& queue = s.policy.queues->front();
  EXPECT_EQ(queue.name, "q");
  ASSERT_EQ(queue.shares.size(), 2u);
  EXPECT_EQ(queue.shares[0].borrow_limit, 100);
  EXPECT_EQ(queue.shares[0].head_wait_limit, Duration(0));
  EXPECT_EQ(queue.shares[0].min_runtime, 1min);
  EXPECT_EQ(queue.shares[0].grace, 5s);
  EXPECT_EQ(queue.shares[1].strategy, SharingStrategy::kReserve);
  EXPECT_EQ(queue.shares[1].borrow_limit, -1);
  EXPECT_EQ(s.default_grace, 0s);
}

TEST(ScenarioFile, PoolIsTheEnvironmentsLimit) {
  const sim::Scenario alone = good(std::string(kShort) + "pool: 12\n");
  EXPECT_EQ(alone.nodes[0].devices.size(), 12u);
  const sim::Scenario nodes =
      good(std::string(kShort) + "pool: 3\ncluster: {nodes: [{name: n, count: 2, gpus: 4}]}\n");
  EXPECT_EQ(nodes.policy.environments->front().capacity_limits[0].max_capacity, Amount::units(3));
  const sim::Scenario all =
      good(std::string(kShort) + "cluster: {nodes: [{name: n, count: 2, gpus: 4}]}\n");
  EXPECT_EQ(all.policy.environments->front().capacity_limits[0].max_capacity, Amount::units(8));
}

TEST(ScenarioFile, NodesAreNumberedOnlyWithACount) {
  const sim::Scenario s = good(std::string(kShort) + R"(
cluster:
  nodes:
    - {name: n, count: 2, gpus: 1, gpu_model: A10G, labels: {zone: a}}
    - {name: m, gpus: 2, cpus: 8, memory: 16GiB}
)");
  ASSERT_EQ(s.nodes.size(), 3u);
  EXPECT_EQ(s.nodes[0].name, "n-0");
  EXPECT_EQ(s.nodes[1].name, "n-1");
  EXPECT_EQ(s.nodes[2].name, "m");
  EXPECT_EQ(s.nodes[0].labels.at("zone"), "a");
  EXPECT_EQ(s.nodes[0].devices[0].model, "A10G");
  EXPECT_NE(s.nodes[0].devices[0].uuid, s.nodes[1].devices[0].uuid);
  EXPECT_EQ(s.nodes[2].cpus, 8);
  EXPECT_EQ(s.nodes[2].memory_mib, 16384);
}

TEST(ScenarioFile, SubmitTakesEveryKey) {
  const sim::Scenario s = good(std::string(kShort) + R"(
defaults: {runtime: 2h, grace: 7s}
timeline:
  - {at: 0s, submit: {job: a, share: A, gpus: 0.25, priority: 3, instances: 2, runtime: 10m, timeout: 20m, grace: 9s,
      preemptible: false, checkpoint: 1m, start_delay: 2s, preemption_retries_before_termination: 4,
      exit_zero_after_stop: SUCCEEDED, attempts: 5}}
  - {at: 1s, submit: {job: b, share: B, resources: {gpus: 3, instances: 4, cpus: 2, memory: 1G},
      retry: {attempts: 2, evaluate_on_exit: [{on_exit_code: 1, action: EXIT}]},
      preemption: {preemptible: false, retries_before_termination: 0, grace: 3s}, command: [x], labels: {a: b}}}
  - {at: 1s, submit: {job: c, share: B}}
)");
  ASSERT_EQ(s.timeline.size(), 3u);
  EXPECT_EQ(s.default_grace, 7s);
  const auto& a = std::get<sim::SubmitStep>(s.timeline[0].what);
  using Units = std::vector<std::pair<std::string, Amount>>;
  EXPECT_EQ(a.request.units, (Units{{"gpu", Amount(250)}}));
  EXPECT_EQ(a.request.name, "a");
  EXPECT_EQ(a.request.share, "A");
  EXPECT_EQ(a.request.queue, "");
  EXPECT_EQ(a.request.priority, 3);
  EXPECT_EQ(a.request.instances, 2);
  EXPECT_EQ(a.request.timeout, 20min);
  EXPECT_EQ(a.request.grace, 9s);
  EXPECT_FALSE(a.request.preemptible);
  EXPECT_EQ(a.request.preemption_retries, 4);
  EXPECT_TRUE(a.request.exit_zero_after_stop_succeeds);
  EXPECT_EQ(a.request.max_attempts, 5);
  EXPECT_EQ(a.runtime, 10min);
  EXPECT_EQ(a.checkpoint, 1min);
  EXPECT_EQ(a.start_delay, 2s);
  const auto& b = std::get<sim::SubmitStep>(s.timeline[1].what);
  EXPECT_EQ(b.request.units, (Units{{"gpu", Amount::units(3)}}));
  EXPECT_EQ(b.request.instances, 4);
  EXPECT_EQ(b.request.cpus, 2);
  EXPECT_EQ(b.request.memory_mib, 1024);
  EXPECT_EQ(b.request.exit_rules.size(), 1u);
  EXPECT_EQ(b.request.preemption_retries, 0);
  EXPECT_EQ(b.request.grace, 3s);
  EXPECT_EQ(b.runtime, 2h);
  const auto& c = std::get<sim::SubmitStep>(s.timeline[2].what);
  EXPECT_EQ(c.request.units, (Units{{"gpu", Amount::units(1)}}));
}

TEST(ScenarioFile, CopiesAreNumberedInOrder) {
  const sim::Scenario s =
      good(std::string(kShort) + "timeline: [{at: 1s, submit: {job: j, share: A, copies: 3}}]\n");
  std::vector<std::string> names;
  for (const auto& step : s.timeline) {
    names.push_back(std::get<sim::SubmitStep>(step.what).request.name);
  }
  EXPECT_THAT(names, ElementsAre("j-0", "j-1", "j-2"));
}

TEST(ScenarioFile, EveryTimelineEntry) {
  const sim::Scenario s = good(std::string(kShort) + R"(timeline:
  - {at: 9s, restart: server}
  - {at: 0s, submit: {job: j, share: A}}
  - {at: 1s, update: {job: j, priority: 4}}
  - {at: 2s, node: {name: pool, state: DRAINING}}
  - {at: 3s, share: {name: A, capacity: 2, strategy: LEND, borrow_limit: -1, in_share_preemption: false, min_runtime: 1s, head_wait_limit: 2s, grace: 3s, state: DISABLED}}
  - {at: 4s, fail: {job: j, exit_code: 3}}
  - {at: 4s, terminate: j}
)");
  ASSERT_EQ(s.timeline.size(), 7u);
  EXPECT_EQ(s.timeline[0].line, 7);
  EXPECT_EQ(std::get<sim::UpdateStep>(s.timeline[1].what).priority, 4);
  EXPECT_EQ(std::get<sim::NodeStep>(s.timeline[2].what).state, sim::NodeStepState::kDraining);
  const auto& share = std::get<sim::ShareStep>(s.timeline[3].what);
  EXPECT_EQ(share.capacity, Amount::units(2));
  EXPECT_EQ(share.strategy, SharingStrategy::kLend);
  EXPECT_EQ(share.borrow_limit, -1);
  EXPECT_EQ(share.in_share_preemption, false);
  EXPECT_EQ(share.min_runtime, 1s);
  EXPECT_EQ(share.head_wait_limit, 2s);
  EXPECT_EQ(share.grace, 3s);
  EXPECT_EQ(share.enabled, false);
  EXPECT_EQ(std::get<sim::FailStep>(s.timeline[4].what).exit_code, 3);
  EXPECT_EQ(std::get<sim::TerminateStep>(s.timeline[5].what).job, "j");
  EXPECT_TRUE(std::holds_alternative<sim::RestartStep>(s.timeline[6].what));
  EXPECT_EQ(s.timeline[6].at, Time(9s));
}

TEST(ScenarioFile, EveryExpectation) {
  const sim::Scenario s =
      good(std::string(kShort) + R"(timeline: [{at: 0s, submit: {job: j, share: A, copies: 2}}]
expect:
  - {started_order: [j-0, j-1]}
  - {at: 5s, running: []}
  - {at: 1s, running: [j-0], runnable: [j-1], starting: [j-1], not_running: [j-1], succeeded: [j-1], failed: [j-1],
     reason: {j-1: "MISCONFIGURATION:NO_NODE_FITS"}, preempted: {j-0: 2}, preempted_by: {j-0: {job: j-1, rule: IN_SHARE}},
     held: {A: 0.5, q/B: 0}, placed: {j-0: [pool]}}
)");
  ASSERT_EQ(s.expect.size(), 3u);
  const sim::Expectation& e = s.expect[0];
  EXPECT_EQ(e.at, Time(1s));
  EXPECT_THAT(*e.running, ElementsAre("j-0"));
  EXPECT_THAT(e.runnable, ElementsAre("j-1"));
  EXPECT_EQ(e.reason.at("j-1"), "MISCONFIGURATION:NO_NODE_FITS");
  EXPECT_EQ(e.preempted.at("j-0"), 2);
  EXPECT_EQ(e.preempted_by.at("j-0").rule, PreemptRule::kInShare);
  EXPECT_EQ(e.held.at("A"), Amount(500));
  EXPECT_THAT(e.placed.at("j-0"), ElementsAre("pool"));
  EXPECT_TRUE(s.expect[1].running.has_value());
  EXPECT_TRUE(s.expect[1].running->empty());
  EXPECT_FALSE(s.expect[2].at.has_value());
  EXPECT_FALSE(s.expect[2].running.has_value());
}

constexpr const char* kLong = R"(scenario: s
cluster: {nodes: [{name: a, gpus: 1, gpu_model: A100}]}
policy:
  capacity_units: [{name: a100, gpu_model: A100, gpus: 1}, {name: cpu, cpus: 1}]
  service_environments: [{name: p, capacity_limits: {a100: 1, cpu: 4}}, {name: p2, capacity_limits: {a100: 1}}]
  scheduling_policies: [{name: quotas, quota_share: {}}]
  job_queues:
    - name: q1
      service_environments: [p]
      scheduling_policy: quotas
      quota_shares:
        - {name: S, capacity_limits: {a100: 1, cpu: 1}, resource_sharing: {strategy: RESERVE}}
        - {name: T, capacity_limits: {a100: 1}, resource_sharing: {strategy: RESERVE}}
    - {name: q2, service_environments: [p2], scheduling_policy: quotas, quota_shares: [{name: S, capacity_limits: {a100: 1}, resource_sharing: {strategy: LEND}}]}
)";

TEST(ScenarioFile, LongFormAsksForGpusByShortcut) {
  const sim::Scenario s = good(std::string(kLong) + R"(timeline:
  - {at: 0s, submit: {job: a, queue: q1, share: S, gpus: 1}}
  - {at: 0s, submit: {job: b, queue: q1, share: S}}
  - {at: 0s, submit: {job: c, queue: q2, resources: {unit: [a100, cpu], count: 2}}}
expect: [{at: 1s, held: {q1/S: 1, T: 0}}]
)");
  const auto units = [&](std::size_t i) {
    return std::get<sim::SubmitStep>(s.timeline[i].what).request.units;
  };
  using Units = std::vector<std::pair<std::string, Amount>>;
  EXPECT_EQ(units(0), (Units{{"", Amount::units(1)}}));
  EXPECT_EQ(units(1), Units{});
  EXPECT_EQ(units(2), (Units{{"a100", Amount::units(2)}, {"cpu", Amount::units(2)}}));
}

using Cases = std::vector<std::pair<std::string, std::string>>;

/// Every text is refused with a message that names the place and holds the expected words.
void expect_refused(const Cases& cases) {
  for (const auto& [text, expected] : cases) {
    const std::string message = error_of(text);
    EXPECT_THAT(message, HasSubstr(expected)) << text;
    EXPECT_TRUE(message.starts_with("f:")) << message;
  }
}

TEST(ScenarioFile, MistakesOfClusterAndPolicyAreNamed) {
  const std::string s = kShort;
  const std::string l = kLong;
  expect_refused({
      {"shares: {A: {capacity: 1}}", "f:1:1: needs the key 'scenario'"},
      {"scenario: s", "needs one of shares, policy and policy_file"},
      {s + "policy: {}", "needs one of shares, policy and policy_file"},
      {l + "pool: 1", "pool: belongs to the short form"},
      {"scenario: s\npolicy: {capacity_units: []}", "needs a cluster"},
      {s + "bogus: 1", "f:5:1: unknown key 'bogus'"},
      {s + "rule: P1", "rule: expected a list, found 'P1'"},
      {s + "pool: -1", "pool: '-1' is negative"},
      {s + "pool: 2000000", "more than 1000000 GPUs"},
      {s + "defaults: {runtime: x}", "defaults.runtime: 'x' is no duration"},
      {s + "defaults: {running: 1s}", "defaults: unknown key 'running'"},
      {s + "cluster: {}", "cluster: needs the key 'nodes'"},
      {s + "cluster: {nodes: [{gpus: 1}]}", "cluster.nodes[0]: needs the key 'name'"},
      {s + "cluster: {nodes: [{name: a}, {name: a}]}", "node 'a' is given twice"},
      {s + "cluster: {nodes: [{name: a, count: 0}]}", "write 1 to 100000"},
      {s + "cluster: {nodes: [{name: a, gpus: 0.5}]}", "'0.5' is no whole number"},
      {s + "cluster: {nodes: [{name: a, count: 100000, gpus: 1000}]}", "more than 1000000 GPUs"},
      {s + "cluster: {nodes: [{name: a b}]}", "'a b' is no node name"},
      {"scenario: s\nshares: {A: {}}", "shares.A: needs the key 'capacity'"},
      {"scenario: s\nshares: {A: {capacity: 1, strategy: BORROW}}", "found 'BORROW'"},
      {"scenario: s\nshares: {A: {capacity: 1, borrow_limit: 5}}", "never borrows"},
      {"scenario: s\nshares: {a b: {capacity: 1}}", "name 'a b' is not valid"},
      {"scenario: s\nshares: {A: {capacity: 1, preemption: 1}}", "unknown key 'preemption'"},
      {"scenario: s\npolicy_file: none.yaml\ncluster: {nodes: []}", "none.yaml: no such file"},
  });
}

TEST(ScenarioFile, MistakesOfSubmitsAreNamed) {
  const std::string s = kShort;
  const std::string l = kLong;
  const std::string job = "timeline: [{at: 0s, submit: {job: j, share: A";
  expect_refused({
      {s + job + ", gpus: 0}}]", "gpus: 0 is out of range"},
      {s + job + ", gpus: 1, resources: {gpus: 1}}}]", "given under resources too"},
      {s + job + ", grace: 1s, preemption: {grace: 1s}}}]", "given under preemption too"},
      {s + job + ", attempts: 1, retry: {attempts: 1}}}]", "given under retry too"},
      {s + job + ", copies: 0}}]", "write 1 to 1000000"},
      {s + job + ", checkpoint: 0s}}]", "must be longer than 0s"},
      {s + job + ", name: k}}]", "given by the key 'job'"},
      {s + job + ", depends_on: [{job: k}]}}]", "there is no job 'k'"},
      {s + job + ", resources: {unit: h100}}}]", "there is no capacity unit 'h100'"},
      {s + job + ", queue: z}}]", "there is no queue 'z'"},
      {s + job + ", colour: 1}}]", "unknown key 'colour'"},
      {s + "timeline: [{at: 0s, submit: {job: j, share: Z}}]", "queue q has no share 'Z'"},
      {s + "timeline: [{at: 0s, submit: {job: j}}]", "needs the key 'share'"},
      {s + "timeline: [{at: 0s, submit: {share: A}}]", "needs the key 'job'"},
      {l + "timeline: [{at: 0s, submit: {job: j, share: S}}]", "needs the key 'queue'"},
  });
}

TEST(ScenarioFile, MistakesOfTimelineAndExpectationsAreNamed) {
  const std::string s = kShort;
  const std::string l = kLong;
  const std::string job = "timeline: [{at: 0s, submit: {job: j, share: A";
  expect_refused({
      {s + "timeline: [{at: 0s}]", "needs exactly one of submit"},
      {s + "timeline: [{at: 0s, terminate: x}]", "there is no job 'x'"},
      {s + "timeline: [{terminate: x}]", "needs the key 'at'"},
      {s + "timeline: [{at: 0s, restart: node}]", "expected server, found 'node'"},
      {s + "timeline: [{at: 0s, node: {name: x, state: UP}}]", "there is no node 'x'"},
      {s + "timeline: [{at: 0s, node: {name: pool, state: OFF}}]", "found 'OFF'"},
      {s + "timeline: [{at: 0s, share: {name: Z}}]", "there is no share 'Z'"},
      {l + "timeline: [{at: 0s, share: {name: S}}]", "several queues have a share 'S'"},
      {l + "timeline: [{at: 0s, share: {name: q1/S, capacity: 1}}]", "limits of several units"},
      {s + "timeline: [{at: 0s, fail: {job: x}}]", "there is no job 'x'"},
      {s + "timeline: [{at: 0s, update: {job: x, priority: 1}}]", "there is no job 'x'"},
      {s + "timeline: 1", "timeline: expected a list"},
      {s + "expect: [{at: 0s, running: [x]}]", "there is no job 'x'"},
      {s + "expect: [{at: 0s, runing: []}]", "unknown key 'runing'"},
      {s + "expect: [{at: 0s, held: {Z: 1}}]", "there is no share 'Z'"},
      {s + job + "}}]\nexpect: [{reason: {j: FULL}}]", "'FULL' is no reason"},
      {s + job + "}}]\nexpect: [{preempted: {j: -1}}]", "out of range"},
      {s + job + "}}]\nexpect: [{placed: {j: [x]}}]", "there is no node 'x'"},
      {s + job + "}}]\nexpect: [{preempted_by: {j: {job: j, rule: X}}}]",
       "expected CROSS_SHARE or IN_SHARE"},
      {s + job + "}}, {at: 1s, submit: {job: j, share: A}}]", "submitted twice, first in line"},
      {"- 1", "f:1:1: expected a map, found a list"},
      {"{", "is a bracket left open?"},
  });
}

TEST(ScenarioFile, AllMistakesAtOnce) {
  const std::string message = error_of(std::string(kShort) + R"(bogus: 1
timeline: [{at: x, submit: {job: j, share: A, priority: -1}}]
expect: [{at: 0s, running: [k]}]
)");
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 3);
}

TEST(ScenarioFile, OtherJobsMayBeNamedWhenTheyComeFromElsewhere) {
  ScenarioOptions options;
  options.other_jobs = true;
  EXPECT_TRUE(parse(std::string(kShort) + "expect: [{at: 0s, running: [x]}]", options));
}

TEST(ScenarioFile, PolicyFileIsRelativeToTheScenario) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "gpuq_scenario_policy_file";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "policy.yaml")
      << "capacity_units: [{name: u, gpus: 1}]\n"
         "service_environments: [{name: p, capacity_limits: {u: 1}}]\n"
         "scheduling_policies: [{name: quotas, quota_share: {}}]\n"
         "job_queues: [{name: q, service_environments: [p], scheduling_policy: quotas,\n"
         "  quota_shares: [{name: S, capacity_limits: {u: 1}, resource_sharing: {strategy: "
         "LEND}}]}]\n";
  std::ofstream(folder / "s.yaml") << "scenario: s\npolicy_file: policy.yaml\n"
                                      "cluster: {nodes: [{name: n, gpus: 1}]}\n"
                                      "timeline: [{at: 0s, submit: {job: j, gpus: 1}}]\n";
  const auto parsed = parse_scenario_file((folder / "s.yaml").string());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->policy.queues->front().name, "q");
  std::filesystem::remove_all(folder);
}

TEST(ScenarioFile, EveryScenarioOfTheTreeIsReadable) {
  std::size_t files = 0;
  const auto folder = std::filesystem::path(GPUQ_SOURCE_DIR) / "tests" / "scenario";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const auto parsed = parse_scenario_file(entry.path().string());
    EXPECT_TRUE(parsed && !parsed->title.empty())
        << (parsed ? entry.path().string() : parsed.error().message);
    if (!parsed) continue;
    ApplyPolicyCommand command;
    command.doc = parsed->policy;
    const PolicyChange change =
        plan_policy_change(PolicyTables(), command, parsed->nodes, {}, PolicyLimits());
    EXPECT_FALSE(change.has_errors()) << entry.path() << ": " << change.issues.front().message;
  }
  EXPECT_GT(files, 0u);
}

}  // namespace
}  // namespace gpuq
