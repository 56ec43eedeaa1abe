#include "core/engine/policy_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/policy_bench.h"

namespace gpuq {
namespace {

using namespace policy_test;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PolicyChange, AFirstDocumentCreatesEverything) {
  Bench bench;
  const PolicyChange change = bench.apply(kPolicy);
  EXPECT_THAT(change.changes,
              ElementsAre("unit a100: created", "unit cpu: created", "environment pool: created",
                          "policy quotas: created", "queue training: created",
                          "share training/a: created", "share training/b: created"));
  EXPECT_THAT(change.issues, IsEmpty());
  EXPECT_FALSE(bench.tables.builtin);
  EXPECT_EQ(bench.tables.shares.size(), 2u);
  EXPECT_TRUE(bench.tables.queues[0].def.shares.empty());
  EXPECT_EQ(bench.tables.shares[0].queue, bench.tables.queues[0].id);
  EXPECT_EQ(policy_document(bench.tables), document(kPolicy));
}

TEST(PolicyChange, TheSameDocumentAgainChangesNothing) {
  Bench bench;
  bench.apply(kPolicy);
  const PolicyTables before = bench.tables;
  const PolicyChange change = bench.apply(kPolicy);
  EXPECT_THAT(change.changes, IsEmpty());
  EXPECT_EQ(bench.tables, before);
}

TEST(PolicyChange, ChangesKeepIdsAndAreNamedByField) {
  Bench bench;
  bench.apply(kPolicy);
  const ShareId a = bench.share("training", "a");
  std::string yaml = replaced(kPolicy, "{a100: 4}, resource_sharing: {strategy: LEND}",
                              "{a100: 2}, resource_sharing: {strategy: LEND_AND_BORROW, "
                              "borrow_limit: 50}, preemption: {in_share: ENABLED, min_runtime: "
                              "15m, grace: 1500ms}, head_wait_limit: 0s, state: DISABLED");
  yaml = replaced(yaml, "{a100: 8}", "{a100: 6, cpu: 2}");
  yaml = replaced(yaml, "name: training", "name: training\n    priority: 3\n    state: DISABLED");
  const PolicyChange change = bench.apply(yaml);
  EXPECT_THAT(
      change.changes,
      ElementsAre(
          "environment pool: limit a100 8 -> 6", "environment pool: limit cpu none -> 2",
          "queue training: priority 0 -> 3", "queue training: state ENABLED -> DISABLED",
          "share training/a: cap a100 4 -> 2", "share training/a: strategy LEND -> LEND_AND_BORROW",
          "share training/a: borrow_limit -1 -> 50",
          "share training/a: in_share_preemption DISABLED -> ENABLED",
          "share training/a: min_runtime 0s -> 900s", "share training/a: grace default -> 1500ms",
          "share training/a: head_wait_limit default -> 0s",
          "share training/a: state ENABLED -> DISABLED"));
  EXPECT_EQ(bench.share("training", "a"), a);
}

TEST(PolicyChange, TheOrderForIdleCapacityChangesAndThePolicyKeepsItsId) {
  Bench bench;
  bench.apply(kPolicy);
  const PolicyId id = bench.tables.policy("quotas")->id;
  const PolicyChange change = bench.apply(replaced(
      kPolicy, "quota_share: {}", "quota_share: {idle_resource_assignment: LEAST_BORROWED}"));
  EXPECT_THAT(change.changes,
              ElementsAre("policy quotas: idle_resource_assignment FIFO -> LEAST_BORROWED"));
  EXPECT_EQ(bench.tables.policy("quotas")->id, id);
  EXPECT_EQ(bench.tables.policy("quotas")->def.idle_order, IdleOrder::kLeastBorrowed);
}

TEST(PolicyChange, TheHalfLifeOfUsageIsAMinuteToAYear) {
  const auto with_half_life = [](const std::string& text) {
    return replaced(kPolicy, "quota_share: {}", "quota_share: {half_life: " + text + "}");
  };
  Bench bench;
  bench.apply(kPolicy);
  const PolicyChange change = bench.apply(with_half_life("12h"));
  EXPECT_THAT(change.changes, ElementsAre("policy quotas: half_life 86400s -> 43200s"));
  EXPECT_THAT(errors(bench.plan(with_half_life("1m"))), testing::IsEmpty());
  ApplyPolicyCommand command;
  command.doc = document(kPolicy);
  command.doc.policies->front().half_life = kMinHalfLife - Duration(1);
  EXPECT_THAT(errors(bench.plan(command)),
              ElementsAre(HasSubstr("59999 ms is out of range: 1 minute to 365 days")));
  command.doc.policies->front().half_life = kMaxHalfLife;
  EXPECT_THAT(errors(bench.plan(command)), testing::IsEmpty());
  command.doc.policies->front().half_life += Duration(1);
  EXPECT_THAT(errors(bench.plan(command)), ElementsAre(HasSubstr("out of range")));
}

TEST(PolicyChange, KindsThatAreNotNamedStay) {
  Bench bench;
  bench.apply(kPolicy);
  const PolicyChange change = bench.apply(
      "capacity_units: [{name: a100, gpu_model: A100, gpus: 1}, {name: cpu, cpus: 1}, "
      "{name: h100, gpu_model: H100, gpus: 1}]");
  EXPECT_THAT(change.changes, ElementsAre("unit h100: created"));
  EXPECT_EQ(bench.tables.queues.size(), 1u);
}

TEST(PolicyChange, DeletionsNeedPruneAndDisabled) {
  Bench bench;
  bench.apply(kPolicy);
  const std::string without_b = replaced(kPolicy,
                                         "      - {name: b, capacity_limits: {a100: 4}, "
                                         "resource_sharing: {strategy: LEND_AND_BORROW}}\n",
                                         "");
  const PolicyChange unasked = bench.plan(without_b);
  EXPECT_THAT(unasked.changes, Contains("share training/b: deleted"));
  EXPECT_THAT(errors(unasked),
              ElementsAre(HasSubstr("job_queues[0]: share training/b is not in the document and "
                                    "would be deleted: add --prune"),
                          HasSubstr("share training/b is ENABLED and can not be deleted")));
  EXPECT_EQ(unasked.tables, bench.tables);
  EXPECT_THAT(errors(bench.plan(without_b, true)), ElementsAre(HasSubstr("is ENABLED")));

  bench.apply(replaced(kPolicy, "{strategy: LEND_AND_BORROW}}",
                       "{strategy: LEND_AND_BORROW}, state: DISABLED}"));
  const ShareId b = bench.share("training", "b");
  bench.uses[b] = {3, 1};
  const PolicyChange done = bench.apply(without_b, true);
  EXPECT_THAT(done.changes, ElementsAre("share training/b: deleted",
                                        "share training/b: ends 3 waiting and 1 active jobs"));
  EXPECT_THAT(done.deleted_shares, ElementsAre(b));
  EXPECT_GT(bench.tables.next_id, b.value);
}

TEST(PolicyChange, ADeletedQueueTakesItsSharesAlong) {
  Bench bench;
  bench.apply(kPolicy);
  const std::string none = R"(
capacity_units: []
service_environments: []
scheduling_policies: []
job_queues: []
)";
  EXPECT_THAT(errors(bench.plan(none)), testing::SizeIs(7));  // 5 unasked, 2 of them ENABLED.
  bench.apply(replaced(replaced(kPolicy, "name: training", "name: training\n    state: DISABLED"),
                       "{a100: 8}}", "{a100: 8}, state: DISABLED}"));
  const PolicyChange change = bench.apply(none, true);
  EXPECT_EQ(change.deleted_shares.size(), 2u);
  EXPECT_TRUE(bench.tables.queues.empty());
  EXPECT_TRUE(bench.tables.shares.empty());
  EXPECT_FALSE(bench.tables.builtin);
}

