#include "core/sched/victims.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/sched/placement.h"

namespace gpuq::sched {

namespace {

struct Candidate {
  const Holding* holding = nullptr;
  std::int64_t lost_work = 0;
};

// P5: lowest priority, least lost work, latest start, larger id.
bool chosen_before(const Candidate& a, const Candidate& b) {
  const Holding& x = *a.holding;
  const Holding& y = *b.holding;
  return std::tuple(x.priority, a.lost_work, y.started, y.job) <
         std::tuple(y.priority, b.lost_work, x.started, x.job);
}

class Search {
 public:
  Search(const StateView& view, Ledger& ledger, const Ask& ask, Time now, MinRuntime protection)
      : view_(view),
        ledger_(ledger),
        ask_(ask),
        now_(now),
        protection_(protection),
        fit_(view, ledger, ask, false) {
    const Share* own = view.policy().share(ask.share);
    queue_ = own->queue;
    in_share_ = own->def.in_share_preemption;
  }

  std::optional<VictimSet> run(Means means);

 private:
  struct Chosen {
    Victim victim;
    Holding holding;  ///< To put back, and for P6's priority bound.
  };

  [[nodiscard]] bool eligible(const Holding& holding) const;
  [[nodiscard]] bool old_enough(const Holding& holding) const;
  [[nodiscard]] Candidate candidate(const Holding& holding) const;
  [[nodiscard]] std::vector<Candidate> own_candidates() const;
  [[nodiscard]] std::vector<Candidate> borrowing(ShareId share) const;
  [[nodiscard]] std::vector<Candidate> all_candidates(bool own, bool cross) const;
  [[nodiscard]] Time first_old_enough(Means means) const;
  [[nodiscard]] std::vector<ShareId> shares_by_over_use() const;
  [[nodiscard]] bool stands_usefully(const Holding& holding) const;
  void find_useful_nodes(bool own, bool cross);
  void take(const Holding& holding, PreemptRule rule);
  void put_back(const Chosen& chosen);
  void retake(const Chosen& chosen);
  [[nodiscard]] bool fits() const;
  [[nodiscard]] bool has_cross() const;
  bool take_one_own();
  bool take_one_cross();
  bool choose(Means means);
  void thin();
  void try_single(Means means);

