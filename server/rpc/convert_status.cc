// The pool at a glance: fill_status of convert_node.h.
#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "server/rpc/convert_job.h"
#include "server/rpc/convert_node.h"

namespace gpuq::rpc {

namespace {

// Counts over jobs and attempts that every share's figures are made of.
struct Counts {
  std::map<ShareId, std::int64_t> active_jobs;
  std::map<std::pair<ShareId, UnitId>, std::int64_t> stopping_milli, booked_milli, waiting_milli;
};

Counts count(const State& state) {
  Counts counts;
  for (const AttemptId id : state.live_attempts()) {
    const Attempt& attempt = state.attempt(id);
    ++counts.active_jobs[attempt.share];
    if (attempt.stopping()) {
      counts.stopping_milli[{attempt.share, attempt.unit}] += attempt.demand.milli;
    }
  }
  for (const auto& [job, booking] : state.bookings()) {
    counts.booked_milli[{booking.share, booking.unit}] += booking.demand.milli;
  }
  for (const Share& share : state.policy().shares) {
    const WaitingShare& waiting = state.waiting(share.id);
    for (const auto& [key, group] : waiting.groups) {
      const JobClass& cls = state.job_class(key.cls);
      const UnitRequest& first = cls.units.front();
      counts.waiting_milli[{share.id, first.unit}] +=
          first.count.milli * cls.instances * static_cast<std::int64_t>(group.jobs.size());
    }
  }
  for (const auto& [job, booking] : state.bookings()) {
    counts.waiting_milli[{booking.share, booking.unit}] += booking.demand.milli;
  }
  return counts;
}

std::int64_t bounded(Amount amount) { return amount >= kUnlimited ? -1 : amount.milli; }

class StatusWriter {
 public:
  StatusWriter(const State& state, const Queue* only, Time now)
      : state_(state), only_(only), now_(now), counts_(count(state)) {}

  void write(v1::ClusterStatus& out) const {
    for (const Environment& environment : state_.policy().environments) {
      for (const Unit& unit : state_.policy().units) write_unit(environment, unit, out);
    }
    for (const Queue& queue : state_.policy().queues) {
      if (only_ != nullptr && queue.id != only_->id) continue;
      v1::QueueCounts& shown = *out.add_queues();
      shown.set_job_queue(queue.def.name);
      shown.set_state(queue.def.enabled ? v1::ADMIN_STATE_ENABLED : v1::ADMIN_STATE_DISABLED);
      for (const Share& share : state_.policy().shares) {
        if (share.queue != queue.id) continue;
        shown.set_waiting_jobs(shown.waiting_jobs() + state_.waiting(share.id).count);
        shown.set_active_jobs(shown.active_jobs() + active(share.id));
      }
    }
    write_nodes(*out.mutable_nodes());
  }

 private:
  [[nodiscard]] std::int64_t active(ShareId share) const {
    const auto it = counts_.active_jobs.find(share);
    return it == counts_.active_jobs.end() ? 0 : it->second;
  }

  static std::int64_t get(const std::map<std::pair<ShareId, UnitId>, std::int64_t>& map,
                          ShareId share, UnitId unit) {
    const auto it = map.find({share, unit});
    return it == map.end() ? 0 : it->second;
  }

  // Shares of queues on the environment that own, hold or want some of the unit.
  [[nodiscard]] std::vector<const Share*> shares_of(const Environment& environment,
                                                    const Unit& unit) const {
    std::vector<const Share*> shares;
    for (const Share& share : state_.policy().shares) {
      if (only_ != nullptr && share.queue != only_->id) continue;
      const Environment* its = state_.policy().environment_of(share.queue);
      if (its == nullptr || its->id != environment.id) continue;
      const Ledger& ledger = state_.ledger();
      if (ledger.cap(share.id, unit.id) > kZero ||
          ledger.held(share.id, unit.id, View::kNow) > kZero ||
          get(counts_.waiting_milli, share.id, unit.id) > 0) {
        shares.push_back(&share);
      }
    }
    const auto key = [&](const Share* share) {
      const Queue* queue = state_.policy().queue(share->queue);
      return std::make_pair(queue == nullptr ? "" : queue->def.name, share->def.name);
    };
    std::ranges::sort(shares, {}, key);
    return shares;
  }

  void write_unit(const Environment& environment, const Unit& unit, v1::ClusterStatus& out) const {
    const Ledger& ledger = state_.ledger();
    const auto shares = shares_of(environment, unit);
    const Amount pool = ledger.pool(environment.id, unit.id);
    if (shares.empty() && pool == kZero) return;
    v1::UnitUsage& shown = *out.add_units();
    shown.set_service_environment(environment.def.name);
    shown.set_state(environment.def.enabled ? v1::ADMIN_STATE_ENABLED : v1::ADMIN_STATE_DISABLED);
    shown.set_capacity_unit(unit.def.name);
    shown.set_capacity_milli(pool.milli);
    shown.set_limit_milli(bounded(ledger.limit(environment.id, unit.id)));
    const Amount free = ledger.free(environment.id, unit.id, View::kNow);
    shown.set_free_milli(free.milli);
    shown.set_held_milli((pool - free).milli);
    std::int64_t borrowed = 0;
    Amount owned;
    for (const Share* share : shares) {
      borrowed += write_share(*share, unit, pool, *shown.add_shares());
      owned += std::min(ledger.cap(share->id, unit.id), kUnlimited - owned);
    }
    shown.set_unallocated_milli(std::max(kZero, pool - owned).milli);
    spread_lent(borrowed, shown);
  }

