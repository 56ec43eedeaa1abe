#include "server/rpc/convert_policy.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "core/engine/policy_change.h"

namespace gpuq::rpc {
namespace {

using testing::HasSubstr;

constexpr const char* kDocument = R"(
  capacity_units { name: "a100" gpu_model: "A100" gpus: 1 }
  service_environments {
    service_environment_name: "pool" state: ADMIN_STATE_ENABLED
    node_selector { key: "pool" value: "training" }
    capacity_limits { capacity_unit: "a100" max_capacity_milli: 64000 }
  }
  scheduling_policies {
    name: "quotas"
    quota_share_policy { idle_resource_assignment_strategy: IDLE_RESOURCE_ASSIGNMENT_STRATEGY_FIFO }
  }
  job_queues {
    job_queue_name: "training" state: ADMIN_STATE_ENABLED priority: 10 scheduling_policy: "quotas"
    service_environment_order { order: 1 service_environment: "pool" }
    job_state_time_limit_actions {
      reason: "MISCONFIGURATION:NO_NODE_FITS" max_time_seconds: 3600
      action: JOB_STATE_TIME_LIMIT_ACTIONS_ACTION_TERMINATE
    }
  }
  quota_shares {
    quota_share_name: "research" job_queue: "training" state: ADMIN_STATE_ENABLED
    capacity_limits { capacity_unit: "a100" max_capacity_milli: 40000 }
    resource_sharing_configuration { strategy: SHARING_STRATEGY_LEND_AND_BORROW borrow_limit: 100 }
    preemption_configuration {
      in_share_preemption: IN_SHARE_PREEMPTION_ENABLED min_runtime_ms: 900000 grace_ms: 60000
    }
    head_wait_limit_ms: 0
    user_order: USER_ORDER_FAIR
  }
  quota_shares {
    quota_share_name: "production" job_queue: "training" state: ADMIN_STATE_ENABLED
    capacity_limits { capacity_unit: "a100" max_capacity_milli: 24000 }
    resource_sharing_configuration { strategy: SHARING_STRATEGY_RESERVE }
    preemption_configuration { in_share_preemption: IN_SHARE_PREEMPTION_DISABLED }
    user_order: USER_ORDER_FIFO
  }
)";

v1::PolicyDocument parse(const std::string& text) {
  v1::PolicyDocument document;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &document));
  return document;
}

PolicyTables apply(const PolicyDoc& doc) {
  ApplyPolicyCommand command;
  command.doc = doc;
  const PolicyTables before = builtin_policy({}, {});
  const PolicyChange change = plan_policy_change(before, command, {}, {}, {});
  EXPECT_FALSE(change.has_errors()) << change.issues.front().message;
  return change.tables;
}

template <typename List>
void drop_output_fields(List& list) {
  for (auto& object : list) {
    object.clear_version();
    if constexpr (requires { object.clear_status(); }) object.clear_status();
  }
}

TEST(ConvertPolicy, ADocumentComesBackAsItWentIn) {
  const v1::PolicyDocument document = parse(kDocument);
  const PolicyDocResult read = to_policy_doc(document);
  ASSERT_TRUE(read.issues.empty()) << read.issues.front().message;
  v1::PolicyDocument back = to_proto(apply(read.doc));
  drop_output_fields(*back.mutable_capacity_units());
  drop_output_fields(*back.mutable_service_environments());
  drop_output_fields(*back.mutable_scheduling_policies());
  drop_output_fields(*back.mutable_job_queues());
  drop_output_fields(*back.mutable_quota_shares());
  EXPECT_EQ(back.DebugString(), document.DebugString());
}

TEST(ConvertPolicy, TheOrderForIdleCapacityComesBackAsItWentIn) {
  v1::PolicyDocument document = parse(kDocument);
  v1::QuotaSharePolicy& policy =
      *document.mutable_scheduling_policies(0)->mutable_quota_share_policy();
  for (const auto order : {v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_LEAST_BORROWED,
                           v1::IDLE_RESOURCE_ASSIGNMENT_STRATEGY_DECAYED_USAGE}) {
    policy.set_idle_resource_assignment_strategy(order);
    policy.set_half_life_ms(3'600'000);
    const v1::PolicyDocument back = to_proto(apply(to_policy_doc(document).doc));
    EXPECT_EQ(back.scheduling_policies(0).quota_share_policy().DebugString(), policy.DebugString());
  }
}

TEST(ConvertPolicy, ObjectsAreFoundByKindAndName) {
  const PolicyTables tables = apply(to_policy_doc(parse(kDocument)).doc);
  v1::PolicyObjectRef ref;
  ref.set_kind(v1::POLICY_KIND_QUOTA_SHARE);
  ref.set_name("research");
  EXPECT_EQ(find_object(tables, ref).error().code, ErrorCode::kInvalidArgument);
  ref.set_job_queue("training");
  const auto share = find_object(tables, ref);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->quota_share().capacity_limits(0).max_capacity_milli(), 40000);
  EXPECT_NE(share->quota_share().version(), 0);
  ref.set_name("none");
  const auto missing = find_object(tables, ref);
  EXPECT_EQ(missing.error().message, "there is no share 'training/none'");
  ref.clear_kind();
  EXPECT_EQ(find_object(tables, ref).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(list_objects(tables, v1::POLICY_KIND_QUOTA_SHARE, "training").size(), 2U);
}

