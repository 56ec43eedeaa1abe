#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/sched/pass.h"
#include "core/sched/placement.h"

namespace gpuq::sched {

namespace {

const char* rule_of(Means means) {
  switch (means) {
    case Means::kReclaim:
      return "P3(i)";
    case Means::kInShare:
      return "P3(ii)";
    case Means::kMixed:
      return "P3(iii)";
  }
  return "";
}

}  // namespace

Outcome Pass::try_job(JobId id, Phase phase) {
  const Job& job = view_.job(id);
  std::vector<Ask> asks;
  const std::size_t units = view_.job_class(job.cls).units.size();
  for (std::size_t n = 0; n < units; ++n) {
    Ask ask = make_ask(view_, job, n);
    if (units == 1 || why_never(view_, ask).code == ReasonCode::kNone) asks.push_back(ask);
  }
  // A job that lost a part of its booking chooses anew; what it kept is free for it alone (P7).
  const std::optional<Holding> kept = lift_kept(id);
  Outcome outcome = Outcome::kFailed;
  do {
    retry_ = false;
    outcome = try_asks(asks, phase);
  } while (retry_);
  lifted_ = JobId();
  if (kept && outcome != Outcome::kActed) ledger_.add(*kept);
  if (kept && outcome == Outcome::kActed) started_on(*kept);
  return outcome;
}

// If the job's latest decision is a start it may yet be taken back (O8), to this booking.
void Pass::started_on(const Holding& booking) {
  if (fresh_.empty()) return;
  const auto& [newest, decision] = *fresh_.begin();
  if (plan_.decisions[decision].job == booking.job) on_booking_.emplace(newest, booking);
}

std::optional<Holding> Pass::lift_kept(JobId id) {
  const Holding* booking = ledger_.find(booking_key(id));
  if (booking == nullptr) return std::nullopt;
  Holding kept = *booking;
  ledger_.remove(kept.key);
  lifted_ = id;
  return kept;
}

Outcome Pass::try_asks(const std::vector<Ask>& asks, Phase phase) {
  const auto any = [&asks](auto&& test) { return std::any_of(asks.begin(), asks.end(), test); };
  const bool owners = phase == Phase::kOwners;
  if (any([&](const Ask& ask) { return try_start(ask, owners); })) return Outcome::kActed;
  if (owners) {
    if (any([&](const Ask& ask) { return could_start(ask); })) return Outcome::kPaused;
    if (any([&](const Ask& ask) { return try_takeover(ask); })) return Outcome::kActed;
    if (any([&](const Ask& ask) { return try_book_stopping(ask); })) return Outcome::kActed;
  }
  if (behind_head(*asks.front().job)) return Outcome::kFailed;  // O5: it evicts nobody.
  if (any([&](const Ask& ask) { return !retry_ && try_preempt(ask, phase); })) {
    return Outcome::kActed;
  }
  return Outcome::kFailed;
}

bool Pass::try_start(const Ask& ask, bool owners_only) {
  auto uses = place_start(ask, owners_only);
  if (!uses) return false;
  start(ask, std::move(*uses), "Q5");
  return true;
}

bool Pass::could_start(const Ask& ask) { return place_start(ask, false).has_value(); }

// P3: an owner's job for which what is already being stopped suffices books that and evicts nobody.
bool Pass::try_book_stopping(const Ask& ask) {
  if (ledger_.stopping_count() == 0) return false;
  const auto owns = [&] { return right_in(ledger_, ask, View::kAfter) == Right::kOwner; };
  if (!owns() || !fits_beside_head(ask, owns)) return false;
  std::optional<std::vector<InstanceUse>> uses;
  std::vector<AttemptId> waits;
  {
    const std::vector<const Hold*> holds = holds_obeyed(*ask.job);
    const Kept kept(ledger_, holds, Kept::Part::kAll);
    if (!owns()) return false;
    uses = place_booking(view_, ledger_, ask, preferred(ask, {}));
    if (!uses) return false;
    waits = awaited_by(*uses);
    if (waits.empty()) waits = quota_waits(ask);
    // With nothing to wait for it would start at once, on what is kept.
    if (waits.empty() && !holds.empty()) return false;
  }
  book(ask, std::move(*uses), {}, std::move(waits), "P3", Right::kOwner);
  return true;
}

// Stopping attempts without which `ask` has a right to its demand now: its devices are all free,
// yet it waits (Q6). The own share's first.
std::vector<AttemptId> Pass::quota_waits(const Ask& ask) const {
  std::vector<AttemptId> waits;
  std::vector<AttemptId> others;
  for (const ShareCursor& cursor : shares_) {
    for (const auto& [key, holding] : ledger_.laid(cursor.share->id)) {
      if (!holding->stopping || holding->unit != ask.unit->id) continue;
      (cursor.share->id == ask.share ? waits : others).emplace_back(holding->key.id);
    }
  }
  waits.insert(waits.end(), others.begin(), others.end());
  const std::size_t mark = ledger_.mark();
  std::size_t n = 0;
  while (n < waits.size() && right_in(ledger_, ask, View::kNow) == Right::kNone) {
    ledger_.remove(key_of(waits[n++]));
  }
  const bool helps = right_in(ledger_, ask, View::kNow) != Right::kNone;
  ledger_.rollback(mark);
  waits.resize(helps ? n : 0);
  return waits;
}

bool Pass::has_lower_own(const Ask& ask) const {
  if (!view_.policy().share(ask.share)->def.in_share_preemption) return false;
  const auto& laid = ledger_.laid(ask.share);
  return !laid.empty() && laid.rbegin()->second->priority < ask.job->priority;
}

bool Pass::someone_is_over(const Ask& ask) const {
  return std::any_of(shares_.begin(), shares_.end(), [&](const ShareCursor& cursor) {
    const ShareId share = cursor.share->id;
    return share != ask.share &&
           ledger_.held(share, ask.unit->id, View::kAfter) > ledger_.cap(share, ask.unit->id);
  });
}

// P11: victims exist, and only min_runtime protects them. What a job can not do in phase A it may
// do in B.
// On the nodes that try_preempt() would look at.
std::optional<VictimSet> Pass::protected_victims(const Ask& ask) {
  if (!min_runtime_counts_) return std::nullopt;
  const Kept kept(ledger_, holds_obeyed(*ask.job), Kept::Part::kNodes);
  VictimSet set;
  for (const Phase phase : {Phase::kOwners, Phase::kBorrowers}) {
    if (!find_means(ask, phase, MinRuntime::kIgnored, set)) continue;
    if (set.first_old_enough != kNever) return set;
  }
  return std::nullopt;
}

Time Pass::first_old_enough(const Ask& ask) {
  const auto set = protected_victims(ask);
  return set ? set->first_old_enough : kNever;
}

bool Pass::could_make_room(const Ask& ask) {
  if (!has_lower_own(ask) || behind_head(*ask.job)) return false;
  const Kept kept(ledger_, holds_obeyed(*ask.job), Kept::Part::kNodes);
  return find_victims(view_, ledger_, ask, Means::kInShare, now_).has_value();
}

// In phase A or in phase B.
bool Pass::could_evict(const Ask& ask) const {
  VictimSet set;
  return find_means(ask, Phase::kOwners, MinRuntime::kRespected, set) ||
         find_means(ask, Phase::kBorrowers, MinRuntime::kRespected, set);
}

// P3, (i) to (iii). What would only borrow after an in-share preemption waits for phase B.
std::optional<Means> Pass::find_means(const Ask& ask, Phase phase, MinRuntime protection,
                                      VictimSet& set) const {
  const bool owners = phase == Phase::kOwners;
  const bool others_over = owners && someone_is_over(ask);
  const auto finds = [&](Means means) {
    auto found = find_victims(view_, ledger_, ask, means, now_, protection);
    if (found) set = std::move(*found);
    return found.has_value();
  };
  if (others_over && finds(Means::kReclaim)) return Means::kReclaim;
  if (!has_lower_own(ask)) return std::nullopt;
  if (finds(Means::kInShare)) {
    if (owners && set.right != Right::kOwner) return std::nullopt;
    return Means::kInShare;
  }
  if (others_over && finds(Means::kMixed)) return Means::kMixed;
  return std::nullopt;
}

bool Pass::try_preempt(const Ask& ask, Phase phase) {
  if (!has_lower_own(ask) && !(phase == Phase::kOwners && someone_is_over(ask))) return false;
  const Kept kept(ledger_, holds_obeyed(*ask.job), Kept::Part::kNodes);
  VictimSet set;
  const auto means = find_means(ask, phase, MinRuntime::kRespected, set);
  return means && carry_out(ask, set, rule_of(*means));
}

bool Pass::carry_out(const Ask& ask, const VictimSet& set, const char* rule) {
  // O8: a start of this pass is no victim, it just never happens; then the job looks again.
  for (const Victim& victim : set.victims) {
    if (!fresh_.contains(victim.key)) continue;
    take_back(victim.key);
    // A start on a booking of an earlier pass leaves the booking, which is then the victim.
    if (ledger_.find(booking_key(victim.job)) != nullptr) void_for(ask, victim);
    retry_ = true;
  }
  if (retry_) return false;
  std::vector<Eviction> evictions;
  for (const Victim& victim : set.victims) {
    if (victim.key.booking) {
      void_for(ask, victim);
    } else {
      ledger_.set_stopping(victim.key, true);
      evictions.push_back({AttemptId(victim.key.id), victim.job, victim.rule});
    }
  }
  auto uses = place_booking(view_, ledger_, ask, preferred(ask, evictions));
  GPUQ_CHECK_MSG(uses.has_value(), "a victim set was accepted that makes no place");
  std::vector<AttemptId> waits = awaited_by(*uses);
  // Where only bookings had to go there may be nothing to wait for.
  if (evictions.empty() && waits.empty() && may_start_on_booking(ask, *uses)) {
    start(ask, std::move(*uses), "P7");
  } else {
    book(ask, std::move(*uses), std::move(evictions), std::move(waits), rule, set.right);
  }
  return true;
}

void Pass::void_for(const Ask& ask, const Victim& victim) {
  const bool own = victim.rule == PreemptRule::kInShare;
  void_booking(victim.job, own ? "P2" : "P1", ask.job->id);
}

// The attempts that the job waits for anyway: their devices come first, which leaves free ones to
// others meanwhile.
std::set<AttemptId> Pass::preferred(const Ask& ask, const std::vector<Eviction>& evictions) const {
  std::set<AttemptId> attempts;
  for (const Eviction& eviction : evictions) attempts.insert(eviction.attempt);
  if (!attempts.empty() || right_in(ledger_, ask, View::kNow) != Right::kNone) return attempts;
  const auto add_from = [&](ShareId share) {
    for (const auto& [key, holding] : ledger_.laid(share)) {
      if (holding->stopping && holding->unit == ask.unit->id) {
        attempts.insert(AttemptId(holding->key.id));
      }
    }
  };
  add_from(ask.share);
  if (!attempts.empty()) return attempts;
  for (const ShareCursor& cursor : shares_) add_from(cursor.share->id);
  return attempts;
}

Decision Pass::decision(DecisionKind kind, const Ask& ask, const char* rule) const {
  Decision made;
  made.kind = kind;
  made.job = ask.job->id;
  made.share = ask.share;
  made.unit = ask.unit->id;
  made.demand = ask.demand;
  made.rule = rule;
  made.numbers = numbers_of(ledger_, ask, View::kAfter);
  made.borrows = made.numbers.held + ask.demand > made.numbers.cap;
  return made;
}

void Pass::add(Decision made) {
  ++changes_;
  plan_.decisions.push_back(std::move(made));
  taken_back_.push_back(false);
}

void Pass::start(const Ask& ask, std::vector<InstanceUse> uses, const char* rule) {
  Decision made = decision(DecisionKind::kStart, ask, rule);
  Holding holding = holding_for(ask, now_);
  holding.key = {false, -static_cast<std::int64_t>(plan_.decisions.size()) - 1};
  holding.uses = uses;
  made.uses = std::move(uses);
  fresh_.emplace(holding.key, plan_.decisions.size());
  ledger_.add(std::move(holding));
  add(std::move(made));
}

void Pass::book(const Ask& ask, std::vector<InstanceUse> uses, std::vector<Eviction> evictions,
                std::vector<AttemptId> waits, const char* rule, Right right) {
  Decision made = decision(DecisionKind::kBook, ask, rule);
  made.borrows = right == Right::kBorrower;
  std::set<AttemptId> awaits(waits.begin(), waits.end());
  for (const Eviction& eviction : evictions) awaits.insert(eviction.attempt);
  made.awaits.assign(awaits.begin(), awaits.end());
  Holding holding = holding_for(ask, now_);
  holding.key = booking_key(ask.job->id);
  holding.uses = uses;
  holding.victims = made.awaits;
  made.uses = std::move(uses);
  made.evictions = std::move(evictions);
  ledger_.add(std::move(holding));
  add(std::move(made));
}

void Pass::take_back(HoldingKey fresh) {
  const auto it = fresh_.find(fresh);
  GPUQ_CHECK(it != fresh_.end());
  const JobId job = plan_.decisions[it->second].job;
  taken_back_[it->second] = true;
  ++changes_;
  ledger_.remove(fresh);
  fresh_.erase(it);
  acted_.erase(job);
  if (const auto booked = on_booking_.extract(fresh)) {
    ledger_.add(booked.mapped());
  } else {
    barred_.insert(job);
  }
}

}  // namespace gpuq::sched
