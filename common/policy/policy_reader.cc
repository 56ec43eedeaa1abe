#include "common/policy/policy_reader.h"

namespace gpuq {

namespace {

using Issues = std::vector<FileIssue>;

std::vector<CapacityLimit> read_limits(MapReader& map, Issues& issues) {
  std::vector<CapacityLimit> limits;
  map.entries("capacity_limits",
              [&](const std::string& unit, const YamlNode& value, const std::string& path) {
                if (const auto amount = read_amount(value, path, issues)) {
                  limits.push_back({unit, *amount});
                }
              });
  return limits;
}

void read_unit(const YamlNode& node, const std::string& path, std::vector<UnitDef>& out,
               Issues& issues) {
  MapReader map(node, path, issues);
  UnitDef unit;
  map.require("name");
  map.text("name", unit.name);
  map.text("gpu_model", unit.gpu_model);
  map.integer("gpus", unit.gpus, 0, 1024);
  map.integer("cpus", unit.cpus, 0, 100'000);
  map.memory_mib("memory", unit.memory_mib);
  map.finish();
  out.push_back(std::move(unit));
}

void read_environment(const YamlNode& node, const std::string& path, std::vector<EnvDef>& out,
                      Issues& issues) {
  MapReader map(node, path, issues);
  EnvDef env;
  map.require("name");
  map.text("name", env.name);
  map.text_map("nodes", env.node_labels);
  map.require("capacity_limits");
  env.capacity_limits = read_limits(map, issues);
  map.word("state", env.enabled, kEnabledWords);
  map.finish();
  out.push_back(std::move(env));
}

void read_scheduling_policy(const YamlNode& node, const std::string& path,
                            std::vector<SchedulingPolicyDef>& out, Issues& issues) {
  MapReader map(node, path, issues);
  SchedulingPolicyDef policy;
  map.require("name");
  map.text("name", policy.name);
  for (const char* later : {"fifo", "fair_share", "fairshare"}) {
    if (map.find(later) == nullptr) continue;
    map.error(later, "FIFO and FAIRSHARE queues are not part of this version: use quota_share");
  }
  if (!map.has("fifo") && !map.has("fair_share") && !map.has("fairshare")) {
    map.require("quota_share");
  }
  if (const YamlNode* quota = map.find("quota_share")) {
    MapReader inner(*quota, map.path_of("quota_share"), issues);
    inner.word("idle_resource_assignment", policy.idle_order,
               {{"FIFO", IdleOrder::kFifo},
                {"LEAST_BORROWED", IdleOrder::kLeastBorrowed},
                {"DECAYED_USAGE", IdleOrder::kDecayedUsage}});
    inner.duration("half_life", policy.half_life, kMaxHalfLife);
    inner.finish();
  }
  map.finish();
  out.push_back(std::move(policy));
}

void read_sharing(const YamlNode& node, const std::string& path, ShareDef& share, Issues& issues) {
  MapReader map(node, path, issues);
  map.require("strategy");
  map.word("strategy", share.strategy, kStrategyWords);
  map.integer("borrow_limit", share.borrow_limit, -1, kMaxBorrowPercent);
  map.finish();
}

void read_share_preemption(const YamlNode& node, const std::string& path, ShareDef& share,
                           Issues& issues) {
  MapReader map(node, path, issues);
  map.word("in_share", share.in_share_preemption, kEnabledWords);
  map.duration("min_runtime", share.min_runtime);
  map.duration("grace", share.grace, std::chrono::hours(24));
  map.finish();
}

void read_share(const YamlNode& node, const std::string& path, std::vector<ShareDef>& out,
                Issues& issues) {
  MapReader map(node, path, issues);
  ShareDef share;
  map.require("name");
  map.text("name", share.name);
  map.require("capacity_limits");
  share.capacity_limits = read_limits(map, issues);
  map.require("resource_sharing");
  if (const YamlNode* sharing = map.find("resource_sharing")) {
    read_sharing(*sharing, map.path_of("resource_sharing"), share, issues);
  }
  if (const YamlNode* preemption = map.find("preemption")) {
    read_share_preemption(*preemption, map.path_of("preemption"), share, issues);
  }
  map.duration("head_wait_limit", share.head_wait_limit);
  map.word("user_order", share.user_order, kUserOrderWords);
  map.word("state", share.enabled, kEnabledWords);
  map.finish();
  out.push_back(std::move(share));
}

void read_time_limit(const YamlNode& node, const std::string& path,
                     std::vector<TimeLimitAction>& out, Issues& issues) {
  MapReader map(node, path, issues);
  TimeLimitAction action;
  bool terminate = true;
  map.require("reason");
  map.text("reason", action.reason);
  map.require("max_time");
  map.duration("max_time", action.max_time);
  map.word("action", terminate, {{"TERMINATE", true}});
  map.finish();
  out.push_back(std::move(action));
}

void read_queue(const YamlNode& node, const std::string& path, std::vector<QueueDef>& out,
                Issues& issues) {
  MapReader map(node, path, issues);
  QueueDef queue;
  map.require("name");
  map.text("name", queue.name);
  map.integer("priority", queue.priority, 0, 1000);
  map.word("state", queue.enabled, kEnabledWords);
  map.require("service_environments");
  map.texts("service_environments", queue.service_environments);
  map.require("scheduling_policy");
  map.text("scheduling_policy", queue.scheduling_policy);
  map.list("time_limit_actions", [&](const YamlNode& item, const std::string& at) {
    read_time_limit(item, at, queue.time_limit_actions, issues);
  });
  map.list("quota_shares", [&](const YamlNode& item, const std::string& at) {
    read_share(item, at, queue.shares, issues);
  });
  map.finish();
  out.push_back(std::move(queue));
}

template <typename Def, typename ReadItem>
void read_kind(MapReader& map, const char* key, std::optional<std::vector<Def>>& kind,
               Issues& issues, ReadItem read_item) {
  if (map.find(key) == nullptr) return;
  kind.emplace();
  map.list(key, [&](const YamlNode& item, const std::string& path) {
    read_item(item, path, *kind, issues);
  });
}

}  // namespace

PolicyDoc read_policy(const YamlNode& node, const std::string& path,
                      std::vector<FileIssue>& issues) {
  MapReader map(node, path, issues);
  PolicyDoc doc;
  read_kind(map, "capacity_units", doc.units, issues, read_unit);
  read_kind(map, "service_environments", doc.environments, issues, read_environment);
  read_kind(map, "scheduling_policies", doc.policies, issues, read_scheduling_policy);
  read_kind(map, "job_queues", doc.queues, issues, read_queue);
  map.finish();
  return doc;
}

}  // namespace gpuq
