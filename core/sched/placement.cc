#include "core/sched/placement.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/base/check.h"

namespace gpuq::sched {

namespace {

/// Capacity that a stopping attempt will free and nobody has booked yet.
struct Source {
  AttemptId attempt;
  bool preferred = false;
  std::int64_t amount = 0;  ///< Milli of a device, or CPUs.
  std::int64_t memory_mib = 0;
};

/// One node while instances are being put on it.
struct Draft {
  const Node* node = nullptr;
  std::vector<std::int32_t> free;            ///< Milli by device that the ask may take.
  std::vector<std::int32_t> free_now;        ///< Of that, what needs no waiting.
  std::vector<std::vector<Source>> sources;  ///< By device.
  std::int64_t cpus_now = 0;
  std::int64_t memory_now = 0;
  std::vector<Source> hosts;
};

Draft make_draft(const Ledger& ledger, const Node& node, const InstanceNeed& need, bool also_now) {
  Draft draft;
  draft.node = &node;
  const NodeLoad& load = ledger.load(node.id);
  for (std::size_t d = 0; d < node.devices.size(); ++d) {
    const bool match = node.devices[d].is_model(need.gpu_model);
    const auto device = static_cast<std::int32_t>(d);
    const std::int32_t free = match ? ledger.device_free(node, device, also_now) : 0;
    draft.free.push_back(std::max(0, free));
    draft.free_now.push_back(std::clamp(1000 - load.devices[d].used[0], 0, draft.free.back()));
  }
  draft.sources.resize(node.devices.size());
  draft.cpus_now = std::max<std::int64_t>(0, node.cpus - load.cpus[0]);
  draft.memory_now = std::max<std::int64_t>(0, node.memory_mib - load.memory_mib[0]);
  return draft;
}

// Finds what the node's stopping attempts will free, less what bookings already wait for.
void add_sources(Draft& draft, const Ledger& ledger, const std::set<AttemptId>& prefer) {
  const NodeId node = draft.node->id;
  std::map<AttemptId, Source> hosts;
  std::vector<std::map<AttemptId, Source>> devices(draft.node->devices.size());
  for (const HoldingKey& key : ledger.on_node(node)) {
    const Holding& holding = *ledger.find(key);
    if (!key.booking && !holding.stopping) continue;
    for (const InstanceUse& use : holding.uses) {
      if (use.node != node) continue;
      for (const DeviceUse& device : use.devices) {
        const AttemptId from = key.booking ? device.awaits : AttemptId(key.id);
        if (!from.valid()) continue;
        devices[static_cast<std::size_t>(device.device)][from].amount +=
            key.booking ? -device.milli : device.milli;
      }
      if (key.booking) {
        for (const AwaitedHost& host : use.awaited) {
          hosts[host.attempt].amount -= host.cpus;
          hosts[host.attempt].memory_mib -= host.memory_mib;
        }
      } else {
        hosts[AttemptId(key.id)].amount += use.cpus;
        hosts[AttemptId(key.id)].memory_mib += use.memory_mib;
      }
    }
  }
  const auto flatten = [&prefer](std::map<AttemptId, Source>& from, std::vector<Source>& to) {
    for (auto& [attempt, source] : from) {
      source.attempt = attempt;
      source.preferred = prefer.contains(attempt);
      to.push_back(source);
    }
    std::stable_sort(to.begin(), to.end(),
                     [](const Source& a, const Source& b) { return a.preferred > b.preferred; });
  };
  for (std::size_t d = 0; d < devices.size(); ++d) flatten(devices[d], draft.sources[d]);
  flatten(hosts, draft.hosts);
}

// 0: waits for a preferred attempt; 1: free now; 2: waits for another attempt.
std::int32_t rank(const Draft& draft, std::size_t device) {
  for (const Source& source : draft.sources[device]) {
    if (source.preferred && source.amount > 0) return 0;
  }
  return draft.free_now[device] == draft.free[device] ? 1 : 2;
}

// `count` whole devices: best rank first, then as close together as can be.
std::vector<std::size_t> pick_whole(const Draft& draft, std::int32_t count) {
  std::vector<std::pair<std::int32_t, std::size_t>> whole;
  for (std::size_t d = 0; d < draft.free.size(); ++d) {
    if (draft.free[d] == 1000) whole.emplace_back(rank(draft, d), d);
  }
  const auto n = static_cast<std::size_t>(count);
  GPUQ_CHECK(whole.size() >= n);
  std::sort(whole.begin(), whole.end());
  std::size_t first = 0;
  if (whole.front().first == whole.back().first) {
    std::size_t best_span = std::numeric_limits<std::size_t>::max();
    for (std::size_t i = 0; n > 0 && i + n <= whole.size(); ++i) {
      const std::size_t span = whole[i + n - 1].second - whole[i].second;
      if (span < best_span) {
        best_span = span;
        first = i;
      }
    }
  }
  std::vector<std::size_t> picked;
  for (std::size_t i = 0; i < n; ++i) picked.push_back(whole[first + i].second);
  return picked;
}

// N2: the fullest started device on which the part fits, else a fresh one; npos when there is none.
std::size_t pick_part(const Draft& draft, std::int32_t milli) {
  std::size_t best = std::string::npos;
  for (std::size_t d = 0; d < draft.free.size(); ++d) {
    if (draft.free[d] < milli) continue;
    if (best == std::string::npos || draft.free[d] < draft.free[best] ||
        (draft.free[d] == draft.free[best] && rank(draft, d) < rank(draft, best))) {
      best = d;
    }
  }
  return best;
}

void take_device(Draft& draft, std::size_t d, std::int32_t milli, InstanceUse& use) {
  const auto device = static_cast<std::int32_t>(d);
  std::int32_t left = milli;
  const auto from_sources = [&](bool preferred) {
    for (Source& source : draft.sources[d]) {
      if (source.preferred != preferred || source.amount <= 0 || left == 0) continue;
      const auto part = static_cast<std::int32_t>(std::min<std::int64_t>(left, source.amount));
      use.devices.push_back({device, part, source.attempt});
      source.amount -= part;
      left -= part;
    }
  };
  from_sources(true);
  const std::int32_t now = std::min(left, draft.free_now[d]);
  if (now > 0) use.devices.push_back({device, now, AttemptId()});
  draft.free_now[d] -= now;
  left -= now;
  from_sources(false);
  GPUQ_CHECK(left == 0);
  draft.free[d] -= milli;
  draft.free_now[d] = std::min(draft.free_now[d], draft.free[d]);
}

void take_host(Draft& draft, const InstanceNeed& need, InstanceUse& use) {
  use.cpus = need.cpus;
  use.memory_mib = need.memory_mib;
  std::int64_t cpus = need.cpus - std::min<std::int64_t>(need.cpus, draft.cpus_now);
  std::int64_t memory = need.memory_mib - std::min(need.memory_mib, draft.memory_now);
  draft.cpus_now -= need.cpus - cpus;
  draft.memory_now -= need.memory_mib - memory;
  for (Source& source : draft.hosts) {
    if (cpus == 0 && memory == 0) break;
    const std::int64_t c = std::min(cpus, std::max<std::int64_t>(0, source.amount));
    const std::int64_t m = std::min(memory, std::max<std::int64_t>(0, source.memory_mib));
    if (c == 0 && m == 0) continue;
    use.awaited.push_back({source.attempt, static_cast<std::int32_t>(c), m});
    source.amount -= c;
    source.memory_mib -= m;
    cpus -= c;
    memory -= m;
  }
}

InstanceUse take_instance(Draft& draft, const InstanceNeed& need) {
  InstanceUse use;
  use.node = draft.node->id;
  if (need.whole_gpus > 0) {
    for (const std::size_t d : pick_whole(draft, need.whole_gpus)) {
      take_device(draft, d, 1000, use);
    }
  }
  if (need.fraction_milli > 0) {
    const std::size_t d = pick_part(draft, need.fraction_milli);
    GPUQ_CHECK(d != std::string::npos);
    take_device(draft, d, need.fraction_milli, use);
  }
  take_host(draft, need, use);
  return use;
}

/// A node that holds at least one instance.
struct Spot {
  bool avoided = false;       ///< N4
  std::int64_t fullness = 0;  ///< Smaller = fuller.
  const Node* node = nullptr;
  std::int32_t count = 0;
};

bool fuller(const Spot& a, const Spot& b) {
  if (a.avoided != b.avoided) return b.avoided;
  if (a.fullness != b.fullness) return a.fullness < b.fullness;
  return a.node->name < b.node->name;
}

std::int64_t fullness(const Ledger& ledger, const Node& node, const InstanceNeed& need,
                      bool also_now) {
  if (!need.wants_gpus()) {
    // CPU work goes to nodes without GPUs first, so that it does not strand devices.
    const std::int64_t away_from_gpus = node.devices.empty() ? 0 : std::int64_t{1} << 40;
    return away_from_gpus + node.cpus - ledger.load(node.id).cpus[also_now ? 0 : 1];
  }
  // A fraction goes where a started device has room, the fullest such of any node.
  if (need.whole_gpus == 0) {
    std::int64_t best = std::int64_t{1} << 40;
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      if (!node.devices[d].is_model(need.gpu_model)) continue;
      const std::int32_t free = ledger.device_free(node, static_cast<std::int32_t>(d), also_now);
      if (free < 1000 && free >= need.fraction_milli) best = std::min<std::int64_t>(best, free);
    }
    if (best < 1000) return best - (std::int64_t{1} << 40);
  }
  return ledger.free_gpu_milli(node, need.gpu_model, also_now);
}

bool may_fit(const Ledger& ledger, const Ask& ask, bool also_now) {
  return ledger.free_gpu_bound(ask.env, also_now) >= ask.need.gpu_milli() * ask.instances;
}

// N2: the smallest domain that holds the gang, by name among equals; without one, all nodes, or
// none where one domain is required.
void keep_one_domain(std::vector<Spot>& spots, const Ask& ask) {
  if (ask.topology_label == nullptr) return;
  std::map<std::string, std::int64_t> room;
  for (const Spot& spot : spots) {
    if (const std::string* domain = domain_of(ask, *spot.node)) room[*domain] += spot.count;
  }
  const std::string* best = nullptr;
  for (const auto& [domain, count] : room) {
    if (count < ask.instances) continue;
    if (best == nullptr || count < room.at(*best)) best = &domain;
  }
  if (best == nullptr && ask.one_domain) spots.clear();
  if (best == nullptr) return;
  std::erase_if(spots, [&](const Spot& spot) {
    const std::string* domain = domain_of(ask, *spot.node);
    return domain == nullptr || *domain != *best;
  });
}

std::vector<Spot> find_spots(const StateView& view, const Ledger& ledger, const Ask& ask,
                             bool also_now) {
  std::vector<Spot> spots;
  if (!may_fit(ledger, ask, also_now)) return spots;
  for (const Node& node : view.nodes()) {
    if (node.env != ask.env || !node.accepts_new()) continue;
    const std::int32_t count = ledger.fitting(node, ask.need, ask.instances, also_now);
    if (count == 0) continue;
    const bool avoided = std::ranges::binary_search(ask.avoided, node.id);
    spots.push_back({avoided, fullness(ledger, node, ask.need, also_now), &node, count});
  }
  keep_one_domain(spots, ask);
  if (ask.instances == 1 && !spots.empty()) {
    std::swap(spots.front(), *std::min_element(spots.begin(), spots.end(), fuller));
  } else {
    std::sort(spots.begin(), spots.end(), fuller);
  }
  return spots;
}

std::optional<std::vector<InstanceUse>> place(const StateView& view, const Ledger& ledger,
                                              const Ask& ask, bool also_now,
                                              const std::set<AttemptId>& prefer) {
  const std::vector<Spot> spots = find_spots(view, ledger, ask, also_now);
  std::int64_t total = 0;
  for (const Spot& spot : spots) total += spot.count;
  if (total < ask.instances) return std::nullopt;
  std::vector<InstanceUse> uses;
  for (const Spot& spot : spots) {
    Draft draft = make_draft(ledger, *spot.node, ask.need, also_now);
    if (!also_now) add_sources(draft, ledger, prefer);
    for (std::int32_t i = 0; i < spot.count; ++i) {
      if (static_cast<std::int32_t>(uses.size()) == ask.instances) return uses;
      uses.push_back(take_instance(draft, ask.need));
    }
  }
  GPUQ_CHECK(static_cast<std::int32_t>(uses.size()) == ask.instances);
  return uses;
}

}  // namespace

