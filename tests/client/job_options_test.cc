#include "client/cli/job_options.h"

#include <gmock/gmock.h>

namespace gpuq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::optional<std::string> no_environment(const std::string&) { return std::nullopt; }

v1::JobSpec spec_of(const JobOptions& options) {
  v1::JobSpec spec;
  auto done = apply_options(options, no_environment, spec);
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return spec;
}

std::string option_refusal(const JobOptions& options) {
  v1::JobSpec spec;
  auto done = apply_options(options, no_environment, spec);
  if (done) return "";
  EXPECT_EQ(done.error().code, ErrorCode::kInvalidArgument);
  return done.error().message;
}

v1::JobSpec command(const std::vector<std::string>& words) {
  v1::JobSpec spec;
  for (const auto& word : words) spec.add_command(word);
  return spec;
}

TEST(JobOptions, ValuesReachTheJob) {
  JobOptions options;
  options.name = "n";
  options.queue = "q";
  options.share = "s";
  options.priority = "9999";
  options.units = {"a100", "h100"};
  options.count = "0.25";
  options.instances = "4";
  options.cpus = "8";
  options.memory = "1.5G";
  options.timeout = "1h30m";
  options.expect = "1h";
  options.grace = "250ms";
  options.retries = "2";
  options.retry_backoff = "1m30s";
  options.hold = true;
  options.after = {"ok:12,any:13", "fail:14"};
  options.after_ok = {"15,16"};
  options.array = "2-8:2%3";
  options.preemption_retries = "0";
  options.exit_zero_after_stop = "SUCCEEDED";
  options.no_preempt = true;
  options.env = {"A=1", "B=", "A=2"};
  options.labels = {"k=v=w"};
  const auto spec = spec_of(options);
  EXPECT_EQ(spec.scheduling_priority(), 9999);
  EXPECT_EQ(spec.resources().count_milli(), 250);
  EXPECT_THAT(spec.resources().capacity_units(), ElementsAre("a100", "h100"));
  EXPECT_EQ(spec.resources().instances(), 4);
  EXPECT_EQ(spec.resources().cpus(), 8);
  EXPECT_EQ(spec.resources().memory_mib(), 1536);
  EXPECT_EQ(spec.attempt_duration_seconds(), 5400);
  EXPECT_EQ(spec.expected_run_seconds(), 3600);
  EXPECT_EQ(spec.preemption_configuration().grace_ms(), 250);
  EXPECT_FALSE(spec.preemption_configuration().preemptible());
  EXPECT_EQ(spec.preemption_configuration().preemption_retries_before_termination(), 0);
  EXPECT_EQ(spec.retry_strategy().attempts(), 3);
  EXPECT_EQ(spec.retry_strategy().backoff_ms(), 90'000);
  EXPECT_TRUE(spec.hold());
  ASSERT_EQ(spec.depends_on_size(), 5);
  EXPECT_EQ(spec.depends_on(1).job_id(), 13);
  EXPECT_EQ(spec.depends_on(1).condition(), v1::DEPENDENCY_CONDITION_ENDED);
  EXPECT_EQ(spec.depends_on(2).condition(), v1::DEPENDENCY_CONDITION_FAILED);
  EXPECT_EQ(spec.depends_on(4).job_id(), 16);
  EXPECT_EQ(spec.depends_on(4).condition(), v1::DEPENDENCY_CONDITION_SUCCEEDED);
  EXPECT_EQ(spec.exit_zero_after_stop(), v1::EXIT_ZERO_AFTER_STOP_SUCCEEDED);
  EXPECT_EQ(spec.array().last(), 8);
  EXPECT_EQ(spec.array().step(), 2);
  EXPECT_EQ(spec.array().limit(), 3);
  EXPECT_EQ(spec.env().at("A"), "2");
  EXPECT_EQ(spec.env().at("B"), "");
  EXPECT_EQ(spec.labels().at("k"), "v=w");
}

TEST(JobOptions, DependenciesThatNameNoJobAreRefused) {
  for (const char* list : {"", "12", "ok:", "ok:x", "ok:12,", "never:12", "ok:0", "ok:-1"}) {
    JobOptions options;
    options.after = {list};
    EXPECT_THAT(option_refusal(options), HasSubstr("--after: '")) << list;
  }
  for (const char* list : {"", "ok:12", "0", "12,,13"}) {
    JobOptions options;
    options.after_ok = {list};
    EXPECT_THAT(option_refusal(options), HasSubstr("--after-ok: '")) << list;
  }
}

TEST(JobOptions, WhatIsLeftOutStaysUnset) {
  const auto spec = spec_of(JobOptions());
  EXPECT_FALSE(spec.resources().has_instances());
  EXPECT_FALSE(spec.resources().has_count_milli());
  EXPECT_FALSE(spec.has_attempt_duration_seconds());
  EXPECT_FALSE(spec.preemption_configuration().has_preemptible());
  EXPECT_FALSE(spec.retry_strategy().has_attempts());
}

TEST(JobOptions, RetryOnLeavesOtherFailures) {
  JobOptions options;
  options.retry_on = {"exit:75,exit:137"};
  const auto rules = spec_of(options).retry_strategy().evaluate_on_exit();
  ASSERT_EQ(rules.size(), 3);
  EXPECT_EQ(rules[0].on_exit_code(), "75");
  EXPECT_EQ(rules[1].action(), v1::RETRY_ACTION_RETRY);
  EXPECT_EQ(rules[2].action(), v1::RETRY_ACTION_EXIT);
}

TEST(JobOptions, MistakesNameOptionAndValue) {
  struct Case {
    std::optional<std::string> JobOptions::*field;
    const char* value;
    const char* option;
  };
  const Case cases[] = {{&JobOptions::priority, "10000", "--priority"},
                        {&JobOptions::priority, "-1", "--priority"},
                        {&JobOptions::gpus, "0", "--gpus"},
                        {&JobOptions::gpus, "-2", "--gpus"},
                        {&JobOptions::gpus, "99999999999999999999", "--gpus"},
                        {&JobOptions::gpus, "0.0001", "--gpus"},
                        {&JobOptions::instances, "0", "--instances"},
                        {&JobOptions::instances, "100001", "--instances"},
                        {&JobOptions::cpus, "x", "--cpus"},
                        {&JobOptions::memory, "16X", "--mem"},
                        {&JobOptions::count, "1.5", "--count"},
                        {&JobOptions::memory, "0", "--mem"},
                        {&JobOptions::timeout, "soon", "--timeout"},
                        {&JobOptions::timeout, "400d", "--timeout"},
                        {&JobOptions::timeout, "1ms", "--timeout"},
                        {&JobOptions::expect, "0", "--expect"},
                        {&JobOptions::grace, "2d", "--grace"},
                        {&JobOptions::retries, "10", "--retries"},
                        {&JobOptions::retry_backoff, "601s", "--retry-backoff"},
                        {&JobOptions::exit_zero_after_stop, "NO", "--exit-zero-after-stop"}};
  for (const auto& one : cases) {
    JobOptions options;
    if (one.field == &JobOptions::count) options.units = {"a100"};
    options.*one.field = one.value;
    const auto message = option_refusal(options);
    EXPECT_THAT(message, HasSubstr(one.option)) << one.value;
    EXPECT_THAT(message, HasSubstr(one.value)) << one.option;
  }
}

TEST(JobOptions, GpusExcludeUnits) {
  JobOptions options;
  options.gpus = "1";
  options.units = {"a100"};
  EXPECT_THAT(option_refusal(options), HasSubstr("--unit UNIT --count N"));
  options = JobOptions();
  options.count = "2";
  EXPECT_THAT(option_refusal(options), HasSubstr("--count needs --unit"));
}

TEST(JobOptions, EnvWithoutValueTakesThePresentOne) {
  JobOptions options;
  options.env = {"HOME"};
  v1::JobSpec spec;
  EXPECT_TRUE(apply_options(
      options, [](const std::string&) { return "/home/x"; }, spec));
  EXPECT_EQ(spec.env().at("HOME"), "/home/x");
  EXPECT_THAT(option_refusal(options), HasSubstr("HOME: not set"));
  options.env = {"1A=2"};
  EXPECT_THAT(option_refusal(options), HasSubstr("'1A=2'"));
}

TEST(JobOptions, UpperLayersGoFirst) {
  JobOptions above;
  above.queue = "a";
  above.units = {"a100"};
  above.env = {"X=1"};
  JobOptions below;
  below.queue = "b";
  below.share = "s";
  below.gpus = "4";
  below.env = {"X=0", "Y=0"};
  const auto joined = overlay(above, below);
  EXPECT_EQ(joined.queue, "a");
  EXPECT_EQ(joined.share, "s");
  EXPECT_FALSE(joined.gpus);
  const auto spec = spec_of(joined);
  EXPECT_EQ(spec.env().at("X"), "1");
  EXPECT_EQ(spec.env().at("Y"), "0");
}

TEST(CheckSpec, CommandsThatNoNodeCanExecute) {
  EXPECT_TRUE(check_spec(command({"true"})));
  EXPECT_FALSE(check_spec(command({})));
  EXPECT_FALSE(check_spec(command({""})));
  auto done = check_spec(command({"echo", std::string(10'000'000, 'x')}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInvalidArgument);
  EXPECT_LT(done.error().message.size(), 200U);
  EXPECT_FALSE(check_spec(command({"echo", std::string(131'072, 'x')})));
  EXPECT_TRUE(check_spec(command({"echo", std::string(131'071, 'x')})));
}

TEST(CheckSpec, OnlyText) {
  auto done = check_spec(command({"echo", "\xff\xfe"}));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("argument 1 is not valid UTF-8"));
  auto spec = command({"echo"});
  (*spec.mutable_env())["A"] = "\xc3";
  EXPECT_FALSE(check_spec(spec));
  spec = command({"echo"});
  spec.set_job_name("\x80");
  EXPECT_FALSE(check_spec(spec));
  EXPECT_TRUE(check_spec(command({"echo", "gr\xc3\xbc\xc3\x9f"})));
}

}  // namespace
}  // namespace gpuq::cli