struct BadPolicy {
  const char* name;
  const char* text;
  const char* path;
  const char* message;
};

class ConvertPolicyRefuses : public testing::TestWithParam<BadPolicy> {};

TEST_P(ConvertPolicyRefuses, WithPathAndSentence) {
  const auto read = to_policy_doc(parse(GetParam().text));
  ASSERT_FALSE(read.issues.empty());
  EXPECT_EQ(read.issues[0].path, GetParam().path);
  EXPECT_THAT(read.issues[0].message, HasSubstr(GetParam().message));
}

const BadPolicy kBadPolicies[] = {
    {"UnitName", "capacity_units { name: 'a b' gpus: 1 }", "capacity_units[0].name", "'a b'"},
    {"UnitGpus", "capacity_units { name: 'a' gpus: 5000 }", "capacity_units[0].gpus",
     "gpus is 5000: must be 0 to 1024"},
    {"UnknownIdleOrder",
     "scheduling_policies { name: 'p' "
     "quota_share_policy { idle_resource_assignment_strategy: 7 } }",
     "scheduling_policies[0].quota_share.idle_resource_assignment", "7 is not known"},
    {"UnknownUserOrder",
     "job_queues { job_queue_name: 'q' } quota_shares { quota_share_name: 's' job_queue: 'q' "
     "resource_sharing_configuration { strategy: SHARING_STRATEGY_LEND } user_order: 7 }",
     "job_queues[0].quota_shares[0].user_order", "7 is not known: use FIFO or FAIR"},
    {"NegativeCap",
     "job_queues { job_queue_name: 'q' } quota_shares { quota_share_name: 's' job_queue: 'q' "
     "resource_sharing_configuration { strategy: SHARING_STRATEGY_LEND } "
     "capacity_limits { capacity_unit: 'u' max_capacity_milli: -1 } }",
     "job_queues[0].quota_shares[0].capacity_limits.u", "max_capacity_milli is -1"},
    {"NoStrategy",
     "job_queues { job_queue_name: 'q' } quota_shares { quota_share_name: 's' job_queue: 'q' }",
     "job_queues[0].quota_shares[0].resource_sharing.strategy", "strategy is missing"},
    {"BorrowLimitOfAReserve",
     "job_queues { job_queue_name: 'q' } quota_shares { quota_share_name: 's' job_queue: 'q' "
     "resource_sharing_configuration { strategy: SHARING_STRATEGY_RESERVE borrow_limit: 5 } }",
     "job_queues[0].quota_shares[0].resource_sharing.borrow_limit", "only for strategy"},
    {"ShareWithoutQueue", "quota_shares { quota_share_name: 's' job_queue: 'q' }", "quota_shares",
     "belongs to queue 'q'"},
    {"TimeLimit",
     "job_queues { job_queue_name: 'q' job_state_time_limit_actions { reason: 'x' "
     "max_time_seconds: 1 action: JOB_STATE_TIME_LIMIT_ACTIONS_ACTION_TERMINATE } }",
     "job_queues[0].time_limit_actions[0].max_time", "must be 600 to 86400"},
    {"Priority", "job_queues { job_queue_name: 'q' priority: -1 }", "job_queues[0].priority",
     "priority is -1"},
    {"KindOfPolicy", "scheduling_policies { name: 'p' }", "scheduling_policies[0]",
     "kind of the scheduling policy is missing"},
};

INSTANTIATE_TEST_SUITE_P(All, ConvertPolicyRefuses, testing::ValuesIn(kBadPolicies),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ConvertPolicy, ChangeLinesBecomeMessages) {
  Reply reply;
  reply.changes = {"queue training: created", "share training/a: cap a100 8 -> 4",
                   "unit old: deleted"};
  reply.issues = {{false, "p", "a warning"}};
  v1::ApplyPolicyResponse out;
  fill_apply_response(reply, false, true, out);
  EXPECT_TRUE(out.applied());
  ASSERT_EQ(out.changes_size(), 3);
  EXPECT_EQ(out.changes(0).action(), v1::POLICY_ACTION_CREATE);
  EXPECT_EQ(out.changes(0).ref().name(), "training");
  EXPECT_EQ(out.changes(1).action(), v1::POLICY_ACTION_UPDATE);
  EXPECT_EQ(out.changes(1).ref().kind(), v1::POLICY_KIND_QUOTA_SHARE);
  EXPECT_EQ(out.changes(1).ref().job_queue(), "training");
  EXPECT_EQ(out.changes(1).ref().name(), "a");
  EXPECT_EQ(out.changes(1).fields(0).field(), "cap a100");
  EXPECT_EQ(out.changes(1).fields(0).old_value(), "8");
  EXPECT_EQ(out.changes(1).fields(0).new_value(), "4");
  EXPECT_EQ(out.changes(2).action(), v1::POLICY_ACTION_DELETE);
  EXPECT_EQ(out.warnings_size(), 1);

  reply.issues = {{true, "p", "an error"}};
  v1::ApplyPolicyResponse failed;
  fill_apply_response(reply, false, true, failed);
  EXPECT_FALSE(failed.applied());
}

}  // namespace
}  // namespace gpuq::rpc
