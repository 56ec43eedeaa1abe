#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/model/event.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/policy.h"
#include "core/model/rows.h"

namespace gpuq {
namespace {

/// Names of the enumerators first..last; none may be missing or there twice.
template <typename Enum>
std::set<std::string> names(int first, int last) {
  std::set<std::string> all;
  for (int i = first; i <= last; ++i) {
    const std::string name = to_string(static_cast<Enum>(i));
    EXPECT_NE(name, "UNKNOWN") << i;
    EXPECT_TRUE(all.insert(name).second) << name;
  }
  EXPECT_STREQ(to_string(static_cast<Enum>(250)), "UNKNOWN");
  return all;
}

TEST(Names, EveryEnumeratorHasOne) {
  EXPECT_TRUE(names<JobState>(1, 8).contains("RUNNABLE"));
  EXPECT_TRUE(names<InstanceState>(1, 5).contains("PREPARED"));
  EXPECT_TRUE(names<StopCause>(0, 5).contains("NODE_DRAIN"));
  EXPECT_TRUE(names<AttemptOutcome>(0, 7).contains("LOST"));
  EXPECT_TRUE(names<PreemptRule>(1, 2).contains("CROSS_SHARE"));
  EXPECT_TRUE(names<NodeLink>(1, 3).contains("UNREACHABLE"));
  EXPECT_TRUE(names<NodeAdmin>(1, 3).contains("DRAINING"));
  EXPECT_TRUE(names<SharingStrategy>(1, 3).contains("LEND_AND_BORROW"));
  EXPECT_TRUE(names<QueueKind>(1, 3).contains("FAIRSHARE"));
  EXPECT_TRUE(names<EventType>(10, 15).contains("JOB_SUBMITTED"));
  EXPECT_TRUE(names<EventType>(30, 34).contains("ATTEMPT_ENDED"));
  EXPECT_STREQ(to_string(EventType::kAccessDenied), "ACCESS_DENIED");
}

JobClass sample_class() {
  JobClass cls;
  cls.units = {{UnitId(1), Amount::units(2)}};
  return cls;
}

TEST(JobClass, EqualityLeavesTheIdOut) {
  JobClass a = sample_class();
  JobClass b = sample_class();
  a.id = ClassId(1);
  b.id = ClassId(2);
  EXPECT_TRUE(a.same_as(b));
  EXPECT_FALSE(a.before(b));
  EXPECT_FALSE(b.before(a));
}

TEST(JobClass, EveryFieldTellsClassesApart) {
  std::vector<JobClass> classes{sample_class()};
  const auto variant = [&](auto change) {
    JobClass cls = sample_class();
    change(cls);
    classes.push_back(cls);
  };
  variant([](JobClass& c) { c.units[0].count = Amount::units(3); });
  variant([](JobClass& c) { c.units[0].unit = UnitId(2); });
  variant([](JobClass& c) { c.units.push_back({UnitId(2), Amount::units(2)}); });
  variant([](JobClass& c) { c.instances = 2; });
  variant([](JobClass& c) { c.cpus = 1; });
  variant([](JobClass& c) { c.memory_mib = 1; });
  variant([](JobClass& c) { c.timeout = Duration(0); });
  variant([](JobClass& c) { c.grace = Duration(0); });
  variant([](JobClass& c) { c.preemptible = false; });
  variant([](JobClass& c) { c.exit_zero_after_stop_succeeds = true; });
  variant([](JobClass& c) { c.preemption_retries = 0; });
  variant([](JobClass& c) { c.max_attempts = 2; });
  variant([](JobClass& c) { c.exit_rules.push_back({}); });
  variant([](JobClass& c) { c.exit_rules.push_back({"x", "", RetryAction::kExit}); });
  for (std::size_t i = 0; i < classes.size(); ++i) {
    for (std::size_t k = 0; k < classes.size(); ++k) {
      EXPECT_EQ(classes[i].same_as(classes[k]), i == k) << i << " " << k;
      EXPECT_EQ(classes[i].before(classes[k]) || classes[k].before(classes[i]), i != k);
    }
  }
}

TEST(PolicyTables, FindsByIdAndName) {
  PolicyTables tables;
  UnitDef unit;
  unit.name = "a100";
  tables.units = {{UnitId(2), {}}, {UnitId(5), unit}};
  EnvDef env;
  env.name = "pool";
  tables.environments = {{EnvId(3), env}};
  QueueDef queue;
  queue.name = "q";
  queue.service_environments = {"pool"};
  tables.queues = {{QueueId(4), queue}};
  ShareDef share;
  share.name = "s";
  tables.shares = {{ShareId(6), QueueId(4), share}, {ShareId(7), QueueId(9), share}};
  EXPECT_EQ(tables.unit(UnitId(5))->def.name, "a100");
  EXPECT_EQ(tables.unit("a100")->id, UnitId(5));
  EXPECT_EQ(tables.unit(UnitId(4)), nullptr);
  EXPECT_EQ(tables.unit("h100"), nullptr);
  EXPECT_EQ(tables.share(ShareId(7))->queue, QueueId(9));
  EXPECT_EQ(tables.share(QueueId(9), "s")->id, ShareId(7));
  EXPECT_EQ(tables.share(QueueId(4), "t"), nullptr);
  EXPECT_EQ(tables.environment_of(QueueId(4))->id, EnvId(3));
  EXPECT_EQ(tables.environment_of(QueueId(5)), nullptr);
  EXPECT_EQ(tables.policy("none"), nullptr);
}

TEST(RowChanges, EmptyUntilAnythingIsInIt) {
  EXPECT_TRUE(RowChanges().empty());
  RowChanges jobs;
  jobs.jobs.emplace_back();
  EXPECT_FALSE(jobs.empty());
  RowChanges policy;
  policy.policy.emplace();
  EXPECT_FALSE(policy.empty());
  RowChanges archived;
  archived.archive_jobs.push_back(JobId(1));
  EXPECT_FALSE(archived.empty());
  RowChanges token;
  token.drop_tokens.emplace_back("t");
  EXPECT_FALSE(token.empty());
  RowChanges usage;
  usage.usage.emplace_back();
  EXPECT_FALSE(usage.empty());
  RowChanges forgotten;
  forgotten.drop_usage.emplace_back();
  EXPECT_FALSE(forgotten.empty());
}

}  // namespace
}  // namespace gpuq