  const StateView& view_;
  Ledger& ledger_;
  const Ask& ask_;
  Time now_;
  MinRuntime protection_;
  NodeFit fit_;
  QueueId queue_;
  bool in_share_ = false;
  bool filter_ = false;       ///< Candidates must stand on a useful node.
  std::vector<bool> useful_;  ///< By node index.
  std::vector<Chosen> chosen_;
};

bool Search::eligible(const Holding& holding) const {
  if (holding.unit != ask_.unit->id || holding.stopping || !holding.preemptible) return false;
  if (holding.kept_for_head) return false;
  return stands_usefully(holding) && old_enough(holding);
}

// P11: age = min_runtime is old enough.
bool Search::old_enough(const Holding& holding) const {
  return protection_ == MinRuntime::kIgnored || ledger_.old_enough_at(holding) <= now_;
}

bool Search::stands_usefully(const Holding& holding) const {
  for (const InstanceUse& use : holding.uses) {
    if (!fit_.usable(use.node)) continue;
    if (!filter_ || useful_[ledger_.node_index(use.node)]) return true;
  }
  return false;
}

Candidate Search::candidate(const Holding& holding) const {
  std::int64_t lost = 0;
  if (!holding.key.booking && holding.running_since != kNever) {
    lost = holding.demand.milli * (now_ - holding.running_since).count();
  }
  return {&holding, lost};
}

std::vector<Candidate> Search::own_candidates() const {
  std::vector<Candidate> found;
  if (!in_share_) return found;
  for (const auto& [key, holding] : ledger_.laid(ask_.share)) {
    if (holding->priority < ask_.job->priority && eligible(*holding)) {
      found.push_back(candidate(*holding));
    }
  }
  std::sort(found.begin(), found.end(), chosen_before);
  return found;
}

// P4: the share's holdings of the unit laid into its cap; all from the first that does not fit on.
std::vector<Candidate> Search::borrowing(ShareId share) const {
  std::vector<Candidate> found;
  const Amount cap = ledger_.cap(share, ask_.unit->id);
  Amount laid;
  bool over = false;
  for (const auto& [key, holding] : ledger_.laid(share)) {
    if (holding->unit != ask_.unit->id || holding->stopping) continue;
    laid += holding->demand;
    over = over || laid > cap;
    if (over && eligible(*holding)) found.push_back(candidate(*holding));
  }
  std::sort(found.begin(), found.end(), chosen_before);
  return found;
}

// P5: shares over their cap, largest relative over-use first.
std::vector<ShareId> Search::shares_by_over_use() const {
  struct Over {
    Amount over;
    Amount cap;
    const Share* share;
  };
  std::vector<Over> list;
  for (const Share& share : view_.policy().shares) {
    if (share.queue != queue_ || share.id == ask_.share) continue;
    const Amount cap = ledger_.cap(share.id, ask_.unit->id);
    const Amount over = ledger_.held(share.id, ask_.unit->id, View::kAfter) - cap;
    if (over > kZero) list.push_back({over, cap, &share});
  }
  std::sort(list.begin(), list.end(), [](const Over& a, const Over& b) {
    if (ratio_less(b.over, b.cap, a.over, a.cap)) return true;
    if (ratio_less(a.over, a.cap, b.over, b.cap)) return false;
    if (a.over != b.over) return a.over > b.over;
    return a.share->def.name < b.share->def.name;
  });
  std::vector<ShareId> ids;
  for (const Over& entry : list) ids.push_back(entry.share->id);
  return ids;
}

std::vector<Candidate> Search::all_candidates(bool own, bool cross) const {
  std::vector<Candidate> all;
  if (own) all = own_candidates();
  if (!cross) return all;
  for (const ShareId share : shares_by_over_use()) {
    for (const Candidate& c : borrowing(share)) all.push_back(c);
  }
  return all;
}

// When a search that respects min_runtime may find more than now; before, it finds the same.
Time Search::first_old_enough(Means means) const {
  Time first = kNever;
  for (const Candidate& c : all_candidates(means != Means::kReclaim, means != Means::kInShare)) {
    const Time since = ledger_.old_enough_at(*c.holding);
    if (since > now_) first = std::min(first, since);
  }
  return first;
}

// P5: a victim helps only on a node that would hold more instances with all candidates gone, also
// where the nodes suffice already and only quota is short.
void Search::find_useful_nodes(bool own, bool cross) {
  filter_ = false;  // Until the nodes are known, every candidate on a usable node counts.
  std::vector<std::int32_t> before;
  for (std::size_t i = 0; i < view_.nodes().size(); ++i) before.push_back(fit_.at(i));
  const std::size_t mark = ledger_.mark();
  std::vector<std::vector<InstanceUse>> touched;
  for (const Candidate& c : all_candidates(own, cross)) {
    touched.push_back(c.holding->uses);
    const HoldingKey key = c.holding->key;
    if (key.booking) {
      ledger_.remove(key);
    } else {
      ledger_.set_stopping(key, true);
    }
  }
  for (const auto& uses : touched) fit_.refresh(uses);
  useful_.assign(before.size(), false);
  for (std::size_t i = 0; i < before.size(); ++i) useful_[i] = fit_.at(i) > before[i];
  ledger_.rollback(mark);
  for (const auto& uses : touched) fit_.refresh(uses);
  filter_ = true;
}

void Search::take(const Holding& holding, PreemptRule rule) {
  Chosen chosen{{holding.key, holding.job, rule}, holding};
  retake(chosen);
  chosen_.push_back(std::move(chosen));
}

void Search::retake(const Chosen& chosen) {
  if (chosen.victim.key.booking) {
    ledger_.remove(chosen.victim.key);
  } else {
    ledger_.set_stopping(chosen.victim.key, true);
  }
  fit_.refresh(chosen.holding.uses);
}

void Search::put_back(const Chosen& chosen) {
  if (chosen.victim.key.booking) {
    ledger_.add(chosen.holding);
  } else {
    ledger_.set_stopping(chosen.victim.key, false);
  }
  fit_.refresh(chosen.holding.uses);
}

bool Search::has_cross() const {
  return std::any_of(chosen_.begin(), chosen_.end(),
                     [](const Chosen& c) { return c.victim.rule == PreemptRule::kCrossShare; });
}

bool Search::fits() const {
  if (!fit_.fits()) return false;
  const Right right = right_in(ledger_, ask_, View::kAfter);
  // Borrowers never evict another share's jobs (P1).
  return right == Right::kOwner || (right == Right::kBorrower && !has_cross());
}

bool Search::take_one_own() {
  const std::vector<Candidate> own = own_candidates();
  if (own.empty()) return false;
  take(*own.front().holding, PreemptRule::kInShare);
  return true;
}

bool Search::take_one_cross() {
  for (const ShareId share : shares_by_over_use()) {
    const std::vector<Candidate> victims = borrowing(share);
    if (victims.empty()) continue;
    take(*victims.front().holding, PreemptRule::kCrossShare);
    return true;
  }
  return false;
}

bool Search::choose(Means means) {
  const bool own = means != Means::kReclaim;
  const bool cross = means != Means::kInShare;
  find_useful_nodes(own, cross);
  if (means == Means::kMixed) {
    while (!is_owner(ledger_, ask_, View::kAfter)) {
      if (!take_one_own()) return false;
    }
  }
  if (cross) {
    while (!fits() && take_one_cross()) {
    }
  }
  if (own) {
    while (!fits() && take_one_own()) {
    }
  }
  return fits();
}

// P6: in reverse order of choice, a victim without whom the ask still fits is put back.
void Search::thin() {
  for (std::size_t i = chosen_.size(); i-- > 0;) {
    const Chosen last = chosen_[i];
    put_back(last);
    chosen_.erase(chosen_.begin() + static_cast<std::ptrdiff_t>(i));
    if (fits()) continue;
    retake(last);
    chosen_.insert(chosen_.begin() + static_cast<std::ptrdiff_t>(i), last);
  }
}

// P6: one victim, of no higher priority than the highest chosen, replaces several.
void Search::try_single(Means means) {
  if (chosen_.size() < 2) return;
  std::int32_t bound = 0;
  for (const Chosen& c : chosen_) bound = std::max(bound, c.holding.priority);
  const std::vector<Chosen> several = chosen_;
  for (const Chosen& c : several) put_back(c);
  chosen_.clear();
  std::vector<std::pair<Holding, PreemptRule>> singles;
  const auto collect = [&](const std::vector<Candidate>& from, PreemptRule rule) {
    for (const Candidate& c : from) {
      if (c.holding->priority <= bound) singles.emplace_back(*c.holding, rule);
    }
  };
  if (means != Means::kReclaim) collect(own_candidates(), PreemptRule::kInShare);
  if (means != Means::kInShare) {
    for (const ShareId share : shares_by_over_use()) {
      collect(borrowing(share), PreemptRule::kCrossShare);
    }
  }
  for (const auto& [holding, rule] : singles) {
    take(holding, rule);
    if (fits()) return;
    put_back(chosen_.back());
    chosen_.clear();
  }
  for (const Chosen& c : several) {
    retake(c);
    chosen_.push_back(c);
  }
}

std::optional<VictimSet> Search::run(Means means) {
  if (means == Means::kReclaim && !is_owner(ledger_, ask_, View::kAfter)) return std::nullopt;
  if (means != Means::kReclaim && !in_share_) return std::nullopt;
  // Victims are preemptible: no set of them helps against P11's limit.
  if (!within_not_preemptible_limit(ledger_, ask_, View::kAfter)) return std::nullopt;
  const std::size_t mark = ledger_.mark();
  std::optional<VictimSet> result;
  if (choose(means)) {
    thin();
    try_single(means);
    VictimSet set;
    set.right = right_in(ledger_, ask_, View::kAfter);
    for (const Chosen& c : chosen_) set.victims.push_back(c.victim);
    if (!set.victims.empty()) result = std::move(set);
  }
  ledger_.rollback(mark);
  if (result && protection_ == MinRuntime::kIgnored) {
    result->first_old_enough = first_old_enough(means);
  }
  return result;
}

}  // namespace

std::optional<VictimSet> find_victims(const StateView& view, Ledger& ledger, const Ask& ask,
                                      Means means, Time now, MinRuntime protection) {
  return Search(view, ledger, ask, now, protection).run(means);
}

}  // namespace gpuq::sched
