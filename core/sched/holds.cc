#include "core/sched/holds.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "core/sched/placement.h"
#include "core/sched/quota.h"

namespace gpuq::sched {

namespace {

/// From `at` on a node holds `count` instances of the head.
struct Step {
  Time at = kNoTime;
  std::size_t node = 0;
  std::int32_t count = 0;
};

/// What a node could do for the head.
struct NodeOutlook {
  Time at = kNoTime;  ///< When it holds `count`.
  std::int32_t count = 0;
  std::int64_t endless = 0;  ///< Attempts and bookings on it without a known end.
  const Node* node = nullptr;
};

bool free_earlier(const NodeOutlook& a, const NodeOutlook& b) {
  const auto key = [](const NodeOutlook& n) { return std::tuple(n.at, n.endless, -n.count); };
  return key(a) != key(b) ? key(a) < key(b) : a.node->name < b.node->name;
}

/// Finds the nodes that can be free earliest for a head (O6).
class NodeForecast {
 public:
  NodeForecast(const StateView& view, Ledger& ledger, const Ask& ask, Time now)
      : view_(view), ledger_(ledger), ask_(ask), now_(now) {
    outlook_.resize(view.nodes().size());
    for (std::size_t i = 0; i < outlook_.size(); ++i) {
      const Node& node = view.nodes()[i];
      outlook_[i].node = &node;
      if (node.env == ask.env && node.accepts_new()) add_steps(i);
    }
  }

  /// The nodes, and in `free_at` when all of them can be had; none when not even all suffice.
  std::vector<const Node*> choose(Time& free_at) {
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const Step& a, const Step& b) { return a.at < b.at; });
    std::map<std::string, std::int64_t> room;  // By domain, where one is required (N2).
    const std::string* enough = nullptr;
    for (const Step& step : steps_) {
      NodeOutlook& node = outlook_[step.node];
      const auto entry = room.try_emplace(domain(*node.node), 0).first;
      entry->second += step.count - node.count;
      node.count = step.count;
      node.at = step.at;
      free_at = step.at;
      if (entry->second < ask_.instances) continue;
      enough = &entry->first;
      break;
    }
    if (enough == nullptr) return {};
    std::erase_if(outlook_, [&](const NodeOutlook& node) {
      return node.count == 0 || domain(*node.node) != *enough;
    });
    std::sort(outlook_.begin(), outlook_.end(), free_earlier);
    std::vector<const Node*> chosen;
    std::int64_t have = 0;
    for (const NodeOutlook& node : outlook_) {
      if (have >= ask_.instances) break;
      chosen.push_back(node.node);
      have += node.count;
    }
    return chosen;
  }

 private:
  [[nodiscard]] std::string domain(const Node& node) const {
    return ask_.one_domain ? *domain_of(ask_, node) : std::string();
  }

  void add_steps(std::size_t index) {
    const Node& node = view_.nodes()[index];
    if (ask_.one_domain && domain_of(ask_, node) == nullptr) return;
    if (Ledger::fitting_empty(node, ask_.need, 1) == 0) return;
    std::vector<std::pair<Time, HoldingKey>> ends;
    for (const HoldingKey& key : ledger_.on_node(node.id)) {
      const Holding& holding = *ledger_.find(key);
      if (holding.kept_for_head) continue;
      ends.emplace_back(gone_by(view_, holding, now_), key);
      if (ends.back().first == kNever) ++outlook_[index].endless;
    }
    std::sort(ends.begin(), ends.end());
    std::int32_t count = add_step(index, kNoTime, 0);
    const std::size_t mark = ledger_.mark();
    for (const auto& [at, key] : ends) {
      ledger_.remove(key);
      count = add_step(index, at, count);
    }
    ledger_.rollback(mark);
  }

  std::int32_t add_step(std::size_t index, Time at, std::int32_t before) {
    const Node& node = view_.nodes()[index];
    const std::int32_t count = ledger_.fitting(node, ask_.need, ask_.instances, true);
    if (count > before) steps_.push_back({at, index, count});
    return count;
  }