TEST(PolicyChange, ReferencesAreChecked) {
  Bench bench;
  const auto refused = [&](const std::string& what, const std::string& by) {
    ApplyPolicyCommand command;
    command.doc = parse_policy_text(replaced(kPolicy, what, by)).doc;
    const PolicyChange change = bench.plan(command);
    EXPECT_TRUE(change.has_errors()) << by;
    EXPECT_EQ(change.tables, bench.tables);
    std::string all;
    for (const std::string& line : errors(change)) all += line + "\n";
    return all;
  };
  EXPECT_THAT(refused("service_environments: [pool]", "service_environments: [none]"),
              HasSubstr("job_queues[0].service_environments[0]: there is no service environment "
                        "'none'"));
  EXPECT_THAT(refused("service_environments: [pool]", "service_environments: []"),
              HasSubstr("names 0 service environments: a quota queue has exactly one"));
  EXPECT_THAT(refused("scheduling_policy: quotas", "scheduling_policy: none"),
              HasSubstr("there is no scheduling policy 'none'"));
  EXPECT_THAT(refused("{a100: 8}", "{h100: 8}"), HasSubstr("there is no capacity unit 'h100'"));
  EXPECT_THAT(refused("{a100: 4}", "{cpu: 4}"),
              HasSubstr("environment pool does not offer unit cpu"));
  EXPECT_THAT(refused("name: a,", "name: b,"), HasSubstr("name 'b' is given twice"));
  EXPECT_THAT(refused("name: a,", "name: a b,"), HasSubstr("name 'a b' is not valid"));
  EXPECT_THAT(refused("{strategy: LEND}", "{strategy: LEND, borrow_limit: 5}"),
              HasSubstr("never borrows: drop borrow_limit"));
  EXPECT_THAT(refused("{a100: 4}", "{}"), HasSubstr("share a has no capacity_limits"));
  EXPECT_THAT(refused("{a100: 8}", "{}"), HasSubstr("offers no unit"));
  EXPECT_THAT(refused("{name: cpu, cpus: 1}", "{name: cpu}"), HasSubstr("has no shape"));
  EXPECT_THAT(refused("{name: cpu, cpus: 1}", "{name: cpu, cpus: 1, gpu_model: T4}"),
              HasSubstr("names a gpu_model, but no gpus"));
  EXPECT_THAT(refused("{pool: train}", "{gpuq/retired: \"true\"}"), HasSubstr("is not valid"));
  EXPECT_THAT(refused("scheduling_policy: quotas",
                      "scheduling_policy: quotas\n    time_limit_actions: [{reason: X, max_time: "
                      "1h}, {reason: SHARE_FULL, max_time: 1m}]"),
              testing::AllOf(HasSubstr("'X' is no reason"), HasSubstr("60 s is out of range")));
}

