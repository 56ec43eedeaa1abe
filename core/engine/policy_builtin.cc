// The policy before any apply, and the nodes of environments.
#include <fmt/format.h>

#include <set>

#include "core/engine/policy_change.h"
#include "core/engine/policy_nodes.h"

namespace gpuq {

namespace {

constexpr const char* kCpuUnit = "cpu";
constexpr std::size_t kMaxUnitName = 120;  // Leaves room for a number behind it.

std::string unit_name_for(const std::string& model) {
  std::string name;
  for (const char c : model.substr(0, kMaxUnitName)) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += upper ? static_cast<char>(c - 'A' + 'a') : kept ? c : '-';
  }
  return name;
}

std::string free_name(const PolicyTables& tables, const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; tables.unit(name) != nullptr; ++i) name = fmt::format("{}-{}", wanted, i);
  return name;
}

template <typename Id>
Id next_id(PolicyTables& tables) {
  return Id(tables.next_id++);
}

void add_unit(PolicyTables& tables, UnitDef def) {
  tables.units.push_back({next_id<UnitId>(tables), std::move(def)});
}

void add_missing_units(PolicyTables& tables, const std::vector<Node>& nodes) {
  if (tables.unit(kCpuUnit) == nullptr) {
    UnitDef cpu;
    cpu.name = kCpuUnit;
    cpu.cpus = 1;
    add_unit(tables, cpu);
  }
  std::set<std::string> models;
  for (const Node& node : nodes) {
    for (const Device& device : node.devices) models.insert(device.model);
  }
  for (const Unit& unit : tables.units) models.erase(unit.def.gpu_model);
  // A device without a model can not have a unit of its own: an empty model would match them all.
  models.erase("");
  for (const std::string& model : models) {
    UnitDef gpu;
    gpu.name = free_name(tables, unit_name_for(model));
    gpu.gpu_model = model;
    gpu.gpus = 1;
    add_unit(tables, gpu);
  }
}

}  // namespace

PolicyTables builtin_policy(const PolicyTables& previous, const std::vector<Node>& nodes) {
  PolicyTables tables = previous;
  tables.builtin = true;
  add_missing_units(tables, nodes);
  if (tables.environment(kDefaultName) == nullptr) {
    EnvDef environment;
    environment.name = kDefaultName;
    tables.environments.push_back({next_id<EnvId>(tables), environment});
  }
  if (tables.policy(kDefaultName) == nullptr) {
    SchedulingPolicyDef policy;
    policy.name = kDefaultName;
    tables.policies.push_back({next_id<PolicyId>(tables), policy});
  }
  if (tables.queue(kDefaultName) == nullptr) {
    QueueDef queue;
    queue.name = kDefaultName;
    queue.service_environments = {kDefaultName};
    queue.scheduling_policy = kDefaultName;
    tables.queues.push_back({next_id<QueueId>(tables), queue});
  }
  const QueueId queue = tables.queue(kDefaultName)->id;
  if (tables.share(queue, kDefaultName) == nullptr) {
    ShareDef share;
    share.name = kDefaultName;
    share.strategy = SharingStrategy::kLend;
    tables.shares.push_back({next_id<ShareId>(tables), queue, share});
  }
  return tables;
}

EnvId environment_for(const PolicyTables& policy, const Node& node) {
  const Environment* first = nullptr;
  for (const Environment& environment : policy.environments) {
    if (!selects(environment.def, node)) continue;
    if (first == nullptr || environment.def.name < first->def.name) first = &environment;
  }
  return first != nullptr ? first->id : EnvId();
}

}  // namespace gpuq
