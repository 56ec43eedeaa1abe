// Submissions: what is taken over, and each way of being wrong with its sentence.
#include "server/rpc/convert_submit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "server/rpc/message_hash.h"

namespace gpuq::rpc {
namespace {

using testing::HasSubstr;

v1::JobSpec good_spec() {
  v1::JobSpec spec;
  spec.add_command("/usr/bin/python3");
  spec.add_command("train.py");
  return spec;
}

TEST(ConvertSubmit, DefaultsAreFilledIn) {
  const auto request = to_job_request(good_spec());
  ASSERT_TRUE(request);
  EXPECT_EQ(request->name, "python3");
  EXPECT_TRUE(request->units.empty());
  EXPECT_EQ(request->instances, 1);
  EXPECT_EQ(request->max_attempts, 1);
  EXPECT_TRUE(request->preemptible);
  EXPECT_FALSE(request->timeout);
  EXPECT_FALSE(request->preemption_retries);
}

TEST(ConvertSubmit, EverythingIsTakenOver) {
  v1::JobSpec spec = good_spec();
  spec.set_job_name("sft");
  spec.set_job_queue("training");
  spec.set_quota_share_name("research");
  spec.set_scheduling_priority(7);
  auto& resources = *spec.mutable_resources();
  resources.set_instances(4);
  resources.set_count_milli(8000);
  resources.add_capacity_units("a100");
  resources.add_capacity_units("h100");
  resources.set_cpus(2);
  resources.set_memory_mib(1024);
  spec.set_attempt_duration_seconds(90);
  spec.set_expected_run_seconds(80);
  spec.mutable_retry_strategy()->set_attempts(3);
  spec.mutable_retry_strategy()->set_backoff_ms(30'000);
  spec.set_hold(true);
  auto& on = *spec.add_depends_on();
  on.set_job_id(12);
  on.set_condition(v1::DEPENDENCY_CONDITION_ENDED);
  auto& rule = *spec.mutable_retry_strategy()->add_evaluate_on_exit();
  rule.set_action(v1::RETRY_ACTION_EXIT);
  rule.set_on_exit_code("137");
  auto& preemption = *spec.mutable_preemption_configuration();
  preemption.set_preemptible(false);
  preemption.set_preemption_retries_before_termination(0);
  preemption.set_grace_ms(0);
  spec.set_exit_zero_after_stop(v1::EXIT_ZERO_AFTER_STOP_SUCCEEDED);

  const auto request = to_job_request(spec);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->name, "sft");
  EXPECT_EQ(request->queue, "training");
  EXPECT_EQ(request->share, "research");
  EXPECT_EQ(request->priority, 7);
  const std::vector<std::pair<std::string, Amount>> units{{"a100", Amount(8000)},
                                                          {"h100", Amount(8000)}};
  EXPECT_EQ(request->units, units);
  EXPECT_EQ(request->instances, 4);
  EXPECT_EQ(request->cpus, 2);
  EXPECT_EQ(request->memory_mib, 1024);
  EXPECT_EQ(request->timeout, Duration(90'000));
  EXPECT_EQ(request->expected_run_time, Duration(80'000));
  EXPECT_EQ(request->max_attempts, 3);
  EXPECT_EQ(request->backoff, Duration(30'000));
  EXPECT_TRUE(request->held);
  ASSERT_EQ(request->depends_on.size(), 1U);
  EXPECT_EQ(request->depends_on[0].job, JobId(12));
  EXPECT_EQ(request->depends_on[0].condition, DependencyCondition::kEnded);
  EXPECT_FALSE(request->depends_on[0].index);
  ASSERT_EQ(request->exit_rules.size(), 1U);
  EXPECT_EQ(request->exit_rules[0].action, RetryAction::kExit);
  EXPECT_FALSE(request->preemptible);
  EXPECT_EQ(request->preemption_retries, 0);
  EXPECT_EQ(request->grace, Duration(0));
  EXPECT_TRUE(request->exit_zero_after_stop_succeeds);

  v1::JobSpec stored;
  ASSERT_TRUE(stored.ParseFromString(request->spec.get()));
  EXPECT_EQ(stored.SerializeAsString(), spec.SerializeAsString());
}

TEST(ConvertSubmit, GpusAreAskedForByCount) {
  v1::JobSpec spec = good_spec();
  spec.mutable_resources()->set_gpus_milli(500);
  const auto request = to_job_request(spec);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->units, (std::vector<std::pair<std::string, Amount>>{{"", Amount(500)}}));
}

struct BadInput {
  const char* name;
  std::function<void(v1::JobSpec&)> spoil;
  const char* message;
};

class ConvertSubmitRefuses : public testing::TestWithParam<BadInput> {};

TEST_P(ConvertSubmitRefuses, WithOneClearSentence) {
  v1::JobSpec spec = good_spec();
  GetParam().spoil(spec);
  const auto request = to_job_request(spec);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(request.error().message, HasSubstr(GetParam().message));
  EXPECT_EQ(request.error().message.find('\n'), std::string::npos);
}

const BadInput kBadInputs[] = {
    {"NoCommand", [](auto& s) { s.clear_command(); }, "command is empty"},
    {"DependencyWithoutJob", [](auto& s) { s.add_depends_on(); }, "depends_on.job_id is missing"},
    {"DependencyOfNoKind",
     [](auto& s) { s.add_depends_on()->set_condition(static_cast<v1::DependencyCondition>(9)); },
     "depends_on.condition is 9"},
    {"BackoffTooLong", [](auto& s) { s.mutable_retry_strategy()->set_backoff_ms(600'001); },
     "retry_strategy.backoff_ms"},
    {"ExpectsNothing", [](auto& s) { s.set_expected_run_seconds(0); }, "expected_run_seconds"},
    {"ExpectsMoreThanAYear", [](auto& s) { s.set_expected_run_seconds(31'536'001); },
     "expected_run_seconds"},
    {"EmptyProgram", [](auto& s) { s.set_command(0, ""); }, "command is empty"},
    {"NulInArgument", [](auto& s) { s.add_command(std::string("a\0b", 3)); }, "NUL"},
    {"HugeCommand", [](auto& s) { s.add_command(std::string(10 << 20, 'x')); }, "at most 1048576"},
    {"HugeEnv", [](auto& s) { (*s.mutable_env())["A"] = std::string(2 << 20, 'x'); },
     "env has 2097155 bytes: at most 1048576"},
    {"EnvName", [](auto& s) { (*s.mutable_env())["1A"] = "x"; }, "env name '1A'"},
    {"ReservedEnv", [](auto& s) { (*s.mutable_env())["GPUQ_X"] = "x"; }, "GPUQ_X' is reserved"},
    {"RelativeWorkdir", [](auto& s) { s.set_workdir("data"); }, "workdir 'data'"},
    {"LongName", [](auto& s) { s.set_job_name(std::string(129, 'n')); }, "job_name"},
    {"ControlInName", [](auto& s) { s.set_job_name("a\nb"); }, "control characters"},
    {"QueueName", [](auto& s) { s.set_job_queue("a b"); }, "job_queue 'a b'"},
    {"ShareName", [](auto& s) { s.set_quota_share_name("a/b"); }, "quota_share_name 'a/b'"},
    {"NegativePriority", [](auto& s) { s.set_scheduling_priority(-1); },
     "scheduling_priority is -1: must be 0 to 9999"},
    {"HugePriority", [](auto& s) { s.set_scheduling_priority(10'000); },
     "scheduling_priority is 10000"},
    {"ZeroInstances", [](auto& s) { s.mutable_resources()->set_instances(0); },
     "resources.instances is 0: must be 1 to 100000"},
    {"HugeInstances", [](auto& s) { s.mutable_resources()->set_instances(2'000'000'000); },
     "resources.instances is 2000000000"},
    {"ZeroCount", [](auto& s) { s.mutable_resources()->set_count_milli(0); },
     "resources.count_milli is 0"},
    {"NegativeCount", [](auto& s) { s.mutable_resources()->set_count_milli(-1000); },
     "resources.count_milli is -1000"},
    {"HugeCount", [](auto& s) { s.mutable_resources()->set_count_milli(INT64_MAX); },
     "9223372036854775807"},
    {"PartAboveOne", [](auto& s) { s.mutable_resources()->set_count_milli(1500); },
     "only whole units"},
    {"ZeroGpus", [](auto& s) { s.mutable_resources()->set_gpus_milli(0); },
     "resources.gpus_milli is 0"},
    {"GpusAndUnit",
     [](auto& s) {
       s.mutable_resources()->set_gpus_milli(1000);
       s.mutable_resources()->add_capacity_units("a100");
     },
     "excludes"},
    {"ManyUnits",
     [](auto& s) {
       for (int i = 0; i < 9; ++i)
         s.mutable_resources()->add_capacity_units("u" + std::to_string(i));
     },
     "has 9 entries: at most 8"},
    {"UnitTwice",
     [](auto& s) {
       s.mutable_resources()->add_capacity_units("u");
       s.mutable_resources()->add_capacity_units("u");
     },
     "names 'u' twice"},
    {"NegativeCpus", [](auto& s) { s.mutable_resources()->set_cpus(-1); }, "resources.cpus is -1"},
    {"NegativeMemory", [](auto& s) { s.mutable_resources()->set_memory_mib(-5); },
     "resources.memory_mib is -5"},
    {"ZeroAttempts", [](auto& s) { s.mutable_retry_strategy()->set_attempts(0); },
     "retry_strategy.attempts is 0: must be 1 to 10"},
    {"ManyAttempts", [](auto& s) { s.mutable_retry_strategy()->set_attempts(11); },
     "retry_strategy.attempts is 11"},
    {"ManyRules",
     [](auto& s) {
       for (int i = 0; i < 6; ++i) {
         s.mutable_retry_strategy()->add_evaluate_on_exit()->set_action(v1::RETRY_ACTION_EXIT);
       }
     },
     "has 6 rules: at most 5"},
    {"RuleWithoutAction", [](auto& s) { s.mutable_retry_strategy()->add_evaluate_on_exit(); },
     "action is missing"},
    {"NegativeRetries",
     [](auto& s) {
       s.mutable_preemption_configuration()->set_preemption_retries_before_termination(-1);
     },
     "preemption_retries_before_termination is -1"},
    {"NegativeGrace", [](auto& s) { s.mutable_preemption_configuration()->set_grace_ms(-1); },
     "grace_ms is -1"},
    {"ZeroTimeout", [](auto& s) { s.set_attempt_duration_seconds(0); },
     "attempt_duration_seconds is 0: must be 1 to 31536000"},
    {"UnknownEnum",
     [](auto& s) { s.set_exit_zero_after_stop(static_cast<v1::ExitZeroAfterStop>(77)); },
     "exit_zero_after_stop is 77"},
    {"ManyLabels",
     [](auto& s) {
       for (int i = 0; i < 51; ++i) (*s.mutable_labels())[std::to_string(i)] = "x";
     },
     "labels has 51 entries: at most 50"},
    {"LongLabel", [](auto& s) { (*s.mutable_labels())["k"] = std::string(257, 'v'); },
     "label value"},
};

INSTANTIATE_TEST_SUITE_P(All, ConvertSubmitRefuses, testing::ValuesIn(kBadInputs),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ConvertSubmit, WhatThisReleaseCanNotDoIsSaid) {
  v1::JobSpec spec = good_spec();
  spec.set_image("train:1");
  auto request = to_job_request(spec);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(request.error().message, HasSubstr("image 'train:1'"));
}

TEST(ConvertSubmit, HashDoesNotDependOnTheOrderOfLabels) {
  v1::JobSpec one = good_spec(), other = good_spec();
  for (int i = 0; i < 20; ++i) (*one.mutable_labels())[std::to_string(i)] = "v";
  for (int i = 19; i >= 0; --i) (*other.mutable_labels())[std::to_string(i)] = "v";
  EXPECT_EQ(stable_hash(one), stable_hash(other));
  (*other.mutable_labels())["0"] = "w";
  EXPECT_NE(stable_hash(one), stable_hash(other));
}

TEST(ConvertSubmit, TokensAreBounded) {
  EXPECT_EQ(check_client_token("abc"), "");
  EXPECT_THAT(check_client_token(std::string(65, 'x')), HasSubstr("at most 64"));
}

}  // namespace
}  // namespace gpuq::rpc
