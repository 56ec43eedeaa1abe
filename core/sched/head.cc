// The pass and the heads that hold capacity (O5, O6): who is one, and who obeys.
#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "core/sched/pass.h"
#include "core/sched/placement.h"

namespace gpuq::sched {

// O5: the head of the share, once it has waited long enough; only one that fits the share's cap.
std::optional<WaitKey> Pass::holding_head(const ShareCursor& cursor) {
  const WaitKey* head = head_of(cursor);
  if (head == nullptr) return std::nullopt;
  const Job& job = view_.job(head->id);
  const Ask ask = leading_ask(view_, job);
  if (ask.demand > ledger_.cap(cursor.share->id, ask.unit->id)) return std::nullopt;
  const Time since = holds_since(cursor, job);
  if (since > now_) {
    plan_.next_wakeup = std::min(plan_.next_wakeup, since);
    return std::nullopt;
  }
  return *head;
}

Time Pass::holds_since(const ShareCursor& cursor, const Job& head) {
  return head.runnable_since + cursor.share->def.head_wait_limit.value_or(kDefaultHeadWaitLimit);
}

void Pass::find_holds() {
  for (ShareCursor& cursor : shares_) renew_hold(cursor);
}

// Also after an act in the share, when another job may be its head.
void Pass::renew_hold(ShareCursor& cursor) {
  cursor.hold = {};
  cursor.hold.head = holding_head(cursor);
  holds_known_ = holds_known_ && !cursor.hold.head;
}

// O6, only once somebody could start: a pass that starts nothing forecasts nothing.
void Pass::learn_holds() {
  if (holds_known_) return;
  holds_known_ = true;
  std::vector<ShareCursor*> heads;
  for (ShareCursor& cursor : shares_) {
    if (cursor.hold.head && !cursor.hold.known) heads.push_back(&cursor);
  }
  std::sort(heads.begin(), heads.end(), [this](const ShareCursor* a, const ShareCursor* b) {
    return std::tuple(holds_since(*a, view_.job(a->hold.head->id)), a->hold.head->id) <
           std::tuple(holds_since(*b, view_.job(b->hold.head->id)), b->hold.head->id);
  });
  for (ShareCursor* cursor : heads) {
    cursor->hold.known = true;
    hold_for_all(*cursor);
  }
}

// O6: an owner's job that fits its quota and lacks nodes keeps them from all shares; a gang also in
// the pass in which it can start, or others would take a node before its turn comes.
void Pass::hold_for_all(ShareCursor& cursor) {
  const Job& job = view_.job(cursor.hold.head->id);
  const Ask ask = leading_ask(view_, job);
  const Time since = holds_since(cursor, job);
  if (!owns_without_passers(ask, since, kNever)) return;
  const Kept kept(ledger_, holds_obeyed(job), Kept::Part::kAll);
  Hold hold = make_hold(view_, ledger_, ask, since, now_);
  if (hold.kept.uses.empty() || !owns_without_passers(ask, since, hold.nodes_free)) return;
  if (hold.nodes_free == kNoTime && ask.instances == 1) return;
  hold.lacks_nodes_only = true;
  cursor.hold.for_all = std::move(hold);
}

// Whether a head that holds since `since` has the right to its demand, as an owner's job, without
// the jobs that passed it since then and are out before `until`: what they use is lent by the head.
bool Pass::owns_without_passers(const Ask& ask, Time since, Time until) {
  if (owns_twice(ledger_, ask)) return true;
  if (until == kNoTime) return false;
  const std::size_t mark = ledger_.mark();
  for (const ShareCursor& cursor : shares_) {
    std::vector<HoldingKey> passers;
    for (const auto& [key, holding] : ledger_.laid(cursor.share->id)) {
      if (holding->unit != ask.unit->id || holding->started < since) continue;
      if (holding->key.booking || gone_by(view_, *holding, now_) >= until) continue;
      passers.push_back(holding->key);
    }
    for (const HoldingKey& key : passers) ledger_.remove(key);
  }
  const bool owns = owns_twice(ledger_, ask);
  ledger_.rollback(mark);
  return owns;
}

// What `job` must leave alone: the hold of its own share's head, when it comes after it, and those
// that bind all shares. Of two heads that keep nodes from all the older hold goes first.
std::vector<const Hold*> Pass::holds_obeyed(const Job& job) {
  learn_holds();
  std::vector<const Hold*> obeyed;
  const Hold* mine = nullptr;
  for (ShareCursor& cursor : shares_) {
    if (cursor.share->id != job.share || !cursor.hold.head) continue;
    if (*cursor.hold.head < wait_key(job)) {
      obeyed.push_back(&own_hold(cursor));
    } else if (cursor.hold.for_all && cursor.hold.for_all->head == job.id) {
      mine = &*cursor.hold.for_all;
    }
  }
  for (const ShareCursor& cursor : shares_) {
    if (cursor.share->id == job.share || !cursor.hold.for_all) continue;
    const Hold& hold = *cursor.hold.for_all;
    const bool mine_first =
        mine != nullptr && std::tie(mine->since, mine->head) < std::tie(hold.since, hold.head);
    if (!mine_first) obeyed.push_back(&hold);
  }
  return obeyed;
}

// Made when the first job behind the head asks for it, anew after every change.
const Hold& Pass::own_hold(ShareCursor& cursor) {
  if (cursor.hold.for_all) return *cursor.hold.for_all;
  if (!cursor.hold.own || cursor.hold.made_at != changes_) {
    const Job& job = view_.job(cursor.hold.head->id);
    const Kept kept(ledger_, holds_obeyed(job), Kept::Part::kAll);
    cursor.hold.own =
        make_hold(view_, ledger_, leading_ask(view_, job), holds_since(cursor, job), now_);
    cursor.hold.made_at = changes_;
  }
  return *cursor.hold.own;
}

bool Pass::behind_head(const Job& job) const {
  return std::any_of(shares_.begin(), shares_.end(), [&](const ShareCursor& cursor) {
    return cursor.share->id == job.share && cursor.hold.head && *cursor.hold.head < wait_key(job);
  });
}

// Whether `ask`, started now, has ended before the head of `hold` could start.
bool Pass::ends_in_time(const Ask& ask, const Hold& hold) {
  const Time end = ends_by(view_, *ask.job, now_);
  if (end == kNever) return false;
  const Job& head = view_.job(hold.head);
  const Ask wanted = leading_ask(view_, head);
  Time start = earliest_start(view_, ledger_, wanted, hold, now_);
  if (start == kNever) return false;
  // A head may also start by evicting, once min_runtime lets it.
  if (const Time first = first_old_enough(wanted); first != kNever) start = std::min(start, first);
  return end < start;
}

// The places of `ask` if it can start now: beside all that is kept, or in time.
std::optional<std::vector<InstanceUse>> Pass::place_start(const Ask& ask, bool owners_only) {
  const auto allowed = [&] {
    return owners_only ? owns_twice(ledger_, ask) : fits_twice(ledger_, ask);
  };
  if (!allowed()) return std::nullopt;
  std::vector<const Hold*> holds = holds_obeyed(*ask.job);
  if (holds.empty()) return place_now(view_, ledger_, ask);
  const auto place_beside = [&]() -> std::optional<std::vector<InstanceUse>> {
    const Kept kept(ledger_, holds, Kept::Part::kAll);
    return allowed() ? place_now(view_, ledger_, ask) : std::nullopt;
  };
  if (auto uses = place_beside()) return uses;
  const auto erased =
      std::erase_if(holds, [&](const Hold* hold) { return ends_in_time(ask, *hold); });
  return erased > 0 ? place_beside() : std::nullopt;
}

// The head for which `job` waits though it could act: start, or, behind its own share's head,
// evict.
JobId Pass::held_for(const Job& job) {
  const std::vector<const Hold*> holds = holds_obeyed(job);
  if (holds.empty()) return JobId();
  const bool behind = behind_head(job);
  const std::size_t units = view_.job_class(job.cls).units.size();
  for (std::size_t n = 0; n < units; ++n) {
    const Ask ask = make_ask(view_, job, n);
    if (fits_twice(ledger_, ask) && place_now(view_, ledger_, ask)) return holds.front()->head;
    if (behind && could_evict(ask)) return holds.front()->head;
  }
  return JobId();
}

}  // namespace gpuq::sched
