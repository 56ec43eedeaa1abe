#include "core/engine/policy_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gpuq {

namespace {

/// Whole units that an empty node holds.
Amount units_on(const UnitDef& unit, const Node& node) {
  std::int64_t count = INT64_MAX;
  if (unit.gpus > 0) {
    const auto gpus = std::ranges::count_if(
        node.devices, [&](const Device& device) { return device.is_model(unit.gpu_model); });
    count = gpus / unit.gpus;
  }
  if (unit.cpus > 0) count = std::min<std::int64_t>(count, node.cpus / unit.cpus);
  if (unit.memory_mib > 0) count = std::min(count, node.memory_mib / unit.memory_mib);
  return count == INT64_MAX ? kZero : Amount::units(count);
}

class NodeCheck {
 public:
  NodeCheck(const PolicyDoc& doc, const std::vector<Node>& nodes, std::vector<PolicyIssue>& issues)
      : doc_(doc), nodes_(nodes), issues_(issues) {}

  void run() {
    const auto& environments = *doc_.environments;
    for (std::size_t i = 0; i < environments.size(); ++i) {
      const std::string path = fmt::format("service_environments[{}]", i);
      for (std::size_t k = 0; k < i; ++k) check_overlap(environments[k], environments[i], path);
      check_environment(environments[i], path);
    }
    for (std::size_t i = 0; i < doc_.queues->size(); ++i) {
      check_queue((*doc_.queues)[i], fmt::format("job_queues[{}]", i));
    }
  }

 private:
  void check_overlap(const EnvDef& a, const EnvDef& b, const std::string& path) {
    for (const Node& node : nodes_) {
      if (!selects(a, node) || !selects(b, node)) continue;
      add(true, path + ".nodes",
          fmt::format("environments {} and {} both select node {}: a node belongs to one of them",
                      a.name, b.name, node.name));
      return;
    }
  }

  void check_environment(const EnvDef& environment, const std::string& path) {
    if (nodes_.empty()) return;
    const bool any =
        std::ranges::any_of(nodes_, [&](const Node& n) { return selects(environment, n); });
    if (!any) {
      add(false, path + ".nodes",
          fmt::format("no known node belongs to environment {}", environment.name));
      return;
    }
    for (const CapacityLimit& limit : environment.capacity_limits) {
      const Amount there = on_nodes(environment, limit.unit);
      const std::string place = path + ".capacity_limits." + limit.unit;
      if (limit.max_capacity == kZero || limit.max_capacity <= there) continue;
      if (there == kZero) {
        add(false, place,
            fmt::format("no known node of environment {} has unit {}", environment.name,
                        limit.unit));
      } else {
        add(false, place,
            fmt::format("the limit of {} {} is beyond the {} that the known nodes of "
                        "environment {} have",
                        to_string(limit.max_capacity), limit.unit, to_string(there),
                        environment.name));
      }
    }
  }

  void check_queue(const QueueDef& queue, const std::string& path) {
    const auto environment =
        std::ranges::find(*doc_.environments, queue.service_environments.front(), &EnvDef::name);
    if (environment == doc_.environments->end() || queue.shares.empty()) return;
    for (const CapacityLimit& limit : environment->capacity_limits) {
      check_caps(queue, *environment, limit, path);
    }
  }

  void check_caps(const QueueDef& queue, const EnvDef& environment, const CapacityLimit& limit,
                  const std::string& path) {
    Amount sum;
    for (std::size_t i = 0; i < queue.shares.size(); ++i) {
      for (const CapacityLimit& cap : queue.shares[i].capacity_limits) {
        if (cap.unit != limit.unit) continue;
        sum += cap.max_capacity;
        if (cap.max_capacity <= limit.max_capacity) continue;
        add(false, fmt::format("{}.quota_shares[{}].capacity_limits.{}", path, i, cap.unit),
            fmt::format("share {} owns {} {}, more than the {} of environment {}",
                        queue.shares[i].name, to_string(cap.max_capacity), cap.unit,
                        to_string(limit.max_capacity), environment.name));
      }
    }
    const std::string place = path + ".quota_shares";
    if (sum < limit.max_capacity) {
      add(false, place,
          fmt::format("{} of the {} {} of environment {} belong to no share: owners "
                      "may use them, nobody can borrow them",
                      to_string(limit.max_capacity - sum), to_string(limit.max_capacity),
                      limit.unit, environment.name));
    } else if (sum > limit.max_capacity) {
      add(false, place,
          fmt::format("the shares of queue {} own {} of {} {}: whoever comes first "
                      "gets them",
                      queue.name, to_string(sum), to_string(limit.max_capacity), limit.unit));
    }
  }

  Amount on_nodes(const EnvDef& environment, const std::string& unit) const {
    const auto def = std::ranges::find(*doc_.units, unit, &UnitDef::name);
    Amount sum;
    for (const Node& node : nodes_) {
      if (def != doc_.units->end() && selects(environment, node)) sum += units_on(*def, node);
    }
    return sum;
  }

  void add(bool is_error, std::string path, std::string message) {
    issues_.push_back({is_error, std::move(path), std::move(message)});
  }

  const PolicyDoc& doc_;
  const std::vector<Node>& nodes_;
  std::vector<PolicyIssue>& issues_;
};

}  // namespace

bool selects(const EnvDef& environment, const Node& node) {
  return std::ranges::all_of(environment.node_labels, [&](const auto& label) {
    const auto it = node.labels.find(label.first);
    return it != node.labels.end() && it->second == label.second;
  });
}

void check_policy_nodes(const PolicyDoc& doc, const std::vector<Node>& nodes,
                        std::vector<PolicyIssue>& issues) {
  NodeCheck(doc, nodes, issues).run();
}

}  // namespace gpuq