  std::int64_t write_share(const Share& share, const Unit& unit, Amount pool,
                           v1::ShareUsage& out) const {
    const Ledger& ledger = state_.ledger();
    // A share without a limit of its own (the built-in one) may have all there is.
    const Amount limit = ledger.cap(share.id, unit.id);
    const Amount cap = limit >= kUnlimited ? pool : limit;
    const Amount held = ledger.held(share.id, unit.id, View::kNow);
    out.set_quota_share_name(share.def.name);
    const Queue* queue = state_.policy().queue(share.queue);
    if (queue != nullptr) out.set_job_queue(queue->def.name);
    out.set_state(share.def.enabled ? v1::ADMIN_STATE_ENABLED : v1::ADMIN_STATE_DISABLED);
    out.mutable_strategy()->set_strategy(to_string(share.def.strategy));
    out.mutable_strategy()->set_borrow_limit(share.def.borrow_limit);
    out.set_capacity_unit(unit.def.name);
    out.set_cap_milli(cap.milli);
    out.set_ceiling_milli(bounded(ledger.ceiling(share.id, unit.id)));
    out.set_held_milli(held.milli);
    const std::int64_t borrowed = std::max(kZero, held - cap).milli;
    out.set_borrowed_milli(borrowed);
    out.set_idle_milli(std::max(kZero, cap - held).milli);
    out.set_stopping_milli(get(counts_.stopping_milli, share.id, unit.id));
    out.set_booked_milli(get(counts_.booked_milli, share.id, unit.id));
    out.set_waiting_jobs(state_.waiting(share.id).count);
    out.set_active_jobs(active(share.id));
    out.set_waiting_milli(get(counts_.waiting_milli, share.id, unit.id));
    if (state_.usage().counts(share.id, UsageKind::kBorrowed)) {
      const UsageKey key{share.id, UsageKind::kBorrowed, unit.id, {}};
      out.set_borrowed_usage_milli(to_amount(state_.usage(key, now_)).milli);
    }
    write_users(share, unit, out);
    return borrowed;
  }

  void write_users(const Share& share, const Unit& unit, v1::ShareUsage& out) const {
    for (const auto& [key, record] : state_.usage().records()) {
      if (key.share != share.id || key.kind != UsageKind::kUser || key.unit != unit.id) continue;
      v1::UserUsage& shown = *out.add_users();
      shown.set_user(key.name);
      shown.set_held_milli(record.held.milli);
      shown.set_usage_milli(to_amount(state_.usage(key, now_)).milli);
    }
  }

  // What is borrowed is lent by the lending shares with idle capacity, shown in their order: which
  // of them a borrowed unit comes from is not a fact of the rules, only the sum is.
  static void spread_lent(std::int64_t borrowed, v1::UnitUsage& unit) {
    for (v1::ShareUsage& share : *unit.mutable_shares()) {
      if (share.strategy().strategy() == to_string(SharingStrategy::kReserve)) continue;
      const std::int64_t lent = std::min(borrowed, share.idle_milli());
      share.set_lent_milli(lent);
      share.set_idle_milli(share.idle_milli() - lent);
      borrowed -= lent;
    }
  }

  void write_nodes(v1::NodeCounts& out) const {
    for (const Node& node : state_.nodes()) {
      out.set_total(out.total() + 1);
      if (node.link == NodeLink::kUp) out.set_up(out.up() + 1);
      if (node.link == NodeLink::kUnreachable) out.set_unreachable(out.unreachable() + 1);
      if (node.link == NodeLink::kDown) out.set_down(out.down() + 1);
      if (node.admin != NodeAdmin::kOpen) out.set_cordoned(out.cordoned() + 1);
      if (!node.healthy) out.set_unhealthy(out.unhealthy() + 1);
    }
  }

  const State& state_;
  const Queue* only_;
  const Time now_;
  const Counts counts_;
};

}  // namespace

Result<> fill_status(const State& state, const std::string& queue, Time now,
                     v1::ClusterStatus& out) {
  const Queue* only = nullptr;
  if (!queue.empty()) {
    only = state.policy().queue(queue);
    if (only == nullptr) {
      return Error{ErrorCode::kNotFound, "there is no queue " + quote(queue)};
    }
  }
  out.set_at_ms(to_ms(now));
  StatusWriter(state, only, now).write(out);
  return {};
}

}  // namespace gpuq::rpc
