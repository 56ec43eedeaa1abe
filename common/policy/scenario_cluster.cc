// Cluster, policy and the short form of a scenario.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "common/policy/policy_file.h"
#include "common/policy/policy_reader.h"
#include "common/policy/scenario_reader.h"
#include "core/base/text.h"
#include "core/model/policy_check.h"

namespace gpuq {

namespace {

// A node that says nothing about CPUs and memory has plenty, so that only its GPUs bind.
constexpr std::int32_t kPlentyCpus = 1024;
constexpr std::int64_t kPlentyMemoryMib = std::int64_t{8} << 20;
constexpr const char* kAnyModel = "GPU";
constexpr std::int64_t kMaxDevices = 1'000'000;

Node make_node(const std::string& name, std::int64_t gpus, const std::string& model) {
  Node node;
  node.name = name;
  node.cpus = kPlentyCpus;
  node.memory_mib = kPlentyMemoryMib;
  for (std::int64_t i = 0; i < gpus; ++i) {
    Device device;
    device.uuid = fmt::format("GPU-{}-{}", name, i);
    device.model = model;
    node.devices.push_back(std::move(device));
  }
  return node;
}

void add_node(Node node, const YamlNode& place, const std::string& path, ScenarioReader& reader) {
  if (!reader.nodes.insert(node.name).second) {
    reader.add_error_at(place, path, fmt::format("node {} is given twice", quote(node.name)));
    return;
  }
  reader.scenario.nodes.push_back(std::move(node));
}

std::int64_t device_count(const ScenarioReader& reader) {
  std::int64_t count = 0;
  for (const Node& node : reader.scenario.nodes) {
    count += static_cast<std::int64_t>(node.devices.size());
  }
  return count;
}

void read_node(const YamlNode& item, const std::string& path, ScenarioReader& reader) {
  MapReader map(item, path, reader.issues);
  std::string name;
  std::string model = kAnyModel;
  std::int64_t gpus = 0;
  std::optional<std::int64_t> count;
  map.require("name");
  map.text("name", name);
  map.integer("count", count, std::int64_t{1}, std::int64_t{100'000});
  map.integer("gpus", gpus, std::int64_t{0}, kMaxDevices);
  map.text("gpu_model", model);
  Node node = make_node(name, 0, model);
  map.integer("cpus", node.cpus, 0, 100'000);
  map.memory_mib("memory", node.memory_mib);
  map.text_map("labels", node.labels);
  map.finish();
  if (!name.empty() && !is_object_name(name)) {
    map.error("name", fmt::format("{} is no node name: characters A-Z a-z 0-9 . _ -", quote(name)));
  }
  if (device_count(reader) + count.value_or(1) * gpus > kMaxDevices) {
    map.error("gpus", fmt::format("the cluster has more than {} GPUs", kMaxDevices));
    return;
  }
  for (std::int64_t i = 0; i < count.value_or(1); ++i) {
    node.name = count ? fmt::format("{}-{}", name, i) : name;
    node.devices = make_node(node.name, gpus, model).devices;
    add_node(node, item, path, reader);
  }
}

void read_cluster(MapReader& root, ScenarioReader& reader) {
  const YamlNode* node = root.find("cluster");
  if (node == nullptr) return;
  MapReader map(*node, "cluster", reader.issues);
  map.require("nodes");
  map.list("nodes",
           [&](const YamlNode& item, const std::string& path) { read_node(item, path, reader); });
  map.finish();
}

ShareDef read_short_share(const std::string& name, const YamlNode& item, const std::string& path,
                          ScenarioReader& reader) {
  MapReader map(item, path, reader.issues);
  ShareDef share;
  share.name = name;
  CapacityLimit limit{kShortFormUnit, kZero};
  map.require("capacity");
  map.amount("capacity", limit.max_capacity);
  share.capacity_limits.push_back(limit);
  map.word("strategy", share.strategy, kStrategyWords);
  map.integer("borrow_limit", share.borrow_limit, -1, kMaxBorrowPercent);
  map.boolean("in_share_preemption", share.in_share_preemption);
  map.duration("min_runtime", share.min_runtime);
  map.word("user_order", share.user_order, kUserOrderWords);
  map.duration("head_wait_limit", share.head_wait_limit);
  map.duration("grace", share.grace, std::chrono::hours(24));
  map.word("state", share.enabled, kEnabledWords);
  map.finish();
  return share;
}

PolicyDoc short_form_policy(std::vector<ShareDef> shares, Amount pool) {
  PolicyDoc doc;
  UnitDef unit;
  unit.name = kShortFormUnit;
  unit.gpus = 1;
  EnvDef env;
  env.name = kShortFormPool;
  env.capacity_limits = {{kShortFormUnit, pool}};
  SchedulingPolicyDef policy;
  policy.name = "quotas";
  QueueDef queue;
  queue.name = kShortFormQueue;
  queue.service_environments = {env.name};
  queue.scheduling_policy = policy.name;
  queue.shares = std::move(shares);
  doc.units = {unit};
  doc.environments = {env};
  doc.policies = {policy};
  doc.queues = {queue};
  return doc;
}

void read_short_form(MapReader& root, ScenarioReader& reader) {
  reader.short_form = true;
  std::vector<ShareDef> shares;
  Amount capacities;
  root.entries("shares",
               [&](const std::string& name, const YamlNode& item, const std::string& path) {
                 shares.push_back(read_short_share(name, item, path, reader));
                 capacities += shares.back().capacity_limits.front().max_capacity;
               });
  Amount pool = root.has("cluster") ? Amount::units(device_count(reader)) : capacities;
  root.amount("pool", pool);
  if (!root.has("cluster")) {
    const std::int64_t gpus = (pool.milli + 999) / 1000;
    if (gpus > kMaxDevices) {
      root.error(root.has("pool") ? "pool" : "shares",
                 fmt::format("the pool has more than {} GPUs", kMaxDevices));
    } else {
      reader.nodes.insert(kShortFormPool);
      reader.scenario.nodes.push_back(make_node(kShortFormPool, gpus, kAnyModel));
    }
  }
  reader.scenario.policy = short_form_policy(std::move(shares), pool);
}

void read_policy_of_other_file(MapReader& root, ScenarioReader& reader) {
  std::string name;
  if (!root.text("policy_file", name)) return;
  std::filesystem::path path(name);
  if (path.is_relative()) {
    path = std::filesystem::path(reader.scenario.file).parent_path() / path;
  }
  auto parsed = parse_policy_file(path.string());
  if (parsed) {
    reader.scenario.policy = std::move(parsed->doc);
  } else {
    root.error("policy_file", parsed.error().message);
  }
}

void check_whole_policy(MapReader& root, ScenarioReader& reader) {
  const char* key = reader.short_form ? "shares" : root.has("policy") ? "policy" : "policy_file";
  for (const PolicyIssue& issue : check_policy(reader.scenario.policy, kNoLimit, kNoLimit)) {
    if (!issue.is_error) continue;
    // Paths lead into the inline policy; the short form has made its own.
    const bool is_inline = std::string_view(key) == "policy";
    const std::string path = is_inline ? "policy." + issue.path : key;
    const FilePosition at = find_position(reader.positions, path);
    reader.issues.push_back({at.line, at.column, path, issue.message, true});
  }
}

void collect_shares(ScenarioReader& reader) {
  if (!reader.scenario.policy.queues) return;
  for (const QueueDef& queue : *reader.scenario.policy.queues) {
    for (const ShareDef& share : queue.shares) {
      const std::size_t limits = share.capacity_limits.size();
      reader.shares.emplace(queue.name + "/" + share.name, limits);
      const auto [it, fresh] = reader.shares.emplace(share.name, limits);
      if (!fresh) it->second = ScenarioReader::kAmbiguous;
    }
  }
}

}  // namespace

void read_cluster_and_policy(MapReader& root, ScenarioReader& reader) {
  read_cluster(root, reader);
  const int forms =
      int{root.has("shares")} + int{root.has("policy")} + int{root.has("policy_file")};
  if (forms != 1) root.error_here("needs one of shares, policy and policy_file");
  if (root.has("pool") && !root.has("shares")) {
    root.error("pool", "belongs to the short form: use capacity_limits of the service environment");
  }
  const std::size_t issues_before = reader.issues.size();
  if (root.has("shares")) {
    read_short_form(root, reader);
  } else if (const YamlNode* node = root.find("policy")) {
    reader.scenario.policy = read_policy(*node, "policy", reader.issues);
  } else {
    read_policy_of_other_file(root, reader);
  }
  for (const char* key : {"shares", "pool", "policy", "policy_file"}) root.find(key);
  if (!reader.short_form && !root.has("cluster")) {
    root.error_here("needs a cluster: only the short form makes one");
  }
  if (reader.issues.size() == issues_before && forms == 1) check_whole_policy(root, reader);
  collect_shares(reader);
}

}  // namespace gpuq
