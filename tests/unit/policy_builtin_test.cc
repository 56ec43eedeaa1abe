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

TEST(BuiltinPolicy, HasAUnitPerModelAndKeepsIds) {
  std::vector<Node> nodes{node("a", "NVIDIA A100-SXM4", 2, "x"), node("b", "T4", 1, "x")};
  const PolicyTables first = builtin_policy({}, nodes);
  EXPECT_TRUE(first.builtin);
  ASSERT_NE(first.unit("nvidia-a100-sxm4"), nullptr);
  EXPECT_EQ(first.unit("nvidia-a100-sxm4")->def.gpu_model, "NVIDIA A100-SXM4");
  EXPECT_EQ(first.unit("t4")->def.gpus, 1);
  EXPECT_EQ(first.unit("cpu")->def.cpus, 1);
  ASSERT_EQ(first.shares.size(), 1u);
  EXPECT_EQ(first.shares[0].def.strategy, SharingStrategy::kLend);
  EXPECT_TRUE(first.shares[0].def.capacity_limits.empty());
  EXPECT_EQ(first.environment_of(first.queues[0].id)->def.name, "default");
  EXPECT_EQ(builtin_policy(first, nodes), first);
  nodes = {node("c", "H100", 1, "x"), node("d", "t4", 1, "x")};
  const PolicyTables second = builtin_policy(first, nodes);
  EXPECT_EQ(second.unit("t4")->id, first.unit("t4")->id);
  EXPECT_EQ(second.unit("t4-2")->def.gpu_model, "t4");
  EXPECT_EQ(second.units.size(), first.units.size() + 2);
  EXPECT_EQ(second.queues, first.queues);
}

TEST(BuiltinPolicy, SelectsEveryNode) {
  const PolicyTables tables = builtin_policy({}, {});
  EXPECT_EQ(environment_for(tables, node("n", "T4", 1, "x")), tables.environments[0].id);
  EXPECT_FALSE(environment_for(PolicyTables(), node("n", "T4", 1, "x")).valid());
}

TEST(BuiltinPolicy, IsReplacedWithoutPrune) {
  Bench bench;
  bench.tables = builtin_policy({}, bench.nodes);
  const UnitId a100 = bench.tables.unit("a100")->id;
  const PolicyChange change = bench.apply(kPolicy);
  EXPECT_EQ(change.changes.front(), "policy default: replaced by the document");
  EXPECT_EQ(bench.tables.queue("default"), nullptr);
  EXPECT_EQ(bench.tables.environment("default"), nullptr);
  EXPECT_EQ(bench.tables.unit("a100")->id, a100);
  EXPECT_EQ(sorted(policy_document(bench.tables)), sorted(document(kPolicy)));
}

TEST(BuiltinPolicy, IsNotReplacedByADocumentWithoutQueues) {
  Bench bench;
  bench.tables = builtin_policy({}, bench.nodes);
  const PolicyTables before = bench.tables;
  ApplyPolicyCommand command;
  command.doc.units.emplace();
  const PolicyChange change = plan_policy_change(before, command, bench.nodes, {}, {});
  EXPECT_TRUE(change.has_errors());
  EXPECT_EQ(change.tables, before);
}

TEST(BuiltinPolicy, StaysDisabledWhileItHasJobs) {
  Bench bench;
  bench.nodes.push_back(node("m", "T4", 1, "other"));
  bench.tables = builtin_policy({}, bench.nodes);
  const ShareId old = bench.share("default", "default");
  const UnitId t4 = bench.tables.unit("t4")->id;
  bench.uses[old] = {2, 1};
  const PolicyChange change = bench.apply(kPolicy);
  EXPECT_THAT(change.deleted_shares, IsEmpty());
  EXPECT_THAT(warnings(change),
              Contains(HasSubstr("the built-in queue default has 2 waiting and 1 active jobs")));
  ASSERT_NE(bench.tables.queue("default"), nullptr);
  EXPECT_FALSE(bench.tables.queue("default")->def.enabled);
  EXPECT_EQ(bench.share("default", "default"), old);
  EXPECT_FALSE(bench.tables.share(old)->def.enabled);
  EXPECT_EQ(bench.tables.unit("t4")->id, t4);
  EXPECT_TRUE(bench.tables.share(old)->deleting);
  EXPECT_TRUE(is_retired(*bench.tables.environment_of(bench.tables.queue("default")->id)));
  EXPECT_NE(bench.tables.policy(kRetiredName), nullptr);
  // Its environment owns no node any more.
  EXPECT_EQ(environment_for(bench.tables, bench.nodes[0]), bench.tables.environment("pool")->id);
  EXPECT_FALSE(environment_for(bench.tables, bench.nodes[1]).valid());
  EXPECT_EQ(sorted(policy_document(bench.tables)), sorted(document(kPolicy)));

  // The same document again needs no --prune and changes nothing; nor does it judge what is
  // retired.
  const PolicyTables before = bench.tables;
  EXPECT_THAT(bench.apply(kPolicy).changes, IsEmpty());
  EXPECT_EQ(bench.tables, before);

  // With the last job gone the next apply clears it away.
  bench.uses.clear();
  const PolicyChange last = bench.apply(kPolicy);
  EXPECT_THAT(last.deleted_shares, ElementsAre(old));
  EXPECT_EQ(bench.tables.queue("default"), nullptr);
  EXPECT_EQ(bench.tables.unit("t4"), nullptr);
  EXPECT_EQ(bench.tables.policy(kRetiredName), nullptr);
  EXPECT_EQ(bench.tables.environment(kRetiredName), nullptr);
}

