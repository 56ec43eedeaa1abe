#include "core/model/policy_document.h"

#include <algorithm>

namespace gpuq {

bool is_retired(const Environment& environment) {
  return environment.def.node_labels.contains(kRetiredLabel);
}

bool is_retired(const PolicyTables& tables, const Queue& queue) {
  const Environment* environment = tables.environment_of(queue.id);
  return environment != nullptr && is_retired(*environment);
}

bool is_retired(const PolicyTables& tables, const Unit& unit) {
  return std::ranges::any_of(tables.environments, [&](const Environment& environment) {
    return is_retired(environment) &&
           std::ranges::find(environment.def.capacity_limits, unit.def.name,
                             &CapacityLimit::unit) != environment.def.capacity_limits.end();
  });
}

PolicyDoc policy_document(const PolicyTables& tables) {
  PolicyDoc doc;
  doc.units.emplace();
  doc.environments.emplace();
  doc.policies.emplace();
  doc.queues.emplace();
  for (const Unit& unit : tables.units) {
    if (!is_retired(tables, unit)) doc.units->push_back(unit.def);
  }
  for (const Environment& environment : tables.environments) {
    if (!is_retired(environment)) doc.environments->push_back(environment.def);
  }
  for (const SchedulingPolicy& policy : tables.policies) {
    if (policy.def.name != kRetiredName) doc.policies->push_back(policy.def);
  }
  for (const Queue& queue : tables.queues) {
    if (queue.deleting || is_retired(tables, queue)) continue;
    QueueDef def = queue.def;
    for (const Share& share : tables.shares) {
      if (share.queue == queue.id && !share.deleting) def.shares.push_back(share.def);
    }
    doc.queues->push_back(std::move(def));
  }
  return doc;
}

}  // namespace gpuq