TEST(PolicyChange, AnEnvironmentServesOneQuotaQueue) {
  Bench bench;
  ApplyPolicyCommand command;
  command.doc = document(kPolicy);
  QueueDef second = command.doc.queues->front();
  second.name = "second";
  command.doc.queues->push_back(second);
  EXPECT_THAT(errors(bench.plan(command)),
              ElementsAre(HasSubstr("job_queues[1].service_environments[0]: environment pool "
                                    "already serves queue training")));
}

TEST(PolicyChange, OtherQueueKindsAreRefused) {
  Bench bench;
  ApplyPolicyCommand command;
  command.doc = document(kPolicy);
  command.doc.policies->front().kind = QueueKind::kFairShare;
  EXPECT_THAT(errors(bench.plan(command)),
              ElementsAre(HasSubstr("scheduling policy quotas is of kind FAIRSHARE")));
}

TEST(PolicyChange, OutOfRangeValuesFromTheWireAreRefused) {
  Bench bench;
  ApplyPolicyCommand command;
  command.doc = document(kPolicy);
  ShareDef& share = command.doc.queues->front().shares[0];
  share.capacity_limits[0].max_capacity = Amount(-1);
  share.borrow_limit = -2;
  share.strategy = static_cast<SharingStrategy>(9);
  share.min_runtime = Duration(-1);
  share.grace = std::chrono::hours(25);
  command.doc.queues->front().priority = 1001;
  command.doc.units->front().gpus = 1025;
  command.doc.policies->front().idle_order = static_cast<IdleOrder>(4);
  command.doc.policies->front().half_life = Duration(59'999);
  share.user_order = static_cast<UserOrder>(3);
  EXPECT_EQ(errors(bench.plan(command)).size(), 11u);  // borrow_limit counts twice.
}

TEST(PolicyChange, SharesAndUnitsAreLimitedInNumber) {
  Bench bench;
  bench.limits = {1, 1};
  EXPECT_THAT(errors(bench.plan(kPolicy)),
              ElementsAre(HasSubstr("queue training has 2 quota shares: at most 1")));
  bench.limits = {20, 1};
  std::string yaml = replaced(kPolicy, "{a100: 8}", "{a100: 8, cpu: 4}");
  yaml = replaced(yaml, "{a100: 4}", "{a100: 4, cpu: 4}");
  EXPECT_THAT(errors(bench.plan(yaml)), ElementsAre(HasSubstr("share a names 2 units: at most 1")));
}

TEST(PolicyChange, GpuUnitsOfOneEnvironmentMustNotOverlap) {
  Bench bench;
  const std::string units =
      "{name: cpu, cpus: 1}, {name: pair, gpu_model: A100, gpus: 2}, {name: any, gpus: 1}";
  const auto plan = [&](const std::string& limits) {
    ApplyPolicyCommand command;
    command.doc = parse_policy_text(replaced(replaced(kPolicy, "{name: cpu, cpus: 1}", units),
                                             "{a100: 8}", limits))
                      .doc;
    return bench.plan(command);
  };
  EXPECT_THAT(errors(plan("{a100: 8, pair: 1}")),
              ElementsAre(HasSubstr("service_environments[0].capacity_limits.pair: units a100 and "
                                    "pair of environment pool count the same GPUs (A100)")));
  EXPECT_THAT(errors(plan("{a100: 8, any: 1}")), ElementsAre(HasSubstr("count the same GPUs")));
  EXPECT_THAT(errors(plan("{a100: 8, cpu: 8}")), IsEmpty());
}

TEST(PolicyChange, CpuOverlapIsAWarning) {
  Bench bench;
  std::string yaml = replaced(kPolicy, "gpus: 1}", "gpus: 1, cpus: 1}");
  yaml = replaced(yaml, "{a100: 8}", "{a100: 8, cpu: 8}");
  EXPECT_THAT(warnings(bench.plan(yaml)), Contains(HasSubstr("count the same CPUs")));
}

TEST(PolicyChange, SelectorsMustNotOverlapOnAKnownNode) {
  Bench bench;
  const std::string yaml =
      replaced(kPolicy, "{a100: 8}}", "{a100: 8}}, {name: other, capacity_limits: {a100: 1}}");
  EXPECT_THAT(errors(bench.plan(yaml)),
              ElementsAre("service_environments[1].nodes: environments pool and other both select "
                          "node n: a node belongs to one of them"));
  bench.nodes.clear();
  EXPECT_THAT(errors(bench.plan(yaml)), IsEmpty());
}

TEST(PolicyChange, TheNodesGiveWarnings) {
  Bench bench;
  EXPECT_THAT(warnings(bench.plan(replaced(kPolicy, "{a100: 8}", "{a100: 9}"))),
              ElementsAre(HasSubstr("the limit of 9 a100 is beyond the 8"),
                          HasSubstr("1 of the 9 a100 of environment pool belong to no share")));
  EXPECT_THAT(warnings(bench.plan(replaced(kPolicy, "{a100: 4}", "{a100: 10}"))),
              ElementsAre(HasSubstr("share a owns 10 a100, more than the 8"),
                          HasSubstr("own 14 of 8 a100: whoever comes first gets them")));
  bench.nodes = {node("n", "T4", 8, "train")};
  EXPECT_THAT(warnings(bench.plan(kPolicy)),
              ElementsAre("service_environments[0].capacity_limits.a100: no known node of "
                          "environment pool has unit a100"));
  bench.nodes = {node("n", "A100", 8, "other")};
  EXPECT_THAT(warnings(bench.plan(kPolicy)),
              ElementsAre(HasSubstr("no known node belongs to environment pool")));
  bench.nodes.clear();
  EXPECT_THAT(warnings(bench.plan(kPolicy)), IsEmpty());
}

TEST(PolicyChange, LiveJobsHoldTheirGround) {
  Bench bench;
  bench.apply(replaced(kPolicy, "{a100: 8}", "{a100: 8, cpu: 8}"));
  bench.uses[bench.share("training", "a")] = {1, 0};
  const auto with_cpu = [](const std::string& what, const std::string& by) {
    return replaced(replaced(kPolicy, "{a100: 8}", "{a100: 8, cpu: 8}"), what, by);
  };
  EXPECT_THAT(errors(bench.plan(with_cpu("gpu_model: A100", "gpu_model: H100"))),
              ElementsAre(HasSubstr("unit a100 can not change its shape while queue training")));
  EXPECT_THAT(errors(bench.plan(kPolicy)),
              ElementsAre(HasSubstr("unit cpu can not leave environment pool while queue training "
                                    "has jobs: set its limit to 0 instead")));
  std::string moved = with_cpu("{a100: 8, cpu: 8}}",
                               "{a100: 8, cpu: 8}}, {name: p2, nodes: {x: y}, capacity_limits: "
                               "{a100: 1}}");
  moved = replaced(moved, "service_environments: [pool]", "service_environments: [p2]");
  EXPECT_THAT(errors(bench.plan(moved)),
              ElementsAre(HasSubstr("queue training has 1 waiting and 0 active job: it can move")));
  bench.uses.clear();
  EXPECT_THAT(errors(bench.plan(kPolicy)), IsEmpty());
  EXPECT_THAT(errors(bench.plan(moved)), IsEmpty());
}

ApplyPolicyCommand partial(const std::string& yaml) {
  ApplyPolicyCommand command;
  command.doc = parse_policy_text(yaml).doc;
  command.partial = true;
  return command;
}

TEST(PolicyChangePartial, MergesOneObject) {
  Bench bench;
  bench.apply(kPolicy);
  ApplyPolicyCommand command = partial("capacity_units: [{name: h100, gpu_model: H100, gpus: 1}]");
  command.must_not_exist = true;
  const PolicyChange change = bench.plan(command);
  EXPECT_THAT(errors(change), IsEmpty());
  EXPECT_THAT(change.changes, ElementsAre("unit h100: created"));
  EXPECT_EQ(change.tables.units.size(), 3u);
  EXPECT_EQ(change.tables.queues.size(), 1u);
}

TEST(PolicyChangePartial, ExistenceIsChecked) {
  Bench bench;
  bench.apply(kPolicy);
  ApplyPolicyCommand create = partial("capacity_units: [{name: a100, gpus: 1}]");
  create.must_not_exist = true;
  EXPECT_THAT(errors(bench.plan(create)), ElementsAre("capacity_units[0]: 'a100' exists already"));
  ApplyPolicyCommand update = partial("capacity_units: [{name: h100, gpus: 1}]");
  update.must_exist = true;
  EXPECT_THAT(errors(bench.plan(update)),
              ElementsAre("capacity_units[0]: there is no 'h100': create it first"));
}

ApplyPolicyCommand share_command(const std::string& queue, const std::string& share, int cap) {
  ApplyPolicyCommand command;
  command.partial = true;
  QueueDef carrier;
  carrier.name = queue;
  ShareDef def;
  def.name = share;
  def.strategy = SharingStrategy::kLend;
  def.capacity_limits = {{"a100", Amount::units(cap)}};
  carrier.shares = {def};
  command.doc.queues = {carrier};
  return command;
}

TEST(PolicyChangePartial, AShareIsCarriedByItsQueue) {
  Bench bench;
  bench.apply(kPolicy);
  const PolicyChange change = bench.plan(share_command("training", "a", 3));
  EXPECT_THAT(errors(change), IsEmpty());
  EXPECT_THAT(change.changes, ElementsAre("share training/a: cap a100 4 -> 3"));
  EXPECT_EQ(change.tables.shares.size(), 2u);
  EXPECT_EQ(change.tables.queues, bench.tables.queues);

  ApplyPolicyCommand create = share_command("training", "a", 3);
  create.must_not_exist = true;
  EXPECT_THAT(errors(bench.plan(create)),
              ElementsAre("job_queues[0].quota_shares[0]: 'a' exists already"));
  ApplyPolicyCommand update = share_command("training", "c", 3);
  update.must_exist = true;
  EXPECT_THAT(errors(bench.plan(update)), ElementsAre(HasSubstr("there is no 'c'")));
  EXPECT_THAT(errors(bench.plan(share_command("none", "c", 3))),
              ElementsAre("job_queues[0]: there is no queue 'none': create it first"));
}

TEST(PolicyChangePartial, AQueueKeepsTheSharesThatItDoesNotName) {
  Bench bench;
  bench.apply(kPolicy);
  const PolicyChange change =
      bench.plan(partial("job_queues: [{name: training, priority: 7, service_environments: [pool], "
                         "scheduling_policy: quotas}]"));
  EXPECT_THAT(change.changes, ElementsAre("queue training: priority 0 -> 7"));
  EXPECT_EQ(change.tables.shares, bench.tables.shares);
}

TEST(PolicyChangePartial, DeletesByName) {
  Bench bench;
  bench.apply(kPolicy);
  const auto remove = [&](const std::string& kind, const std::string& name) {
    ApplyPolicyCommand command;
    command.partial = true;
    command.deletions = {{kind, name}};
    return bench.plan(command);
  };
  EXPECT_THAT(errors(remove("share", "training/a")), ElementsAre(HasSubstr("is ENABLED")));
  EXPECT_THAT(errors(remove("queue", "training")), ElementsAre(HasSubstr("is ENABLED")));
  EXPECT_THAT(
      errors(remove("environment", "pool")),
      ElementsAre(HasSubstr("there is no service environment 'pool'"), HasSubstr("is ENABLED")));
  EXPECT_THAT(errors(remove("policy", "quotas")), ElementsAre(HasSubstr("no scheduling policy")));
  EXPECT_THAT(errors(remove("unit", "cpu")), IsEmpty());
  EXPECT_THAT(errors(remove("unit", "none")), ElementsAre(": there is no unit 'none'"));
  EXPECT_THAT(errors(remove("share", "a")), ElementsAre(": there is no share 'a'"));
  EXPECT_THAT(errors(remove("thing", "a")), ElementsAre(": there is no kind 'thing'"));
}

TEST(PolicyChangePartial, IssuesOfUntouchedObjectsPointAtTheirKind) {
  Bench bench;
  bench.apply(kPolicy);
  ApplyPolicyCommand command;
  command.partial = true;
  command.deletions = {{"unit", "a100"}};
  const auto lines = errors(bench.plan(command));
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) EXPECT_EQ(line.find('['), std::string::npos) << line;
}

TEST(PolicyChange, AnEmptyDocumentIsOnlyAWarning) {
  Bench bench;
  bench.tables = builtin_policy({}, bench.nodes);
  const PolicyChange change = bench.plan(ApplyPolicyCommand());
  EXPECT_EQ(change.tables, bench.tables);
  EXPECT_THAT(warnings(change), ElementsAre(": the document names nothing: nothing to change"));
}

TEST(PolicyChange, WhatIsBeingDeletedIsNoPartOfTheDocument) {
  Bench bench;
  bench.apply(replaced(kPolicy, "{a100: 8}", "{a100: 8, cpu: 8}"));
  bench.tables.queues[0].deleting = true;
  for (Share& share : bench.tables.shares) share.deleting = true;
  const std::string rest = R"(
capacity_units: [{name: cpu, cpus: 1}]
service_environments: []
scheduling_policies: [{name: quotas, quota_share: {}}]
job_queues: []
)";
  EXPECT_THAT(errors(bench.plan(rest)), IsEmpty());
  EXPECT_TRUE(policy_document(bench.tables).queues->empty());
}

}  // namespace
}  // namespace gpuq
