#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/policy/job_file.h"

namespace gpuq {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> issues_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const FileIssue& issue : parse_job_text(text).issues) {
    lines.push_back(to_string(issue, "f"));
  }
  return lines;
}

TEST(JobFile, ReadsEveryKey) {
  const ParsedJob parsed = parse_job_text(R"(
name: llama-sft
queue: training
share: research
priority: 100
resources: {unit: a100, count: 8, instances: 4, cpus: 64, memory: 512GiB, topology: {label: rack, required: true}}
command: [torchrun, --nnodes, $NNODES, train.py, 7]
image: registry.local/train:12
env: {WANDB_MODE: offline, N: 4}
workdir: /data/llama
timeout: 3d
expected_run_time: 2d
retry: {attempts: 3, backoff: 10s, evaluate_on_exit: [{on_exit_code: 137, action: RETRY}, {on_status_reason: "*", action: EXIT}]}
preemption: {preemptible: false, retries_before_termination: 10, grace: 120s}
exit_zero_after_stop: SUCCEEDED
depends_on: [{job: prepare-data, condition: SUCCEEDED}, {job: 17, condition: ENDED}]
labels: {project: llama}
)");
  ASSERT_TRUE(parsed.issues.empty()) << to_string(parsed.issues.front(), "f");
  JobFile expected;
  expected.name = "llama-sft";
  expected.queue = "training";
  expected.share = "research";
  expected.priority = 100;
  expected.units = {"a100"};
  expected.count = Amount::units(8);
  expected.instances = 4;
  expected.cpus = 64;
  expected.memory_mib = 512 * 1024;
  expected.topology_label = "rack";
  expected.topology_required = true;
  expected.command = {"torchrun", "--nnodes", "$NNODES", "train.py", "7"};
  expected.image = "registry.local/train:12";
  expected.env = {{"WANDB_MODE", "offline"}, {"N", "4"}};
  expected.workdir = "/data/llama";
  expected.timeout = std::chrono::hours(72);
  expected.expected_run_time = std::chrono::hours(48);
  expected.attempts = 3;
  expected.backoff = std::chrono::seconds(10);
  expected.exit_rules = {{"", "137", RetryAction::kRetry}, {"*", "", RetryAction::kExit}};
  expected.preemptible = false;
  expected.preemption_retries = 10;
  expected.grace = std::chrono::seconds(120);
  expected.exit_zero_after_stop_succeeds = true;
  expected.depends_on = {{"prepare-data", DependencyCondition::kSucceeded},
                         {"17", DependencyCondition::kEnded}};
  expected.labels = {{"project", "llama"}};
  EXPECT_EQ(parsed.job, expected);
}

TEST(JobFile, SeveralUnitsAndGpus) {
  const ParsedJob units = parse_job_text("resources: {unit: [a100, h100], count: 0.5}");
  EXPECT_TRUE(units.issues.empty());
  EXPECT_THAT(units.job.units, ElementsAre("a100", "h100"));
  EXPECT_EQ(units.job.count, Amount(500));
  const ParsedJob gpus = parse_job_text("resources: {gpus: 2}");
  EXPECT_TRUE(gpus.issues.empty());
  EXPECT_EQ(gpus.job.gpus, Amount::units(2));
}

TEST(JobFile, EachMistakeIsNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"name: ''", "job name '' is not valid"},
      {"name: \"a\\nb\"", "job name 'a\\x0ab' is not valid"},
      {"name: " + std::string(129, 'x'), "is not valid: 1 to 128 bytes"},
      {"priority: 10000", "write 0 to 9999"},
      {"priority: -1", "write 0 to 9999"},
      {"resources: {unit: a100, count: 0}", "more than 0"},
      {"resources: {unit: a100, count: -1}", "is negative"},
      {"resources: {unit: a100, count: 1000001}", "at most 1000000"},
      {"resources: {unit: []}", "the list is empty"},
      {"resources: {count: 2}", "Name the unit"},
      {"resources: {gpus: 1, unit: a100}", "excludes unit and count"},
      {"resources: {instances: 0}", "write 1 to 100000"},
      {"resources: {instances: 100001}", "write 1 to 100000"},
      {"resources: {memory: 5X}", "is no memory size"},
      {"resources: 4", "resources: expected a map, found '4'"},
      {"command: python train.py", "write [program, argument, ...]"},
      {"command: []", "name at least a program"},
      {"command: [a, [b]]", "command[1]: expected a text, found a list"},
      {"env: [A]", "env: expected a map, found a list"},
      {"env: {A: }", "env.A: expected a text, found nothing"},
      {"timeout: 0", "shorter than a second"},
      {"timeout: 366d", "at most 365d"},
      {"timeout: -5", "is no duration"},
      {"expected_run_time: 0", "shorter than a second"},
      {"{expected_run_time: 61s, timeout: 1m}", "longer than the timeout"},
      {"retry: {attempts: 11}", "write 1 to 10"},
      {"retry: {evaluate_on_exit: [{action: RETRY}]}", "needs on_exit_code or on_status_reason"},
      {"retry: {evaluate_on_exit: [{on_exit_code: 1}]}", "needs the key 'action'"},
      {"retry: {evaluate_on_exit: [{on_exit_code: 1, action: STOP}]}", "expected RETRY or EXIT"},
      {"preemption: {preemptible: 1}", "expected true or false"},
      {"preemption: {grace: 2d}", "at most 1d"},
      {"depends_on: [{condition: FAILED}]", "needs the key 'job'"},
      {"depends_on: 12", "expected a list"},
      {"array: 9-3", "f:1:8: array: array 9-3: the last index is below the first: write 3-9"},
      {"array: 1,3", "write FIRST-LAST"},
      {"array: [1]", "array: expected a text, found a list"},
      {"comand: [a]", "f:1:1: unknown key 'comand'; known here: array, command"},
      {"queue: a\nqueue: b", "f:2:1: queue: duplicate key"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(issues_of(text), ElementsAre(HasSubstr(expected))) << text;
  }
}

TEST(JobFile, SixRulesAreTooMany) {
  std::string rules;
  for (int i = 0; i < 6; ++i) rules += "{on_exit_code: 1, action: EXIT},";
  EXPECT_THAT(issues_of("retry: {evaluate_on_exit: [" + rules + "]}"),
              ElementsAre(HasSubstr("has 6 rules: at most 5")));
}

TEST(JobFile, AMissingFileIsNotFound) {
  const auto missing = parse_job_file("/nonexistent.yaml");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace gpuq
