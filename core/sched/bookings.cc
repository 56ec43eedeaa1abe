#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "core/sched/pass.h"
#include "core/sched/placement.h"

namespace gpuq::sched {

// P7: the rule that ends a booking without a start, or null while it stands.
const char* Pass::void_rule(const Holding& booking) const {
  const EnvId env = ledger_.environment(booking.share);
  const Amount held = ledger_.held(booking.share, booking.unit, View::kAfter);
  if (held > ledger_.ceiling(booking.share, booking.unit)) return "Q1";
  const Amount not_preemptible =
      ledger_.held_not_preemptible(booking.share, booking.unit, View::kAfter);
  const Amount cap = ledger_.cap(booking.share, booking.unit);
  if (!booking.preemptible && not_preemptible > cap) return "P11";
  const Amount free = ledger_.free(env, booking.unit, View::kAfter);
  if (free < ledger_.reserved(env, booking.unit, booking.share, View::kAfter)) return "Q4";
  for (const InstanceUse& use : booking.uses) {
    const Node& node = view_.nodes()[ledger_.node_index(use.node)];
    // A silent node may only be reconnecting: the booking waits for it until it is DOWN.
    if (node.link == NodeLink::kDown || node.admin != NodeAdmin::kOpen || !node.healthy) {
      return "N3";
    }
    if (node.env != env) return "Q8";
    for (const DeviceUse& device : use.devices) {
      const Device& d = node.devices[static_cast<std::size_t>(device.device)];
      if (!d.usable || d.charged) return "N3";
    }
  }
  return nullptr;
}

void Pass::settle_bookings(EnvId env) {
  std::vector<const Booking*> bookings;
  for (const auto& [job, booking] : view_.bookings()) {
    if (ledger_.environment(booking.share) == env) bookings.push_back(&booking);
  }
  std::sort(bookings.begin(), bookings.end(), [](const Booking* a, const Booking* b) {
    return std::tie(a->made_at, a->job) < std::tie(b->made_at, b->job);
  });
  // The latest goes first, so that a small loss of capacity voids no more than it must.
  for (auto it = bookings.rbegin(); it != bookings.rend(); ++it) {
    const JobId job = (*it)->job;
    const char* rule = void_rule(*ledger_.find(booking_key(job)));
    if (rule != nullptr) void_booking(job, rule, JobId());
  }
  for (const Booking* booking : bookings) {
    if (ledger_.find(booking_key(booking->job)) != nullptr) start_on_booking(*booking);
  }
}

// Q6 on a booking's start: like a running attempt it needs its ceiling, P11 and Q4, not idle
// capacity. A booking waits for a node that is silent (N3); nothing starts there.
bool Pass::may_start_on_booking(const Ask& ask, const std::vector<InstanceUse>& uses) const {
  for (const InstanceUse& use : uses) {
    if (!view_.nodes()[ledger_.node_index(use.node)].accepts_new()) return false;
  }
  const UnitId unit = ask.unit->id;
  for (const View v : {View::kNow, View::kAfter}) {
    if (!within_not_preemptible_limit(ledger_, ask, v)) return false;
    const Amount held = ledger_.held(ask.share, unit, v);
    if (held + ask.demand > ledger_.ceiling(ask.share, unit)) return false;
    const Amount free = ledger_.free(ask.env, unit, v);
    if (ask.demand > free - ledger_.reserved(ask.env, unit, ask.share, v)) return false;
  }
  return true;
}

void Pass::start_on_booking(const Booking& booking) {
  if (booking.lacking || !booking.victims.empty()) return;
  const Job& job = view_.job(booking.job);
  Ask ask = make_ask(view_, job, 0);
  const std::size_t units = ask.cls->units.size();
  for (std::size_t n = 1; n < units && ask.unit->id != booking.unit; ++n) {
    ask = make_ask(view_, job, n);
  }
  GPUQ_CHECK(ask.unit->id == booking.unit);
  const Holding holding = *ledger_.find(booking_key(job.id));
  ledger_.remove(holding.key);
  if (!may_start_on_booking(ask, holding.uses)) {
    ledger_.add(holding);
    return;
  }
  start(ask, holding.uses, "P7");
  started_on(holding);
  acted_.insert(job.id);
}

void Pass::void_booking(JobId job, const char* rule, JobId handed_to) {
  const Holding holding = *ledger_.find(booking_key(job));
  ledger_.remove(holding.key);
  Decision made;
  made.kind = DecisionKind::kVoidBooking;
  made.job = job;
  made.share = holding.share;
  made.unit = holding.unit;
  made.demand = holding.demand;
  made.rule = rule;
  made.handed_to = handed_to;
  add(std::move(made));
  wait_again(job);
}

// The job chooses anew, in its place in the order.
void Pass::wait_again(JobId job) {
  acted_.erase(job);
  const Job& record = view_.job(job);
  for (ShareCursor& cursor : shares_) {
    if (cursor.share->id != record.share) continue;
    cursor.done[0] = cursor.done[1] = false;
    for (GroupCursor& group : cursor.groups) {
      if (group.group == nullptr && group.current.id == job) {
        group.used_up = false;
        group.failed[0] = group.failed[1] = false;
        return;
      }
    }
    GroupCursor entry;
    entry.key.cls = record.cls;
    entry.current = wait_key(record);
    entry.usage = usage_of(*cursor.share, record);
    entry.never = why_never_cached(view_, record, cache_).code != ReasonCode::kNone;
    cursor.groups.push_back(entry);
  }
}

// P11 where `ask` takes its demand from `booking`, which may be of a not preemptible job itself.
bool Pass::may_take_over(const Ask& ask, const Holding& booking) const {
  if (ask.cls->preemptible || !booking.preemptible) return true;
  return within_not_preemptible_limit(ledger_, ask, View::kAfter);
}

// P7: a job of higher priority in the same share takes what it needs from a booking; of several,
// from that of the lowest priority, latest in the order.
bool Pass::try_takeover(const Ask& ask) {
  std::vector<const Holding*> bookings;
  const auto& holdings = ledger_.holdings();
  for (auto it = holdings.lower_bound(HoldingKey{true, 0}); it != holdings.end(); ++it) {
    const Holding& holding = it->second;
    if (holding.share != ask.share || holding.unit != ask.unit->id) continue;
    if (holding.priority >= ask.job->priority || holding.demand < ask.demand) continue;
    if (!may_take_over(ask, holding)) continue;
    bookings.push_back(&holding);
  }
  std::sort(bookings.begin(), bookings.end(), [this](const Holding* a, const Holding* b) {
    return turn_of_job(view_.job(b->job)) < turn_of_job(view_.job(a->job));
  });
  for (const Holding* found : bookings) {
    const auto taken = take_from_booking(view_, ask, found->uses);
    if (!taken) continue;
    const Holding holding = *found;
    const Amount rest = holding.demand - ask.demand;
    const JobId loser = holding.job;
    if (taken->rest.empty() || rest == kZero) {
      void_booking(loser, "P7", ask.job->id);
    } else {
      Holding kept = holding;
      kept.uses = taken->rest;
      kept.demand = rest;
      kept.victims = awaited_by(taken->rest);
      ledger_.remove(holding.key);
      Decision made;
      made.kind = DecisionKind::kShrinkBooking;
      made.job = loser;
      made.share = holding.share;
      made.unit = holding.unit;
      made.demand = rest;
      made.rule = "P7";
      made.handed_to = ask.job->id;
      made.uses = kept.uses;
      made.awaits = kept.victims;
      ledger_.add(std::move(kept));
      add(std::move(made));
      wait_again(loser);
    }
    // What waited for quota alone goes on waiting for it.
    std::vector<AttemptId> waits = awaited_by(taken->mine);
    if (waits.empty()) waits = quota_waits(ask);
    if (waits.empty() && may_start_on_booking(ask, taken->mine)) {
      start(ask, taken->mine, "P7");
    } else {
      const Right right = is_owner(ledger_, ask, View::kAfter) ? Right::kOwner : Right::kBorrower;
      book(ask, taken->mine, {}, std::move(waits), "P7", right);
    }
    return true;
  }
  return false;
}

}  // namespace gpuq::sched