TEST(BuiltinPolicy, ItsNamesAreTakenWhileItHasJobs) {
  Bench bench;
  bench.tables = builtin_policy({}, bench.nodes);
  const std::string same_queue = replaced(kPolicy, "name: training", "name: default");
  std::string same_env = replaced(kPolicy, "{name: pool,", "{name: default,");
  same_env = replaced(same_env, "service_environments: [pool]", "service_environments: [default]");
  EXPECT_THAT(errors(bench.plan(same_queue)), IsEmpty());
  EXPECT_THAT(errors(bench.plan(same_env)), IsEmpty());
  bench.uses[bench.share("default", "default")] = {0, 1};
  EXPECT_THAT(
      errors(bench.plan(same_queue)),
      ElementsAre("job_queues[0].name: the built-in queue default still has 0 waiting and 1 "
                  "active job: use another name, or wait for them"));
  const PolicyChange other = bench.plan(same_env);
  EXPECT_THAT(errors(other), IsEmpty());
  EXPECT_NE(other.tables.environment("default")->id, other.tables.environment(kRetiredName)->id);
  EXPECT_THAT(errors(bench.plan(replaced(kPolicy, "gpus: 1}", "gpus: 2}"))),
              ElementsAre(HasSubstr("unit a100 can not change its shape while queue default")));
}

TEST(BuiltinPolicy, WhatItsLastJobLeavesBehindGoesUnasked) {
  Bench bench;
  bench.nodes.push_back(node("m", "T4", 1, "other"));
  bench.tables = builtin_policy({}, bench.nodes);
  bench.uses[bench.share("default", "default")] = {0, 1};
  bench.apply(kPolicy);
  // The engine drops share and queue when the last job has ended.
  std::erase_if(bench.tables.shares, [](const Share& share) { return share.deleting; });
  std::erase_if(bench.tables.queues, [](const Queue& queue) { return queue.deleting; });
  bench.uses.clear();
  EXPECT_THAT(bench.apply(kPolicy).changes, IsEmpty());
  EXPECT_EQ(bench.tables.environments.size(), 1u);
  EXPECT_EQ(bench.tables.policies.size(), 1u);
  EXPECT_EQ(bench.tables.unit("t4"), nullptr);
}

TEST(BuiltinPolicy, ReusedNamesKeepTheirIds) {
  Bench bench;
  bench.tables = builtin_policy({}, bench.nodes);
  const QueueId queue = bench.tables.queue("default")->id;
  bench.apply(replaced(kPolicy, "name: training", "name: default"));
  EXPECT_EQ(bench.tables.queue("default")->id, queue);
  EXPECT_TRUE(bench.tables.queue("default")->def.enabled);
}

TEST(EnvironmentFor, TheFirstByNameTakesTheNode) {
  PolicyTables tables;
  EnvDef b;
  b.name = "b";
  EnvDef a;
  a.name = "a";
  a.node_labels = {{"pool", "train"}, {"zone", "1"}};
  tables.environments = {{EnvId(1), b}, {EnvId(2), a}};
  Node n = node("n", "T4", 1, "train");
  EXPECT_EQ(environment_for(tables, n), EnvId(1));
  n.labels["zone"] = "1";
  EXPECT_EQ(environment_for(tables, n), EnvId(2));
}

}  // namespace
}  // namespace gpuq
