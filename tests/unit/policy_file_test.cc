#include "common/policy/policy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuq {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFull = R"(
capacity_units:
  - {name: a100, gpu_model: A100, gpus: 1}
  - {name: ml.g5.xlarge, gpu_model: A10G, gpus: 1, cpus: 4, memory: 16GiB}
service_environments:
  - name: training-pool
    nodes: {pool: training}
    capacity_limits: {a100: 64}
scheduling_policies:
  - {name: quotas, quota_share: {idle_resource_assignment: FIFO}}
job_queues:
  - name: training
    priority: 10
    service_environments: [training-pool]
    scheduling_policy: quotas
    time_limit_actions: [{reason: "MISCONFIGURATION:NO_NODE_FITS", max_time: 1h, action: TERMINATE}]
    quota_shares:
      - name: research
        capacity_limits: {a100: 40}
        resource_sharing: {strategy: LEND_AND_BORROW, borrow_limit: 100}
        preemption: {in_share: ENABLED, min_runtime: 15m, grace: 60s}
        head_wait_limit: 15m
      - {name: production, capacity_limits: {a100: 24}, resource_sharing: {strategy: RESERVE}, state: DISABLED}
)";

std::vector<std::string> issues_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const FileIssue& issue : parse_policy_text(text).issues) {
    lines.push_back(to_string(issue, "f"));
  }
  return lines;
}

TEST(PolicyFile, ReadsEveryKey) {
  const ParsedPolicy parsed = parse_policy_text(kFull);
  ASSERT_TRUE(parsed.issues.empty()) << to_string(parsed.issues.front(), "f");
  const PolicyDoc& doc = parsed.doc;
  ASSERT_EQ(doc.units->size(), 2u);
  EXPECT_EQ((*doc.units)[1].memory_mib, 16384);
  EXPECT_EQ((*doc.units)[1].cpus, 4);
  EXPECT_EQ(doc.environments->front().node_labels.at("pool"), "training");
  EXPECT_EQ(doc.environments->front().capacity_limits.front().max_capacity, Amount::units(64));
  const QueueDef& queue = doc.queues->front();
  EXPECT_EQ(queue.priority, 10);
  EXPECT_EQ(queue.time_limit_actions.front().max_time, std::chrono::hours(1));
  ASSERT_EQ(queue.shares.size(), 2u);
  EXPECT_EQ(queue.shares[0].strategy, SharingStrategy::kLendAndBorrow);
  EXPECT_EQ(queue.shares[0].borrow_limit, 100);
  EXPECT_TRUE(queue.shares[0].in_share_preemption);
  EXPECT_EQ(queue.shares[0].min_runtime, std::chrono::minutes(15));
  EXPECT_EQ(queue.shares[0].grace, std::chrono::seconds(60));
  EXPECT_EQ(queue.shares[0].head_wait_limit, std::chrono::minutes(15));
  EXPECT_FALSE(queue.shares[1].enabled);
  EXPECT_EQ(queue.shares[1].borrow_limit, -1);
  EXPECT_FALSE(queue.shares[1].grace.has_value());
}

TEST(PolicyFile, AnAbsentKindStaysUnnamed) {
  const ParsedPolicy parsed = parse_policy_text("capacity_units: []");
  EXPECT_TRUE(parsed.issues.empty());
  EXPECT_TRUE(parsed.doc.units.has_value());
  EXPECT_FALSE(parsed.doc.queues.has_value());
}

TEST(PolicyFile, RoundTripsThroughYaml) {
  ParsedPolicy parsed = parse_policy_text(kFull);
  EXPECT_EQ(parse_policy_text(to_yaml(parsed.doc)).doc, parsed.doc);
  PolicyDoc odd = parsed.doc;
  odd.units->front().gpu_model = "Tesla T4: \"16\" # null";
  odd.environments->front().node_labels = {{"null", "true"}, {"a b", ""}, {"x", "~"}};
  odd.environments->front().enabled = false;
  odd.policies->front().idle_order = IdleOrder::kDecayedUsage;
  odd.policies->front().half_life = std::chrono::hours(36);
  odd.queues->front().enabled = false;
  odd.queues->front().shares[0].capacity_limits = {{"a100", Amount(250)}};
  odd.queues->front().shares[0].grace = Duration(1500);
  odd.queues->front().shares[0].head_wait_limit = Duration(0);
  odd.queues->front().shares[0].user_order = UserOrder::kFair;
  const ParsedPolicy again = parse_policy_text(to_yaml(odd));
  ASSERT_TRUE(again.issues.empty()) << to_string(again.issues.front(), "f");
  EXPECT_EQ(again.doc, odd);
  PolicyDoc none;
  none.queues.emplace();
  EXPECT_EQ(parse_policy_text(to_yaml(none)).doc, none);
}