  const StateView& view_;
  Ledger& ledger_;
  const Ask& ask_;
  Time now_;
  std::vector<NodeOutlook> outlook_;  ///< By node index, until choose() sorts it.
  std::vector<Step> steps_;
};

InstanceUse whole_node(const Node& node) {
  InstanceUse use;
  use.node = node.id;
  for (std::size_t d = 0; d < node.devices.size(); ++d) {
    use.devices.push_back({static_cast<std::int32_t>(d), 1000, AttemptId()});
  }
  use.cpus = node.cpus;
  use.memory_mib = node.memory_mib;
  return use;
}

}  // namespace

Time gone_by(const StateView& view, const Holding& holding, Time now) {
  const Job& job = view.job(holding.job);
  if (holding.stopping) {
    const Attempt& attempt = view.attempt(AttemptId(holding.key.id));
    return attempt.stopping() ? attempt.stop_at + attempt.grace : now + grace_of(view, job);
  }
  const bool runs = !holding.key.booking && holding.running_since != kNever;
  return ends_by(view, job, runs ? holding.running_since : holding.started);
}

Time ends_by(const StateView& view, const Job& job, Time running) {
  const auto& timeout = view.job_class(job.cls).timeout;
  return timeout ? running + *timeout + grace_of(view, job) : kNever;
}

Time quota_free_at(const StateView& view, Ledger& ledger, const Ask& ask, Time now) {
  const UnitId unit = ask.unit->id;
  const auto below_ceiling = [&] {
    return ledger.held(ask.share, unit, View::kNow) + ask.demand <= ledger.ceiling(ask.share, unit);
  };
  const bool own_only = !below_ceiling();
  const bool was_owner = is_owner(ledger, ask, View::kNow);
  std::vector<std::pair<Time, HoldingKey>> ends;
  for (const Share& share : view.policy().shares) {
    if (ledger.environment(share.id) != ask.env || (own_only && share.id != ask.share)) continue;
    for (const auto& [key, holding] : ledger.laid(share.id)) {
      if (holding->unit != unit || holding->kept_for_head) continue;
      const Time end = gone_by(view, *holding, now);
      if (end == kNever) return kNever;
      ends.emplace_back(end, holding->key);
    }
  }
  std::sort(ends.begin(), ends.end());
  const std::size_t mark = ledger.mark();
  Time free_at = kNever;
  for (const auto& [end, key] : ends) {
    ledger.remove(key);
    const bool owner = !was_owner && is_owner(ledger, ask, View::kNow);
    const bool suffices =
        own_only ? below_ceiling() : owner || right_in(ledger, ask, View::kNow) != Right::kNone;
    if (!suffices) continue;
    free_at = end;
    break;
  }
  ledger.rollback(mark);
  return free_at;
}

Hold demand_only(const Ask& ask, Time since, Time now) {
  Hold hold;
  hold.head = ask.job->id;
  hold.since = since;
  hold.kept = holding_for(ask, now);
  hold.kept.key = booking_key(ask.job->id);
  hold.kept.kept_for_head = true;
  return hold;
}

Hold make_hold(const StateView& view, Ledger& ledger, const Ask& ask, Time since, Time now) {
  Hold hold = demand_only(ask, since, now);
  Holding& kept = hold.kept;
  if (auto uses = place_now(view, ledger, ask)) {
    kept.uses = std::move(*uses);
    return hold;
  }
  hold.nodes_free = kNever;
  for (const Node* node : NodeForecast(view, ledger, ask, now).choose(hold.nodes_free)) {
    kept.uses.push_back(whole_node(*node));
  }
  return hold;
}

Kept::Kept(Ledger& ledger, const std::vector<const Hold*>& holds, Part part) : ledger_(ledger) {
  for (const Hold* hold : holds) {
    Holding kept = hold->kept;
    if (part == Part::kNodes) kept.demand = kZero;
    keys_.push_back(kept.key);
    ledger_.add(std::move(kept));
  }
}

Kept::~Kept() {
  for (const HoldingKey& key : keys_) ledger_.remove(key);
}

}  // namespace gpuq::sched
