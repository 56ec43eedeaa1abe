#include "core/sched/explain.h"

#include <algorithm>

#include "core/sched/placement.h"
#include "core/sched/quota.h"

namespace gpuq::sched {

namespace {

Reason base_reason(const Ledger& ledger, const Ask& ask, View view) {
  const DecisionNumbers numbers = numbers_of(ledger, ask, view);
  Reason reason;
  reason.unit = ask.unit->id;
  reason.demand = ask.demand;
  reason.held = numbers.held;
  reason.cap = numbers.cap;
  reason.ceiling = numbers.ceiling;
  reason.free = numbers.free;
  reason.reserved = numbers.reserved;
  reason.lendable = numbers.lendable;
  reason.instances_needed = ask.instances;
  return reason;
}

// The quota bound that the demand exceeds in an empty pool, or kNone.
Reason why_never_by_quota(const Ledger& ledger, const Ask& ask) {
  const UnitId unit = ask.unit->id;
  Reason reason = base_reason(ledger, ask, View::kNow);
  reason.code = ReasonCode::kQuotaManagementLimitExceeded;
  const auto exceeds = [&](Amount bound, std::uint8_t variant) {
    reason.limit = bound;
    reason.variant = variant;
    return ask.demand > bound;
  };
  const Amount whole_pool =
      std::min(ledger.limit(ask.env, unit), ledger.known_units(ask.env, unit)) -
      ledger.reserve_caps(ask.env, unit, ask.share);
  const bool owner = ask.demand <= reason.cap;
  if (!owner && !ledger.may_borrow(ask.share)) {
    if (exceeds(reason.cap, 0)) return reason;
  }
  if (!owner && !ask.cls->preemptible && exceeds(reason.cap, 4)) return reason;  // P11
  if (!owner && exceeds(reason.ceiling, 1)) return reason;
  // With no such unit on any node the missing node is the better answer.
  if (ledger.known_units(ask.env, unit) == kZero) return {};
  if (owner && exceeds(whole_pool, 3)) return reason;
  if (!owner && exceeds(std::min(whole_pool, ledger.lending_caps(ask.env, unit)), 2)) {
    return reason;
  }
  return {};
}

// P11: the jobs that fill the cap for not preemptible ones.
void name_not_preemptible(const Ledger& ledger, const Ask& ask, View v, Reason& reason) {
  reason.code = ReasonCode::kNotPreemptibleLimit;
  reason.held = ledger.held_not_preemptible(ask.share, ask.unit->id, v);
  for (const auto& [key, holding] : ledger.laid(ask.share)) {
    if (key.preemptible) break;  // They come first in P4's order.
    if (holding->unit != ask.unit->id || (v == View::kAfter && holding->stopping)) continue;
    ++reason.jobs_in_all;
    if (reason.jobs.size() < kMaxJobsNamed) reason.jobs.push_back(holding->job);
  }
}

// The quota test that `ask` fails in one view, or kNone.
Reason why_no_right(const Ledger& ledger, const Ask& ask, View v) {
  if (right_in(ledger, ask, v) != Right::kNone) return {};
  Reason reason = base_reason(ledger, ask, v);
  if (reason.held + ask.demand > reason.ceiling) {
    reason.code = ReasonCode::kShareFull;
  } else if (!within_not_preemptible_limit(ledger, ask, v)) {
    name_not_preemptible(ledger, ask, v, reason);
  } else if (is_owner(ledger, ask, v)) {
    reason.code = ReasonCode::kPoolFull;
  } else {
    reason.code = ReasonCode::kNoIdleToBorrow;
  }
  return reason;
}

}  // namespace

Reason why_never(const StateView& view, const Ask& ask) {
  const Ledger& ledger = view.scratch();
  const Amount limit = ledger.limit(ask.env, ask.unit->id);
  if (ask.demand > limit) {
    Reason reason = base_reason(ledger, ask, View::kNow);
    reason.code = ReasonCode::kServiceEnvironmentMaxResource;
    reason.limit = limit;
    return reason;
  }
  const Reason quota = why_never_by_quota(ledger, ask);
  if (quota.code != ReasonCode::kNone) return quota;
  std::int64_t fitting = 0;                  // The most, where one domain is required.
  std::map<std::string, std::int64_t> room;  // By domain; of all nodes under "".
  for (const Node& node : view.nodes()) {
    if (node.env != ask.env) continue;
    const std::string* domain = domain_of(ask, node);
    if (ask.one_domain && domain == nullptr) continue;
    std::int64_t& count = room[ask.one_domain ? *domain : std::string()];
    count += Ledger::fitting_empty(node, ask.need, ask.instances);
    fitting = std::max(fitting, count);
    if (fitting >= ask.instances) return {};
  }
  Reason reason = base_reason(ledger, ask, View::kNow);
  reason.code = ReasonCode::kNoNodeFits;
  reason.instances_fitting = static_cast<std::int32_t>(fitting);
  return reason;
}

const Reason& why_never_cached(const StateView& view, const Job& job, PlanCache& cache) {
  if (cache.topology_version != view.topology_version()) {
    cache.never_fits.clear();
    cache.topology_version = view.topology_version();
  }
  const auto [it, fresh] = cache.never_fits.try_emplace({job.share, job.cls});
  if (!fresh) return it->second;
  const std::size_t units = view.job_class(job.cls).units.size();
  for (std::size_t n = 0; n < units; ++n) {
    const Reason reason = why_never(view, make_ask(view, job, n));
    if (reason.code == ReasonCode::kNone) {
      it->second = reason;
      break;
    }
    if (n == 0) it->second = reason;
  }
  return it->second;
}

Ask leading_ask(const StateView& view, const Job& job) {
  const std::size_t units = view.job_class(job.cls).units.size();
  for (std::size_t n = 0; n < units; ++n) {
    const Ask ask = make_ask(view, job, n);
    if (units == 1 || why_never(view, ask).code == ReasonCode::kNone) return ask;
  }
  return make_ask(view, job, 0);
}

Reason why_waiting(const StateView& view, const Ask& ask) {
  const Ledger& ledger = view.scratch();
  // Of what fails now and what fails afterwards (Q6) the first in the list is shown.
  Reason reason = why_no_right(ledger, ask, View::kNow);
  const Reason after = why_no_right(ledger, ask, View::kAfter);
  if (reason.code == ReasonCode::kNone ||
      (after.code != ReasonCode::kNone && after.code < reason.code)) {
    reason = after;
  }
  if (reason.code != ReasonCode::kNone) return reason;
  reason = base_reason(ledger, ask, View::kNow);
  reason.code = ReasonCode::kNodesFragmented;
  const NodeFit fit(view, ledger, ask, true);
  if (ask.one_domain && fit.total() >= ask.instances) {
    const auto [domain, room] = fit.best_domain();
    reason.code = ReasonCode::kTopology;
    reason.domain = domain;
    reason.instances_fitting = static_cast<std::int32_t>(room);
    return reason;
  }
  reason.instances_fitting =
      static_cast<std::int32_t>(std::min<std::int64_t>(fit.total(), ask.instances));
  return reason;
}

}  // namespace gpuq::sched