NodeFit::NodeFit(const StateView& view, const Ledger& ledger, const Ask& ask, bool also_now)
    : view_(view), ledger_(ledger), ask_(ask), also_now_(also_now) {
  counts_.assign(view.nodes().size(), 0);
  for (std::size_t i = 0; i < counts_.size(); ++i) recount(i);
}

void NodeFit::recount(std::size_t index) {
  const Node& node = view_.nodes()[index];
  if (node.env != ask_.env || !node.accepts_new()) return;
  const std::int32_t before = counts_[index];
  counts_[index] = ledger_.fitting(node, ask_.need, kMaxInstances, also_now_);
  total_ += counts_[index] - before;
  if (!ask_.one_domain) return;
  if (const std::string* domain = domain_of(ask_, node)) {
    domains_[*domain] += counts_[index] - before;
  }
}

bool NodeFit::fits() const {
  if (!ask_.one_domain) return total_ >= ask_.instances;
  return std::ranges::any_of(domains_,
                             [&](const auto& entry) { return entry.second >= ask_.instances; });
}

std::pair<std::string, std::int64_t> NodeFit::best_domain() const {
  std::pair<std::string, std::int64_t> best{"", 0};
  for (const auto& [domain, count] : domains_) {
    if (count > best.second) best = {domain, count};
  }
  return best;
}

void NodeFit::refresh(const std::vector<InstanceUse>& uses) {
  for (const InstanceUse& use : uses) recount(ledger_.node_index(use.node));
}

bool NodeFit::usable(NodeId node) const {
  const Node& n = view_.nodes()[ledger_.node_index(node)];
  return n.env == ask_.env && n.accepts_new();
}

std::optional<std::vector<InstanceUse>> place_now(const StateView& view, const Ledger& ledger,
                                                  const Ask& ask) {
  return place(view, ledger, ask, true, {});
}

std::optional<std::vector<InstanceUse>> place_booking(const StateView& view, const Ledger& ledger,
                                                      const Ask& ask,
                                                      const std::set<AttemptId>& prefer) {
  return place(view, ledger, ask, false, prefer);
}

std::vector<AttemptId> awaited_by(const std::vector<InstanceUse>& uses) {
  std::set<AttemptId> attempts;
  for (const InstanceUse& use : uses) {
    for (const DeviceUse& device : use.devices) {
      if (device.awaits.valid()) attempts.insert(device.awaits);
    }
    for (const AwaitedHost& host : use.awaited) attempts.insert(host.attempt);
  }
  return {attempts.begin(), attempts.end()};
}

}  // namespace gpuq::sched