TEST(PolicyFile, ReportsEverythingWrongAtOnceWithItsPlace) {
  const auto issues = issues_of(R"(capacity_units:
  - {name: a100, gpus: -1, cpus: x, memory: lots, colour: red}
  - {gpus: "1", name: [b]}
service_environments: 7
job_queues:
  - name: q
    name: p
    priority: 1001
    state: ON
    service_environments: pool
    quota_shares:
      - {name: s, capacity_limits: {a100: 1.2345}, resource_sharing: {strategy: SHARE, borrow_limit: -2}}
      - {name: t, capacity_limits: {}, resource_sharing: LEND, preemption: {in_share: true, grace: 25h}}
)");
  EXPECT_THAT(
      issues,
      testing::UnorderedElementsAre(
          HasSubstr("f:2:24: capacity_units[0].gpus: '-1' is out of range: write 0 to 1024"),
          HasSubstr("f:2:34: capacity_units[0].cpus: 'x' is no whole number"),
          HasSubstr("f:2:45: capacity_units[0].memory: 'lots' is no memory size"),
          HasSubstr("f:2:51: capacity_units[0]: unknown key 'colour'"),
          HasSubstr("f:3:12: capacity_units[1].gpus: expected a whole number, found the text '1'"),
          HasSubstr("f:3:23: capacity_units[1].name: expected a text, found a list"),
          HasSubstr("f:4:23: service_environments: expected a list, found '7'"),
          HasSubstr("f:7:5: job_queues[0].name: duplicate key, first given in line 6"),
          HasSubstr("f:8:15: job_queues[0].priority: '1001' is out of range"),
          HasSubstr("f:9:12: job_queues[0].state: expected ENABLED or DISABLED, found 'ON'"),
          HasSubstr("job_queues[0].service_environments: expected a list, found 'pool'"),
          HasSubstr("f:6:5: job_queues[0]: needs the key 'scheduling_policy'"),
          HasSubstr("job_queues[0].quota_shares[0].capacity_limits.a100: '1.2345' is too fine"),
          HasSubstr("quota_shares[0].resource_sharing.strategy: expected RESERVE, LEND, "
                    "LEND_AND_BORROW, found 'SHARE'"),
          HasSubstr("quota_shares[0].resource_sharing.borrow_limit: '-2' is out of range"),
          HasSubstr("quota_shares[1].resource_sharing: expected a map, found 'LEND'"),
          HasSubstr("quota_shares[1].preemption.in_share: expected ENABLED or DISABLED"),
          HasSubstr("quota_shares[1].preemption.grace: duration '25h' is too long: at most 1d")));
}

TEST(PolicyFile, ChecksReferencesOfAWholeDocument) {
  std::string text = kFull;
  text.replace(text.find("scheduling_policy: quotas"), 25, "scheduling_policy: missing");
  text.replace(text.find("{a100: 24}"), 10, "{h100: 24}");
  EXPECT_THAT(issues_of(text),
              ElementsAre(HasSubstr("f:15:5: job_queues[0].scheduling_policy: there is no "
                                    "scheduling policy 'missing'"),
                          HasSubstr("job_queues[0].quota_shares[1].capacity_limits.h100: there is "
                                    "no capacity unit 'h100'")));
}

TEST(PolicyFile, RefusesOtherQueueKinds) {
  for (const char* kind : {"fifo", "fair_share"}) {
    const auto issues =
        issues_of(std::string("scheduling_policies: [{name: p, ") + kind + ": {}}]");
    ASSERT_EQ(issues.size(), 1u);
    EXPECT_THAT(issues[0], HasSubstr("not part of this version: use quota_share"));
  }
}

TEST(PolicyFile, FindsThePlaceOfTheServersIssues) {
  const ParsedPolicy parsed = parse_policy_text(kFull);
  const auto line = [&](const char* path) { return parsed.locate({true, path, "m"}).line; };
  EXPECT_EQ(line("job_queues[0].quota_shares[1]"), 23);
  EXPECT_EQ(line("job_queues[0].quota_shares[0].capacity_limits.a100"), 19);
  EXPECT_EQ(line("service_environments[0].capacity_limits.ml.g5.xlarge"), 8);
  EXPECT_EQ(line("job_queues[7].name"), 11);
  EXPECT_EQ(line("nowhere"), 2);
}

TEST(PolicyFile, BrokenYamlIsOneClearLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a: [1, 2", "is not valid YAML"},
      {"a: b: c", "f:1:5: is not valid YAML"},
      {"{a: 1}}", "is not valid YAML"},
      {"", "f: is empty"},
      {"# nothing\n", "f: is empty"},
      {"a: \xff", "f:1:4: is not valid UTF-8"},
      {std::string("a: \0", 4), "holds a zero byte"},
      {"a: 1\n---\nb: 2\n", "more than one document"},
      {"a: &x 1", "anchors (&name) are not supported"},
      {"a: *x", "is not valid YAML"},
      {"a: !!int 1", "tags ("},
      {"? [a]\n: 1", "a key must be a plain word"},
      {"- 1", "expected a map, found a list"},
      {"word", "expected a map, found 'word'"},
      {"a: " + std::string(200, '[') + std::string(200, ']'), "nested too deeply"},
      {std::string(100'000, '['), ""},
      {std::string(100'000, '{'), ""},
      {"a: " + std::string(kMaxPolicyFileBytes, 'x'), "f: larger than 4 MiB"},
  };
  for (const auto& [text, expected] : cases) {
    const auto issues = issues_of(text);
    ASSERT_EQ(issues.size(), 1u) << text.substr(0, 60);
    EXPECT_THAT(issues[0], HasSubstr(expected));
    EXPECT_EQ(issues[0].find('\n'), std::string::npos);
    EXPECT_LT(issues[0].size(), 300u);
  }
}

TEST(PolicyFile, AnchorBombsAreRefusedAtTheFirstAnchor) {
  std::string bomb = "a: &a [x, x]\n";
  for (char c = 'b'; c < 'z'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [*" + char(c - 1) + ", *" + char(c - 1) + "]\n";
  }
  EXPECT_THAT(issues_of(bomb), ElementsAre(HasSubstr("f:1:4: anchors")));
}

TEST(PolicyFile, ManyErrorsAreCutShort) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const Error error = as_error(parse_policy_text(text).issues, "f");
  EXPECT_THAT(error.message, HasSubstr("f: 400 more errors"));
}

TEST(PolicyFile, AMissingFileIsNotFound) {
  const auto missing = parse_policy_file("/nonexistent/policy.yaml");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().message, "/nonexistent/policy.yaml: no such file");
  const auto folder = parse_policy_file("/");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace gpuq
