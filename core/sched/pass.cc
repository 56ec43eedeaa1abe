#include "core/sched/pass.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "core/sched/planner.h"

namespace gpuq {

Plan make_plan(const StateView& view, Time now, PlanCache& cache) {
  return sched::Pass(view, now, cache).run();
}

namespace sched {

void GroupCursor::begin() {
  next = group->jobs.begin();
  offset = 0;
  settle();
}

void GroupCursor::step() {
  if (++offset == group->span(*next)) {
    ++next;
    offset = 0;
  }
  settle();
}

void GroupCursor::settle() {
  if (at_end()) return;
  current = *next;
  current.id = JobId(current.id.value + offset);
}

Pass::Pass(const StateView& view, Time now, PlanCache& cache)
    : view_(view), ledger_(view.scratch()), now_(now), cache_(cache) {
  plan_.state_version = view.version();
}

Plan Pass::run() {
  (void)ledger_.mark();
  std::vector<const Queue*> queues;
  for (const Queue& queue : view_.policy().queues) queues.push_back(&queue);
  std::sort(queues.begin(), queues.end(), [](const Queue* a, const Queue* b) {
    return std::tuple(-a->def.priority, a->def.name) < std::tuple(-b->def.priority, b->def.name);
  });
  for (const Queue* queue : queues) {
    const Environment* env = view_.policy().environment_of(queue->id);
    if (env != nullptr) run_queue(*queue, *env);
  }
  ledger_.end_scratch();
  std::vector<Decision> kept;
  for (std::size_t i = 0; i < plan_.decisions.size(); ++i) {
    if (!taken_back_[i]) kept.push_back(std::move(plan_.decisions[i]));
  }
  plan_.decisions = std::move(kept);
  return std::move(plan_);
}

void Pass::run_queue(const Queue& queue, const Environment& env) {
  env_ = env.id;
  queue_ = queue.id;
  const SchedulingPolicy* policy = view_.policy().policy(queue.def.scheduling_policy);
  idle_order_ = policy != nullptr ? policy->def.idle_order : IdleOrder::kFifo;
  min_runtime_counts_ = false;
  shares_.clear();
  users_.clear();
  for (const Share& share : view_.policy().shares) {
    if (share.queue == queue.id) open_share(share);
  }
  if (!env.def.enabled) {
    for (ShareCursor& cursor : shares_) {
      for (const GroupCursor& group : cursor.groups) {
        Reason reason;
        reason.code = ReasonCode::kEnvironmentDisabled;
        if (group.group != nullptr)
          plan_.reasons.push_back({cursor.share->id, group.key, reason, {}});
      }
    }
    return;
  }
  settle_bookings(env.id);
  // A pass goes on until nothing more can start (O3): borrowers may pause owners of their own
  // share, and what evictions free beyond the need may serve others.
  const bool settled = plan_.decisions.empty();
  bool acted = true;
  for (bool first = true; acted; first = false) {
    clear_failures();
    find_holds();
    if (first && settled) recall_failures();
    acted = run_owners();
    acted = run_borrowers() || acted;
  }
  explain_all();
  remember_failures();
}

void Pass::open_share(const Share& share) {
  ShareCursor cursor;
  cursor.share = &share;
  min_runtime_counts_ = min_runtime_counts_ || share.def.min_runtime > Duration(0);
  const WaitingShare& waiting = view_.waiting(share.id);
  for (const auto& [key, group] : waiting.groups) {
    GroupCursor entry;
    entry.key = key;
    entry.group = &group;
    entry.begin();
    const Job& job = view_.job(entry.head().id);
    entry.usage = usage_of(share, job);
    entry.never = why_never_cached(view_, job, cache_).code != ReasonCode::kNone;
    cursor.groups.push_back(entry);
  }
  for (const WaitKey& key : waiting.booked) {
    if (!view_.bookings().at(key.id).lacking) continue;
    GroupCursor entry;
    entry.key.cls = view_.job(key.id).cls;
    entry.current = key;
    entry.usage = usage_of(share, view_.job(key.id));
    cursor.groups.push_back(entry);
  }
  shares_.push_back(std::move(cursor));
}

void Pass::clear_failures() {
  for (ShareCursor& share : shares_) {
    share.done[0] = share.done[1] = false;
    share.paused = false;
    for (GroupCursor& group : share.groups) group.failed[0] = group.failed[1] = false;
  }
}

std::vector<std::pair<ShareId, JobId>> Pass::holding_heads() const {
  std::vector<std::pair<ShareId, JobId>> heads;
  for (const ShareCursor& cursor : shares_) {
    if (cursor.hold.head) heads.emplace_back(cursor.share->id, cursor.hold.head->id);
  }
  return heads;
}

// A group whose first job failed in the last pass fails again while nothing that is held, no node
// and no policy has changed, the same heads hold capacity, and until the time that its verdict
// names: whether a job fits depends on nothing else.
void Pass::recall_failures() {
  if (cache_.holdings_version != view_.holdings_version()) {
    cache_.failed.clear();
    cache_.holding.clear();
    cache_.holdings_version = view_.holdings_version();
  }
  const auto held = cache_.holding.find(queue_);
  if (held == cache_.holding.end() || held->second != holding_heads()) return;
  for (ShareCursor& share : shares_) {
    for (GroupCursor& group : share.groups) {
      if (group.group == nullptr || group.never) continue;
      const auto found = cache_.failed.find({share.share->id, group.key});
      if (found == cache_.failed.end() || found->second.head != group.head()) continue;
      if (now_ >= found->second.verdict.until) continue;
      group.failed[0] = group.failed[1] = true;
      group.recalled = &found->second.verdict;
    }
  }
}

// Only what a pass without decisions found out holds for the next one.
void Pass::remember_failures() {
  if (!plan_.decisions.empty()) return;
  cache_.holding[queue_] = holding_heads();
  for (const ShareCursor& share : shares_) {
    for (const GroupCursor& group : share.groups) {
      if (group.group == nullptr || group.never || group.recalled != nullptr) continue;
      cache_.failed[{share.share->id, group.key}] = {group.head(), group.verdict};
    }
  }
}

void Pass::advance(GroupCursor& cursor) {
  if (cursor.group == nullptr) {
    cursor.used_up = acted_.contains(cursor.current.id);
    return;
  }
  while (!cursor.at_end() &&
         (acted_.contains(cursor.current.id) || barred_.contains(cursor.current.id))) {
    cursor.step();
  }
  cursor.used_up = cursor.at_end();
}

const WaitKey* Pass::head_of(const ShareCursor& cursor) const {
  const GroupCursor* first = nullptr;
  for (const GroupCursor& group : cursor.groups) {
    if (group.used_up || group.never || group.group == nullptr) continue;
    if (first == nullptr || group.turn() < first->turn()) first = &group;
  }
  return first == nullptr ? nullptr : &first->head();
}

std::vector<GroupCursor*> Pass::in_order(ShareCursor& cursor, Phase phase) const {
  std::vector<GroupCursor*> groups;
  for (GroupCursor& group : cursor.groups) {
    if (group.used_up || group.never || group.failed[static_cast<std::size_t>(phase)]) continue;
    groups.push_back(&group);
  }
  std::sort(groups.begin(), groups.end(),
            [](const GroupCursor* a, const GroupCursor* b) { return a->turn() < b->turn(); });
  return groups;
}

// O2 (A): lowest held/cap first, bookings in full; ties by the head's created_at, then name.
std::vector<ShareCursor*> Pass::shares_by_need() {
  count_usage();
  std::vector<ShareCursor*> order;
  for (ShareCursor& cursor : shares_) {
    if (cursor.done[0] || cursor.paused) continue;
    const std::vector<GroupCursor*> groups = in_order(cursor, Phase::kOwners);
    if (groups.empty()) continue;
    const WaitKey* head = head_of(cursor);
    if (head == nullptr) head = &groups.front()->head();
    const Ask ask = leading_ask(view_, view_.job(head->id));
    cursor.held = ledger_.held(cursor.share->id, ask.unit->id, View::kAfter);
    cursor.cap = ledger_.cap(cursor.share->id, ask.unit->id);
    cursor.head_created = head->created_at;
    order.push_back(&cursor);
  }
  std::sort(order.begin(), order.end(), [](const ShareCursor* a, const ShareCursor* b) {
    if (ratio_less(a->held, a->cap, b->held, b->cap)) return true;
    if (ratio_less(b->held, b->cap, a->held, a->cap)) return false;
    return std::tie(a->head_created, a->share->def.name) <
           std::tie(b->head_created, b->share->def.name);
  });
  return order;
}

// The first job of the share, in its order, that can act in this phase does.
bool Pass::act_in_share(ShareCursor& cursor, Phase phase) {
  count_usage();
  for (GroupCursor* group : in_order(cursor, phase)) {
    if (group->failed[static_cast<std::size_t>(phase)]) continue;
    const JobId job = group->head().id;
    switch (try_job(job, phase)) {
      case Outcome::kActed:
        acted_.insert(job);
        for (GroupCursor& each : cursor.groups) advance(each);
        renew_hold(cursor);
        return true;
      case Outcome::kPaused:
        cursor.paused = true;
        return false;
      case Outcome::kFailed:
        fail_alike(cursor, *group, phase);
        break;
    }
  }
  cursor.done[static_cast<std::size_t>(phase)] = true;
  return false;
}

bool Pass::run_owners() {
  bool acted = false;
  for (;;) {
    bool changed = false;
    for (ShareCursor* cursor : shares_by_need()) {
      changed = act_in_share(*cursor, Phase::kOwners);
      if (changed) break;  // The ranks are others now.
    }
    if (!changed) return acted;
    acted = true;
  }
}

bool BorrowRank::before(const BorrowRank& other) const {
  if (ratio_less(borrowed, cap, other.borrowed, other.cap)) return true;
  if (ratio_less(other.borrowed, other.cap, borrowed, cap)) return false;
  return std::tie(without_cap, created_at, id) <
         std::tie(other.without_cap, other.created_at, other.id);
}

BorrowRank Pass::rank_of(const WaitKey& first) {
  BorrowRank rank{kZero, Amount::units(1), kZero, first.created_at, first.id};
  if (idle_order_ == IdleOrder::kFifo) return rank;
  const Ask ask = leading_ask(view_, view_.job(first.id));
  rank.cap = ledger_.cap(ask.share, ask.unit->id);
  const Amount held = ledger_.held(ask.share, ask.unit->id, View::kAfter);
  rank.borrowed = std::max(kZero, held - rank.cap);
  if (idle_order_ != IdleOrder::kDecayedUsage) return rank;
  const UsageKey key{ask.share, UsageKind::kBorrowed, ask.unit->id, {}};
  rank.borrowed = Amount(with_advance(view_.usage(key, now_), rank.borrowed).fixed);
  if (rank.cap == kZero) rank.without_cap = rank.borrowed;
  return rank;
}

// O2 (B): over all borrowing shares, the one whose first job that can act ranks first.
bool Pass::run_borrowers() {
  bool acted = false;
  for (;;) {
    ShareCursor* best = nullptr;
    BorrowRank best_rank;
    for (ShareCursor& cursor : shares_) {
      const WaitKey* key = first_borrower(cursor);
      if (key == nullptr) continue;
      const BorrowRank rank = rank_of(*key);
      if (best != nullptr && best_rank.before(rank)) continue;
      best = &cursor;
      best_rank = rank;
    }
    if (best == nullptr) return acted;
    acted = act_in_share(*best, Phase::kBorrowers) || acted;
  }
}

// The share's first job, in its order, that can start now or make room in its own share.
const WaitKey* Pass::first_borrower(ShareCursor& cursor) {
  if (cursor.done[1]) return nullptr;
  count_usage();
  for (GroupCursor* group : in_order(cursor, Phase::kBorrowers)) {
    if (group->failed[1]) continue;
    const Job& job = view_.job(group->head().id);
    const std::optional<Holding> kept = lift_kept(job.id);
    const bool could = could_borrow(job);
    lifted_ = JobId();
    if (kept) ledger_.add(*kept);
    if (could) return &group->head();
    fail_alike(cursor, *group, Phase::kBorrowers);
  }
  cursor.done[1] = true;
  return nullptr;
}

bool Pass::could_borrow(const Job& job) {
  const std::size_t units = view_.job_class(job.cls).units.size();
  for (std::size_t n = 0; n < units; ++n) {
    const Ask ask = make_ask(view_, job, n);
    if (could_start(ask) || could_make_room(ask)) return true;
  }
  return false;
}

void Pass::explain_all() {
  count_usage();
  for (ShareCursor& cursor : shares_) {
    std::vector<GroupCursor*> groups;
    for (GroupCursor& group : cursor.groups) {
      if (group.group == nullptr) {
        const JobId job = group.current.id;
        const bool kept = ledger_.find(booking_key(job)) != nullptr;
        if (kept && !acted_.contains(job)) groups.push_back(&group);
        continue;
      }
      group.begin();
      while (!group.at_end() && acted_.contains(group.current.id)) group.step();
      if (!group.at_end()) groups.push_back(&group);
    }
    std::sort(groups.begin(), groups.end(),
              [](const GroupCursor* a, const GroupCursor* b) { return a->turn() < b->turn(); });
    std::map<ReasonCode, JobId> seen;
    Answers answers;
    for (GroupCursor* group : groups) {
      const Job& job = view_.job(group->head().id);
      plan_.next_wakeup = std::min(plan_.next_wakeup, overtakes_head_at(cursor, *group));
      Reason reason = why_never_cached(view_, job, cache_);
      if (reason.code == ReasonCode::kNone) {
        group->verdict = answer_for(cursor, *group, answers);
        reason = group->verdict.reason;
        plan_.next_wakeup = std::min(plan_.next_wakeup, group->verdict.until);
      }
      if (is_quota_or_placement(reason.code)) {
        const auto [it, first] = seen.try_emplace(reason.code, job.id);
        if (!first) {
          reason.code = ReasonCode::kBehindInShare;
          reason.other = it->second;
        }
      }
      const JobId alone = group->group == nullptr ? job.id : JobId();
      plan_.reasons.push_back({cursor.share->id, group->key, reason, alone});
    }
  }
}

// What a job kept of its booking does not stand in its own way.
WaitVerdict Pass::why_waits(const Job& job) {
  const std::size_t mark = ledger_.mark();
  (void)lift_kept(job.id);
  WaitVerdict verdict = verdict_on(job);
  lifted_ = JobId();
  ledger_.rollback(mark);
  return verdict;
}

// The reason speaks of one unit (Q9); time may help on any.
WaitVerdict Pass::verdict_on(const Job& job) {
  const Ask leading = leading_ask(view_, job);
  WaitVerdict verdict{why_waiting(view_, leading), kNever};
  const JobId head = held_for(job);
  if (head.valid()) {
    verdict.reason.code = ReasonCode::kHeldForHead;
    verdict.reason.other = head;
    verdict.until = first_old_enough(leading_ask(view_, view_.job(head)));
  }
  // Held or not: what the head leaves alone a job may evict when it is old enough.
  const bool evicts = min_runtime_counts_ && !behind_head(job);
  const std::size_t units = evicts ? leading.cls->units.size() : 0;
  for (std::size_t n = 0; n < units; ++n) {
    const Ask ask = make_ask(view_, job, n);
    const auto set = protected_victims(ask);
    if (!set) continue;
    verdict.until = std::min(verdict.until, set->first_old_enough);
    if (head.valid() || ask.unit->id != leading.unit->id) continue;
    verdict.reason.code = ReasonCode::kProtectedByMinRuntime;
    verdict.reason.victims = static_cast<std::int32_t>(set->victims.size());
    verdict.reason.when = set->first_old_enough;
  }
  return verdict;
}

}  // namespace sched
}  // namespace gpuq
