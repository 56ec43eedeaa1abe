#include "tests/property/plan_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/engine/transaction.h"
#include "core/model/turn.h"
#include "core/sched/explain.h"
#include "core/sched/planner.h"
#include "tests/property/all_jobs.h"
#include "tests/property/recount.h"

namespace gpuq::property {

namespace {

/// A victim of a decision: an attempt to stop, or the booking of `job`.
struct Chosen {
  AttemptId attempt;
  JobId job;
};

std::string fault_of(const Decision& d, const std::string& what) {
  return fmt::format("decision for job {} (rule {}): {}", d.job.value, d.rule, what);
}

// The devices of `uses` have room for them; every instance gets what it needs.
std::string check_uses(const State& state, const Recount& count, const Decision& d,
                       const Want& want, bool after) {
  if (d.uses.size() != static_cast<std::size_t>(want.instances)) {
    return fault_of(d, "a part of a gang (invariant 2)");
  }
  std::map<std::pair<NodeId, std::int32_t>, std::int64_t> taken;
  std::set<std::string> domains;
  for (const InstanceUse& use : d.uses) {
    const Node& node = state.node(use.node);
    const auto label = node.labels.find(want.domain_label);
    domains.insert(label == node.labels.end() ? "" : label->second);
    if (domains.size() > 1 || (!want.domain_label.empty() && domains.contains(""))) {
      return fault_of(d, "outside of one topology domain (N2)");
    }
    if (!node.accepts_new() || node.env != count.env_of(want.share)) {
      return fault_of(d, fmt::format("node {} takes nothing new (N3)", node.name));
    }
    std::map<std::int32_t, std::int64_t> milli;
    for (const DeviceUse& part : use.devices) {
      const Device& device = node.devices.at(static_cast<std::size_t>(part.device));
      const bool match = want.model.empty() || device.model == want.model;
      if (!match || !device.usable || device.charged) return fault_of(d, "on a wrong device");
      milli[part.device] += part.milli;
      taken[{use.node, part.device}] += part.milli;
    }
    std::int64_t whole = 0;
    std::int64_t rest = 0;
    for (const auto& [device, sum] : milli) {
      if (sum == 1000) ++whole;
      if (sum != 1000) rest += sum;
    }
    if (whole != want.whole || rest != want.part || use.cpus != want.cpus ||
        use.memory_mib != want.memory_mib) {
      return fault_of(d, "an instance gets something else than it asked for");
    }
  }
  for (const auto& [key, milli] : taken) {
    if (count.device_used(key.first, key.second, after) + milli > 1000) {
      return fault_of(d, fmt::format("device {} of node {} has no room (invariant 1)", key.second,
                                     key.first.value));
    }
  }
  return {};
}

std::string check_start_decision(const State& state, const Decision& d) {
  const bool on_booking = std::string_view(d.rule) == "P7";
  const Recount count(state, {{}, {d.job}});
  const Want want = want_of(state, state.job(d.job), d.unit);
  if (want.demand != d.demand) return fault_of(d, "another demand than the job's");
  const EnvId env = count.env_of(want.share);
  for (const bool after : {false, true}) {
    const Amount held = count.held(want.share, want.unit, after) + want.demand;
    if (held > count.ceiling(want.share, want.unit)) {
      return fault_of(d, "above its share's ceiling (invariant 3)");
    }
    if (!count.within_not_preemptible_limit(want, after)) {
      return fault_of(d, "not preemptible jobs above the cap (P11)");
    }
    const Amount free = count.free(want.unit, env, after);
    if (want.demand > free - count.reserved(want.unit, env, want.share, after)) {
      return fault_of(d, "takes what a RESERVE share keeps idle (invariant 4)");
    }
    if (!on_booking && count.claim(want, after) == Claim::kNone) {
      return fault_of(d, fmt::format("has no right to it {} (Q5)", after ? "afterwards" : "now"));
    }
  }
  return check_uses(state, count, d, want, false);
}

/// Would the job fit with just these victims gone?
bool fits_without(const State& state, const Want& want, const std::vector<Chosen>& gone) {
  Without without;
  without.bookings.insert(want.job);
  bool cross = false;
  for (const Chosen& chosen : gone) {
    if (chosen.attempt.valid()) {
      without.stopped.insert(chosen.attempt);
    } else {
      without.bookings.insert(chosen.job);
    }
    cross = cross || state.job(chosen.job).share != want.share;
  }
  const Recount count(state, without);
  const Claim claim = count.claim(want, true);
  if (claim == Claim::kNone || (claim == Claim::kBorrower && cross)) return false;
  return count.fitting(want, true) >= want.instances;
}

bool is_borrowing(const Recount& count, const Chosen& chosen, ShareId share, UnitId unit) {
  const auto list = count.borrowing(share, unit);
  return std::any_of(list.begin(), list.end(), [&](const Held* held) {
    return held->job == chosen.job && held->attempt == chosen.attempt;
  });
}

/// The nodes that would hold more instances with every candidate of the means gone (P5).
std::set<NodeId> useful_nodes(const State& state, const Want& want, std::string_view rule,
                              Time time) {
  const Recount now(state, {{}, {want.job}});
  const std::int32_t priority = state.job(want.job).priority;
  const bool in_share = state.policy().share(want.share)->def.in_share_preemption;
  Without without;
  without.bookings.insert(want.job);
  const auto add = [&](const Held& held) {
    if (held.stopping || !held.preemptible || !now.on_usable_node(held)) return;
    if (held.old_enough_at > time) return;
    if (held.attempt.valid()) without.stopped.insert(held.attempt);
    if (!held.attempt.valid()) without.bookings.insert(held.job);
  };
  for (const Held& held : now.holders()) {
    if (held.share != want.share || held.unit != want.unit || rule == "P3(i)") continue;
    if (in_share && held.priority < priority) add(held);
  }
  for (const Share& share : state.policy().shares) {
    if (share.id == want.share || rule == "P3(ii)") continue;
    for (const Held* held : now.borrowing(share.id, want.unit)) add(*held);
  }
  const Recount then(state, without);
  std::set<NodeId> useful;
  for (const Node& node : state.nodes()) {
    if (then.fitting_on(want, node, true) > now.fitting_on(want, node, true)) {
      useful.insert(node.id);
    }
  }
  return useful;
}

// P1, P2, P4, P5: who may be a victim of `want`, with `before` gone already.
std::string check_victim(const State& state, const Want& want, const Chosen& chosen,
                         const std::vector<Chosen>& before, const std::set<NodeId>& useful,
                         Time time) {
  Without without;
  without.bookings.insert(want.job);
  for (const Chosen& c : before) {
    if (c.attempt.valid()) without.stopped.insert(c.attempt);
    if (!c.attempt.valid()) without.bookings.insert(c.job);
  }
  const Recount count(state, without);
  const Held* victim = nullptr;
  for (const Held& held : count.holders()) {
    if (held.job == chosen.job && held.attempt == chosen.attempt) victim = &held;
  }
  if (victim == nullptr || victim->stopping) return "its victim is gone or being stopped";
  if (!victim->preemptible) return "its victim is not preemptible (P11)";
  if (victim->old_enough_at > time) return "its victim is protected by min_runtime (P11)";
  if (victim->unit != want.unit) return "its victim holds another unit";
  if (std::none_of(victim->uses.begin(), victim->uses.end(),
                   [&](const InstanceUse& use) { return useful.contains(use.node); })) {
    return "its victim stands on no node that would hold more (P5)";
  }
  const Job& job = state.job(want.job);
  if (victim->share == want.share) {
    if (!state.policy().share(want.share)->def.in_share_preemption) {
      return "in-share preemption is DISABLED (P2)";
    }
    if (victim->priority >= job.priority) return "its victim has no lower priority (P2)";
    return {};
  }
  const Amount held = count.held(victim->share, want.unit, true);
  if (held <= count.cap(victim->share, want.unit))
    return "its victim's share is inside its cap (P1)";
  if (!is_borrowing(count, chosen, victim->share, want.unit)) {
    return "its victim is inside its share's cap (P4)";
  }
  return {};
}

// P6: no proper subset suffices, and no single other victim of such priority does instead of
// several.
std::string check_minimal(const State& state, const Decision& d, const Want& want,
                          const std::vector<Chosen>& victims, const std::set<NodeId>& useful,
                          Time time) {
  if (victims.empty() || victims.size() > 8) return {};
  const std::size_t all = (std::size_t{1} << victims.size()) - 1;
  for (std::size_t mask = 0; mask < all; ++mask) {
    std::vector<Chosen> some;
    for (std::size_t i = 0; i < victims.size(); ++i) {
      if ((mask >> i & 1) != 0) some.push_back(victims[i]);
    }
    if (fits_without(state, want, some)) {
      return fault_of(
          d, fmt::format("{} of its {} victims suffice (P6)", some.size(), victims.size()));
    }
  }
  if (victims.size() < 2) return {};
  std::int32_t highest = 0;
  for (const Chosen& c : victims) highest = std::max(highest, state.job(c.job).priority);
  const std::string_view rule = d.rule;
  const Recount count(state, {{}, {want.job}});
  for (const Held& held : count.holders()) {
    const bool own = held.share == want.share;
    if (held.priority > highest || (own && rule == "P3(i)") || (!own && rule == "P3(ii)")) continue;
    const Chosen single{held.attempt, held.job};
    if (!check_victim(state, want, single, {}, useful, time).empty()) continue;
    if (fits_without(state, want, {single})) {
      return fault_of(d, fmt::format("job {} alone would do instead of {} victims (P6)",
                                     held.job.value, victims.size()));
    }
  }
  return {};
}

/// O5: the first job of `share` in order that waits, has no booking and could ever start, when it
/// has waited long enough and fits the cap.
const Job* holding_head(const State& state, ShareId share, Time now) {
  PlanCache cache;
  const Job* head = nullptr;
  for (const Job* one : all_jobs(state)) {
    const Job& job = *one;
    if (job.state != JobState::kRunnable || job.share != share) continue;
    if (state.find_booking(job.id) != nullptr) continue;
    if (sched::why_never_cached(state, job, cache).code != ReasonCode::kNone) continue;
    if (head == nullptr || turn_of(state, job, now) < turn_of(state, *head, now)) head = &job;
  }
  if (head == nullptr) return nullptr;
  const auto limit = state.policy().share(share)->def.head_wait_limit;
  if (now - head->runnable_since < limit.value_or(std::chrono::minutes(15))) return nullptr;
  const Want want = want_of(state, *head, sched::leading_ask(state, *head).unit->id);
  return want.demand <= Recount(state).cap(share, want.unit) ? head : nullptr;
}

/// O6: the head of another share may keep nodes, which nobody makes room on.
bool others_may_keep_nodes(const State& state, ShareId share, Time now) {
  const auto& shares = state.policy().shares;
  return std::any_of(shares.begin(), shares.end(), [&](const Share& other) {
    return other.id != share && holding_head(state, other.id, now) != nullptr;
  });
}

// `state` is as it was before the bookings of `voided` ended for it.
std::string check_book_decision(const State& state, const Decision& d,
                                const std::vector<JobId>& voided, Time time) {
  const Want want = want_of(state, state.job(d.job), d.unit);
  std::vector<Chosen> victims;
  for (const JobId job : voided) victims.push_back({AttemptId(), job});
  for (const Eviction& eviction : d.evictions) victims.push_back({eviction.attempt, eviction.job});
  Without without;
  without.bookings.insert(d.job);
  for (const JobId job : voided) without.bookings.insert(job);
  for (const Eviction& eviction : d.evictions) without.stopped.insert(eviction.attempt);
  const Recount count(state, without);
  if (!count.within_not_preemptible_limit(want, true)) {
    return fault_of(d, "books not preemptible jobs above the cap (P11)");
  }
  if (std::string_view(d.rule) != "P7") {
    if (!fits_without(state, want, victims)) return fault_of(d, "books what it has no right to");
    const bool borrows = count.claim(want, true) == Claim::kBorrower;
    if (borrows != d.borrows) return fault_of(d, "says wrongly whether it borrows");
  }
  if (std::string fault = check_uses(state, count, d, want, true); !fault.empty()) return fault;
  const bool nodes_kept = others_may_keep_nodes(state, want.share, time);
  std::set<NodeId> useful = useful_nodes(state, want, d.rule, time);
  for (const Node& node : state.nodes()) {
    if (nodes_kept) useful.insert(node.id);
  }
  // Voided bookings come first in the plan, whatever the order of choice: each alone must be right.
  for (std::size_t i = 0; i < victims.size(); ++i) {
    std::vector<Chosen> before;
    if (voided.empty()) before.assign(victims.begin(), victims.begin() + static_cast<int>(i));
    const std::string fault = check_victim(state, want, victims[i], before, useful, time);
    if (!fault.empty()) return fault_of(d, fault);
  }
  for (const AttemptId awaited : d.awaits) {
    const Attempt& attempt = state.attempt(awaited);
    if (!attempt.live()) return fault_of(d, "waits for an attempt that has ended");
    if (!attempt.stopping() && !without.stopped.contains(awaited)) {
      return fault_of(d, "waits for an attempt that nobody stops");
    }
  }
  return nodes_kept ? std::string() : check_minimal(state, d, want, victims, useful, time);
}

// O5: behind a holding head nobody evicts, and nothing without a timeout takes of its units.
std::string check_behind_head(const State& state, const Decision& d, Time now) {
  const Job& job = state.job(d.job);
  const Job* head = holding_head(state, job.share, now);
  if (head == nullptr || turn_of(state, job, now) <= turn_of(state, *head, now)) return {};
  if (state.find_booking(d.job) != nullptr) return {};  // What it keeps may be what the head lacks.
  if (!d.evictions.empty()) {
    return fault_of(d, fmt::format("evicts behind job {}, which holds (O5)", head->id.value));
  }
  const bool on_booking = std::string_view(d.rule) == "P7";
  if (on_booking || state.job_class(job.cls).timeout) return {};
  const Want want = want_of(state, *head, sched::leading_ask(state, *head).unit->id);
  if (want.unit != d.unit) return {};
  const Recount count(state);
  const Amount with = count.held(job.share, d.unit, true) + want.demand + d.demand;
  if (with <= count.ceiling(job.share, d.unit)) return {};
  return fault_of(d, fmt::format("takes what job {} holds (O5)", head->id.value));
}

std::string check_decisions(const State& state, const Plan& plan, Time now,
                            const EngineConfig& config) {
  State work = state.clone();
  State base = work.clone();
  std::vector<JobId> voided;
  bool heads_known = true;  // A job whose booking is void becomes a head in the next pass.
  for (const Decision& d : plan.decisions) {
    heads_known = heads_known && d.kind != DecisionKind::kVoidBooking;
    if (voided.empty()) base = work.clone();
    std::string fault;
    const std::string_view rule = d.rule;
    if (d.kind == DecisionKind::kVoidBooking && d.handed_to.valid() && rule != "P7") {
      voided.push_back(d.job);
    } else if (d.kind == DecisionKind::kStart) {
      fault = check_start_decision(work, d);
    } else if (d.kind == DecisionKind::kBook) {
      fault = check_book_decision(base, d, voided, now);
    }
    if (d.kind == DecisionKind::kStart || d.kind == DecisionKind::kBook) voided.clear();
    if (fault.empty() && heads_known) fault = check_behind_head(work, d, now);
    if (!fault.empty()) return fault;
    Transaction tx(work, config, now);
    carry_out(tx, d);
    if (fault = Recount(work).faults(); !fault.empty()) return fault_of(d, fault);
  }
  PlanCache cache;
  const Plan again = make_plan(work, now, cache);
  if (!again.empty()) return "the pass left something to decide (P8, O3): " + to_text(again);
  return {};
}

}  // namespace

std::string check_plan(const State& state, Time now, const EngineConfig& config) {
  if (std::string fault = Recount(state).faults(); !fault.empty()) return fault;
  const State copy = state.clone();
  const Ledger before = copy.ledger();
  PlanCache cache;
  const Plan plan = make_plan(copy, now, cache);
  if (!copy.ledger().same_as(before)) return "the planner left the ledger changed";
  if (make_plan(copy, now, cache) != plan) return "a second plan differs (invariant 8)";
  const std::string text = to_text(plan);
  PlanCache fresh;
  if (to_text(make_plan(state.clone(), now, fresh)) != text) {
    return "the plan of a copy differs (invariant 8)";
  }
  auto loaded = State::from_stored(state.to_stored());
  if (!loaded) return "what is stored does not load: " + loaded.error().message;
  loaded->set_default_grace(config.default_grace);
  PlanCache third;
  const std::string other = to_text(make_plan(*loaded, now, third));
  if (other != text) {
    return fmt::format("the plan after a reload differs (invariant 8):\n{}--- not\n{}", other,
                       text);
  }
  if (std::string fault = check_decisions(state, plan, now, config); !fault.empty()) {
    return fault + "\nplan:\n" + text;
  }
  return {};
}

// J5: the limit keeps nobody back beside room, and lets no more in than it says.
std::string check_array_limits(const State& state) {
  std::map<JobId, std::int32_t> counted;
  for (const Job* job : all_jobs(state)) {
    const JobArray* array = state.array_of(job->id);
    if (array == nullptr) continue;
    counted[array->id] += is_active(job->state) || job->state == JobState::kRunnable ? 1 : 0;
  }
  for (const Job* job : all_jobs(state)) {
    if (job->state != JobState::kPending || !job->over_array_limit) continue;
    if (job->held || job->retry_at != kNoTime || !job->depends_on.empty()) continue;
    const JobArray& array = *state.array_of(job->id);
    if (counted[array.id] < array.range.limit) {
      return fmt::format("job {} waits for the limit of its array, which has room (J5)",
                         job->id.value);
    }
  }
  for (const auto& [id, array] : state.arrays()) {
    if (array.range.limit > 0 && counted[id] > array.range.limit) {
      return fmt::format("{} members of array {} count (J5)", counted[id], id.value);
    }
  }
  return {};
}

std::string check_rest(const State& state, Time now, bool plain) {
  PlanCache cache;
  const Plan plan = make_plan(state, now, cache);
  if (!plan.empty()) return "an idle engine has something to decide (invariant 9)";
  const Time later =
      plan.next_wakeup == kNever ? now + std::chrono::hours(48) : plan.next_wakeup - Duration(1);
  PlanCache fresh;
  if (later > now && !make_plan(state, later, fresh).empty()) {
    return fmt::format("time alone lets something happen before {} ms, when a pass is due",
                       to_ms(later));
  }
  if (std::string fault = check_array_limits(state); !fault.empty()) return fault;
  const Recount count(state);
  for (const Job* one : all_jobs(state)) {
    const Job& job = *one;
    const JobId id = job.id;
    if (is_terminal(job.state) || is_active(job.state)) continue;
    const Reason reason = state.reason_of(id);
    if (reason.code == ReasonCode::kNone) {
      return fmt::format("job {} waits without a reason (invariant 5)", id.value);
    }
    if (job.state != JobState::kRunnable) continue;
    if (!plain || state.find_booking(id) != nullptr || is_misconfiguration(reason.code)) continue;
    if (reason.code == ReasonCode::kHeldForHead) continue;
    const Want want = want_of(state, job, std::size_t{0});
    if (count.held(want.share, want.unit, true) + want.demand > count.cap(want.share, want.unit)) {
      continue;
    }
    for (const Share& share : state.policy().shares) {
      if (share.id == job.share) continue;
      for (const Held* held : count.borrowing(share.id, want.unit)) {
        if (!held->preemptible || !count.on_usable_node(*held)) continue;
        if (held->old_enough_at > now) continue;
        if (!fits_without(state, want, {{held->attempt, held->job}})) continue;
        return fmt::format("job {} waits while job {} borrows and could be stopped (invariant 5)",
                           id.value, held->job.value);
      }
    }
  }
  return {};
}

namespace {

bool has_ended_as_asked(const State& state, const Dependency& on) {
  const Job* other = state.find_job(on.job);
  return other != nullptr && is_met(on.condition, other->state);
}

bool has_ended_otherwise(const State& state, const Dependency& on) {
  const Job* other = state.find_job(on.job);
  return other != nullptr && is_terminal(other->state) && !is_met(on.condition, other->state);
}

// What kept `before` from RUNNABLE and keeps it no more is over.
std::string check_freed(const State& state, const Job& before) {
  const Job& job = state.job(before.id);
  const auto broken = [&](const Dependency& on) { return has_ended_otherwise(state, on); };
  if (is_terminal(job.state)) {
    const bool blamed = job.status_reason.starts_with("DEPENDENCY:");
    if (blamed == std::ranges::any_of(before.depends_on, broken)) return {};
    if (!blamed && state.find_array(job.id) != nullptr) return {};  // All members ended.
    if (!blamed && job.terminating) return {};
    return fmt::format("job {} ended for a dependency that can come true, or without one (J3)",
                       job.id.value);
  }
  const JobArray* array = state.find_array(job.id);
  if (array != nullptr && array->dropped()) return {};
  for (const Dependency& on : before.depends_on) {
    if (std::ranges::find(job.depends_on, on) != job.depends_on.end()) continue;
    if (has_ended_as_asked(state, on)) continue;
    return fmt::format("job {} depends no more on job {}, which has not ended so (J3)",
                       job.id.value, on.job.value);
  }
  if (job.retry_at != before.retry_at && state.last_time() < before.retry_at) {
    return fmt::format("the back-off of job {} ended too early (J2)", job.id.value);
  }
  return {};
}

}  // namespace

std::string History::see(const State& state) {
  for (const auto& [id, before] : pending_) {
    if (std::string fault = check_freed(state, before); !fault.empty()) return fault;
  }
  pending_.clear();
  for (const auto& [id, job] : state.jobs()) {
    if (job.state == JobState::kPending) pending_.emplace(id, job);
    for (const Dependency& on : job.depends_on) {
      if (!is_terminal(state.job(on.job).state)) continue;
      return fmt::format("job {} waits for job {}, which has ended (J3)", id.value, on.job.value);
    }
  }
  for (const auto& [id, job] : ended_) {
    const Job* found = state.find_job(id);
    if (found != nullptr && *found != job) {
      return fmt::format("job {} had ended and changed (invariant 7)", id.value);
    }
  }
  for (const auto& [id, job] : state.jobs()) {
    if (!is_terminal(job.state) || !ended_.try_emplace(id, job).second) continue;
    const bool by_limit = job.status_reason.starts_with("Terminated by JobStateTimeLimit");
    if (by_limit && job.ended_at < job.runnable_since + std::chrono::minutes(10)) {
      return fmt::format("job {} was ended before its time was up (J4)", id.value);
    }
  }
  for (const auto& [id, record] : state.preemptions()) {
    if (record.end != PreemptionEnd::kOpen) {
      const auto [it, fresh] = closed_.try_emplace(id, record);
      if (!(it->second == record)) {
        return fmt::format("preemption {} ended twice (invariant 6)", id.value);
      }
      continue;
    }
    if (closed_.contains(id)) return fmt::format("preemption {} opened again", id.value);
    const Job* job = state.find_job(record.beneficiary);
    if (job == nullptr || job->state != JobState::kRunnable) {
      return fmt::format(
          "preemption {} is open and job {}, for which it was, does not wait any "
          "more (invariant 6)",
          id.value, record.beneficiary.value);
    }
  }
  return {};
}

}  // namespace gpuq::property
