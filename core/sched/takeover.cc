#include <algorithm>
#include <map>
#include <utility>

#include "core/sched/placement.h"

namespace gpuq::sched {

namespace {

/// What a booking has on one node, pooled over its instances.
struct Booked {
  std::map<std::int32_t, std::vector<DeviceUse>> devices;  ///< Parts by device, free ones first.
  std::int64_t cpus_free = 0;
  std::int64_t memory_free = 0;
  std::vector<AwaitedHost> hosts;
  std::int64_t cpus = 0;
  std::int64_t memory_mib = 0;
};

std::int32_t milli_of(const std::vector<DeviceUse>& parts) {
  std::int32_t sum = 0;
  for (const DeviceUse& part : parts) sum += part.milli;
  return sum;
}

bool all_free(const std::vector<DeviceUse>& parts) {
  return std::none_of(parts.begin(), parts.end(),
                      [](const DeviceUse& part) { return part.awaits.valid(); });
}

Booked pool_node(const std::vector<InstanceUse>& booked, NodeId node) {
  Booked pool;
  for (const InstanceUse& use : booked) {
    if (use.node != node) continue;
    for (const DeviceUse& part : use.devices) pool.devices[part.device].push_back(part);
    pool.cpus += use.cpus;
    pool.memory_mib += use.memory_mib;
    pool.cpus_free += use.cpus;
    pool.memory_free += use.memory_mib;
    for (const AwaitedHost& host : use.awaited) {
      pool.hosts.push_back(host);
      pool.cpus_free -= host.cpus;
      pool.memory_free -= host.memory_mib;
    }
  }
  for (auto& [device, parts] : pool.devices) {
    std::stable_sort(parts.begin(), parts.end(), [](const DeviceUse& a, const DeviceUse& b) {
      return a.awaits.valid() < b.awaits.valid();
    });
  }
  return pool;
}

// Moves `milli` of the device's parts to `use`.
void move_parts(std::vector<DeviceUse>& parts, std::int32_t milli, InstanceUse& use) {
  while (milli > 0) {
    DeviceUse& part = parts.front();
    const std::int32_t taken = std::min(milli, part.milli);
    use.devices.push_back({part.device, taken, part.awaits});
    part.milli -= taken;
    milli -= taken;
    if (part.milli == 0) parts.erase(parts.begin());
  }
}

// A device with at least `milli` (exactly, for a whole one); free ones first.
std::int32_t find_device(const Booked& pool, std::int32_t milli) {
  std::int32_t found = -1;
  for (const auto& [device, parts] : pool.devices) {
    if (milli_of(parts) < milli) continue;
    if (all_free(parts)) return device;
    if (found < 0) found = device;
  }
  return found;
}

void move_host(Booked& pool, const InstanceNeed& need, InstanceUse& use) {
  use.cpus = need.cpus;
  use.memory_mib = need.memory_mib;
  std::int64_t cpus = need.cpus - std::min<std::int64_t>(need.cpus, pool.cpus_free);
  std::int64_t memory = need.memory_mib - std::min(need.memory_mib, pool.memory_free);
  pool.cpus_free -= need.cpus - cpus;
  pool.memory_free -= need.memory_mib - memory;
  for (AwaitedHost& host : pool.hosts) {
    const auto c = static_cast<std::int32_t>(std::min<std::int64_t>(cpus, host.cpus));
    const std::int64_t m = std::min(memory, host.memory_mib);
    if (c == 0 && m == 0) continue;
    use.awaited.push_back({host.attempt, c, m});
    host.cpus -= c;
    host.memory_mib -= m;
    cpus -= c;
    memory -= m;
  }
  pool.cpus -= need.cpus;
  pool.memory_mib -= need.memory_mib;
}

bool take_instance(Booked& pool, const InstanceNeed& need, NodeId node,
                   std::vector<InstanceUse>& mine) {
  if (pool.cpus < need.cpus || pool.memory_mib < need.memory_mib) return false;
  Booked trial = pool;
  InstanceUse use;
  use.node = node;
  for (std::int32_t i = 0; i < need.whole_gpus; ++i) {
    const std::int32_t device = find_device(trial, 1000);
    if (device < 0) return false;
    move_parts(trial.devices[device], 1000, use);
    trial.devices.erase(device);
  }
  if (need.fraction_milli > 0) {
    const std::int32_t device = find_device(trial, need.fraction_milli);
    if (device < 0) return false;
    move_parts(trial.devices[device], need.fraction_milli, use);
    if (trial.devices[device].empty()) trial.devices.erase(device);
  }
  move_host(trial, need, use);
  pool = std::move(trial);
  mine.push_back(std::move(use));
  return true;
}

void keep_rest(const Booked& pool, NodeId node, std::vector<InstanceUse>& rest) {
  InstanceUse use;
  use.node = node;
  for (const auto& [device, parts] : pool.devices) {
    use.devices.insert(use.devices.end(), parts.begin(), parts.end());
  }
  use.cpus = static_cast<std::int32_t>(pool.cpus);
  use.memory_mib = pool.memory_mib;
  for (const AwaitedHost& host : pool.hosts) {
    if (host.cpus > 0 || host.memory_mib > 0) use.awaited.push_back(host);
  }
  if (!use.devices.empty() || use.cpus > 0 || use.memory_mib > 0) rest.push_back(std::move(use));
}

bool in_one_domain(const StateView& view, const Ask& ask, const std::vector<InstanceUse>& uses) {
  const auto domain = [&](const InstanceUse& use) {
    return domain_of(ask, view.nodes()[view.scratch().node_index(use.node)]);
  };
  const std::string* first = domain(uses.front());
  return first != nullptr && std::ranges::all_of(uses, [&](const InstanceUse& use) {
           const std::string* other = domain(use);
           return other != nullptr && *other == *first;
         });
}

}  // namespace

std::optional<Taken> take_from_booking(const StateView& view, const Ask& ask,
                                       const std::vector<InstanceUse>& booked) {
  std::vector<NodeId> nodes;
  for (const InstanceUse& use : booked) {
    if (std::find(nodes.begin(), nodes.end(), use.node) == nodes.end()) nodes.push_back(use.node);
  }
  const auto matches = [&](NodeId node, std::int32_t device) {
    const Node& n = view.nodes()[view.scratch().node_index(node)];
    return n.devices[static_cast<std::size_t>(device)].is_model(ask.need.gpu_model);
  };
  for (const InstanceUse& use : booked) {
    for (const DeviceUse& part : use.devices) {
      if (!matches(use.node, part.device)) return std::nullopt;
    }
  }
  Taken taken;
  for (const NodeId node : nodes) {
    Booked pool = pool_node(booked, node);
    while (static_cast<std::int32_t>(taken.mine.size()) < ask.instances &&
           take_instance(pool, ask.need, node, taken.mine)) {
    }
    keep_rest(pool, node, taken.rest);
  }
  if (static_cast<std::int32_t>(taken.mine.size()) < ask.instances) return std::nullopt;
  if (ask.one_domain && !in_one_domain(view, ask, taken.mine)) return std::nullopt;
  return taken;
}

}  // namespace gpuq::sched
