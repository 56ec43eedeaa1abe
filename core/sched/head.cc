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
  count_usage();
  for (ShareCursor& cursor : shares_) {
    cursor.hold = {};
    renew_hold(cursor);
  }
}

// After an act in the share another job may be its head. What is kept for the same head stays: who
// started behind it has left it alone or is out in time.
void Pass::renew_hold(ShareCursor& cursor) {
  count_usage();
  const std::optional<WaitKey> head = holding_head(cursor);
  if (head == cursor.hold.head) return;
  cursor.hold = {};
  cursor.hold.head = head;
  holds_known_ = holds_known_ && !head;
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
  std::vector<HoldingKey> passers;
  const auto look_at = [&](const Holding& holding) {
    const bool same = holding.unit == ask.unit->id && ledger_.environment(holding.share) == env_;
    if (same && gone_by(view_, holding, now_) < until) passers.push_back(holding.key);
  };
  // Starts of this pass come first, by negative ids; then attempts, whose ids grow with time.
  const auto& all = ledger_.holdings();
  for (auto it = all.begin(); it != all.end() && it->first.id < 0; ++it) look_at(it->second);
  for (auto it = all.lower_bound({true, 0}); it != all.begin();) {
    --it;
    if (it->first.id < 0 || it->second.started < since) break;
    look_at(it->second);
  }
  if (passers.empty()) return false;
  const std::size_t mark = ledger_.mark();
  for (const HoldingKey& key : passers) ledger_.remove(key);
  const bool owns = owns_twice(ledger_, ask);
  ledger_.rollback(mark);
  return owns;
}

// What `job` must leave alone: the hold of its own share's head, when it comes after it, and those
// that bind all shares. Of two heads that keep nodes from all the older hold goes first.
std::vector<const Hold*> Pass::holds_obeyed(const Job& job) {
  learn_holds();
  if (job.id == lifted_) return {};
  std::vector<const Hold*> obeyed;
  const Hold* mine = nullptr;
  for (ShareCursor& cursor : shares_) {
    if (cursor.share->id != job.share || !cursor.hold.head) continue;
    if (behind_head(job)) {
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

// Made when the first job behind the head asks for it; places that are free now, after every
// change.
const Hold& Pass::own_hold(ShareCursor& cursor) {
  if (cursor.hold.for_all) return *cursor.hold.for_all;
  const bool moved = cursor.hold.own && cursor.hold.own->nodes_free == kNoTime;
  if (!cursor.hold.own || (moved && cursor.hold.made_at != changes_)) {
    const Job& job = view_.job(cursor.hold.head->id);
    const Kept kept(ledger_, holds_obeyed(job), Kept::Part::kAll);
    cursor.hold.own =
        make_hold(view_, ledger_, leading_ask(view_, job), holds_since(cursor, job), now_);
    cursor.hold.made_at = changes_;
  }
  return *cursor.hold.own;
}

ShareCursor& Pass::cursor_of(ShareId share) {
  const auto it = std::ranges::find_if(
      shares_, [&](const ShareCursor& cursor) { return cursor.share->id == share; });
  GPUQ_CHECK(it != shares_.end());
  return *it;
}

// A head may wait for what a job has kept of its booking: that job stands behind no head.
bool Pass::behind_head(const Job& job) {
  if (job.id == lifted_) return false;
  const auto& head = cursor_of(job.share).hold.head;
  return head && turn_of_job(view_.job(head->id)) < turn_of_job(job);
}

// Without a forecast of nodes: `ask` has its right also with the demand of its share's head counted
// as held. `test` is a test of the right.
bool Pass::fits_beside_head(const Ask& ask, const std::function<bool()>& test) {
  if (!behind_head(*ask.job)) return true;
  const Job& head = view_.job(cursor_of(ask.share).hold.head->id);
  const Hold demand = demand_only(leading_ask(view_, head), Time{}, now_);
  const Kept kept(ledger_, {&demand}, Kept::Part::kAll);
  return test();
}

// When the quota of a holding head can be free at the earliest; kNoTime when it is.
Time Pass::head_quota_at(ShareCursor& cursor) {
  HeadHold& hold = cursor.hold;
  if (!hold.quota_at || hold.quota_made_at != changes_) {
    const Ask head = leading_ask(view_, view_.job(hold.head->id));
    hold.quota_at = fits_twice(ledger_, head) ? kNoTime : quota_free_at(view_, ledger_, head, now_);
    hold.quota_made_at = changes_;
  }
  return *hold.quota_at;
}

// Whether `ask`, started now, has ended before the head of `hold` could start.
bool Pass::ends_in_time(const Ask& ask, const Hold& hold) {
  const Time end = ends_by(view_, *ask.job, now_);
  if (end == kNever) return false;
  Time start = hold.nodes_free;
  if (!hold.lacks_nodes_only) start = std::max(start, head_quota_at(cursor_of(hold.kept.share)));
  if (start == kNever || end >= start) return false;
  // A head may also start by evicting, once min_runtime lets it.
  return end < first_old_enough(leading_ask(view_, view_.job(hold.head)));
}

// The cheap half of ends_in_time() for the own share's head: by its quota alone.
bool Pass::may_end_in_time(const Ask& ask) {
  const Time end = ends_by(view_, *ask.job, now_);
  if (end == kNever) return false;
  learn_holds();
  ShareCursor& cursor = cursor_of(ask.share);
  if (cursor.hold.for_all) return true;  // Its quota is there, or lent.
  const Time quota_at = head_quota_at(cursor);
  return quota_at == kNoTime || (quota_at != kNever && end < quota_at);
}

// The places of `ask` if it can start now: beside all that is kept, or in time.
std::optional<std::vector<InstanceUse>> Pass::place_start(const Ask& ask, bool owners_only) {
  const auto allowed = [&] {
    return owners_only ? owns_twice(ledger_, ask) : fits_twice(ledger_, ask);
  };
  if (!allowed()) return std::nullopt;
  if (!fits_beside_head(ask, allowed) && !may_end_in_time(ask)) return std::nullopt;
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
  const auto holds = [](const ShareCursor& cursor) { return cursor.hold.head.has_value(); };
  if (std::ranges::none_of(shares_, holds)) return JobId();
  const bool behind = behind_head(job);
  const std::size_t units = view_.job_class(job.cls).units.size();
  for (std::size_t n = 0; n < units; ++n) {
    const Ask ask = make_ask(view_, job, n);
    const bool starts = fits_twice(ledger_, ask) && place_now(view_, ledger_, ask).has_value();
    if (!starts && !(behind && could_evict(ask))) continue;
    if (behind) return cursor_of(job.share).hold.head->id;
    const std::vector<const Hold*> obeyed = holds_obeyed(job);
    return obeyed.empty() ? JobId() : obeyed.front()->head;
  }
  return JobId();
}

}  // namespace gpuq::sched
