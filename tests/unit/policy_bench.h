#pragma once
// Policy tables under test, with nodes and jobs beside them, and short ways to plan changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/policy/policy_file.h"
#include "core/engine/policy_change.h"
#include "core/model/policy_document.h"

namespace gpuq::policy_test {

inline constexpr const char* kPolicy = R"(
capacity_units: [{name: a100, gpu_model: A100, gpus: 1}, {name: cpu, cpus: 1}]
service_environments: [{name: pool, nodes: {pool: train}, capacity_limits: {a100: 8}}]
scheduling_policies: [{name: quotas, quota_share: {}}]
job_queues:
  - name: training
    service_environments: [pool]
    scheduling_policy: quotas
    quota_shares:
      - {name: a, capacity_limits: {a100: 4}, resource_sharing: {strategy: LEND}}
      - {name: b, capacity_limits: {a100: 4}, resource_sharing: {strategy: LEND_AND_BORROW}}
)";

inline Node node(const std::string& name, const std::string& model, int gpus,
                 const std::string& pool) {
  Node result;
  result.name = name;
  result.labels = {{"pool", pool}};
  result.cpus = 8;
  result.memory_mib = 1024;
  for (int i = 0; i < gpus; ++i) {
    Device device;
    device.model = model;
    result.devices.push_back(device);
  }
  return result;
}

inline PolicyDoc document(const std::string& yaml) {
  ParsedPolicy parsed = parse_policy_text(yaml);
  EXPECT_FALSE(has_errors(parsed.issues)) << to_string(parsed.issues.front(), "f");
  return std::move(parsed.doc);
}

inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

/// Units by name: ids, which give the order of the tables, may come from the built-in policy.
inline PolicyDoc sorted(PolicyDoc doc) {
  std::ranges::sort(*doc.units, {}, &UnitDef::name);
  return doc;
}

/// The tables under test, with jobs and nodes beside them.
struct Bench {
  PolicyTables tables;
  std::vector<Node> nodes{node("n", "A100", 8, "train")};
  std::map<ShareId, ShareUse> uses;
  PolicyLimits limits;

  PolicyChange plan(const ApplyPolicyCommand& command) const {
    return plan_policy_change(tables, command, nodes, uses, limits);
  }
  PolicyChange plan(const std::string& yaml, bool prune = false) const {
    ApplyPolicyCommand command;
    command.doc = document(yaml);
    command.prune = prune;
    return plan(command);
  }
  /// Plans and, without errors, takes over the result.
  PolicyChange apply(const std::string& yaml, bool prune = false) {
    PolicyChange change = plan(yaml, prune);
    EXPECT_FALSE(change.has_errors()) << change.issues.front().message;
    tables = change.tables;
    return change;
  }
  ShareId share(const std::string& queue, const std::string& name) const {
    const Queue* found = tables.queue(queue);
    const Share* s = found != nullptr ? tables.share(found->id, name) : nullptr;
    return s != nullptr ? s->id : ShareId();
  }
};

inline std::vector<std::string> errors(const PolicyChange& change) {
  std::vector<std::string> lines;
  for (const PolicyIssue& issue : change.issues) {
    if (issue.is_error) lines.push_back(issue.path + ": " + issue.message);
  }
  return lines;
}

inline std::vector<std::string> warnings(const PolicyChange& change) {
  std::vector<std::string> lines;
  for (const PolicyIssue& issue : change.issues) {
    if (!issue.is_error) lines.push_back(issue.path + ": " + issue.message);
  }
  return lines;
}

}  // namespace gpuq::policy_test
