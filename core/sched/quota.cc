#include "core/sched/quota.h"

namespace gpuq::sched {

bool is_owner(const Ledger& ledger, const Ask& ask, View view) {
  const UnitId unit = ask.unit->id;
  return ledger.held(ask.share, unit, view) + ask.demand <= ledger.cap(ask.share, unit);
}

bool within_not_preemptible_limit(const Ledger& ledger, const Ask& ask, View view) {
  if (ask.cls->preemptible) return true;
  const UnitId unit = ask.unit->id;
  const Amount others = ledger.held_not_preemptible(ask.share, unit, view);
  return others + ask.demand <= ledger.cap(ask.share, unit);
}

Right right_in(const Ledger& ledger, const Ask& ask, View view) {
  const UnitId unit = ask.unit->id;
  if (!within_not_preemptible_limit(ledger, ask, view)) return Right::kNone;
  if (is_owner(ledger, ask, view)) {
    const Amount available =
        ledger.free(ask.env, unit, view) - ledger.reserved(ask.env, unit, ask.share, view);
    return ask.demand <= available ? Right::kOwner : Right::kNone;
  }
  if (!ledger.may_borrow(ask.share)) return Right::kNone;
  const Amount held = ledger.held(ask.share, unit, view);
  if (held + ask.demand > ledger.ceiling(ask.share, unit)) return Right::kNone;
  return ask.demand <= ledger.lendable(ask.env, unit, view) ? Right::kBorrower : Right::kNone;
}

bool fits_twice(const Ledger& ledger, const Ask& ask) {
  return right_in(ledger, ask, View::kNow) != Right::kNone &&
         right_in(ledger, ask, View::kAfter) != Right::kNone;
}

bool owns_twice(const Ledger& ledger, const Ask& ask) {
  return right_in(ledger, ask, View::kNow) == Right::kOwner &&
         right_in(ledger, ask, View::kAfter) == Right::kOwner;
}

DecisionNumbers numbers_of(const Ledger& ledger, const Ask& ask, View view) {
  const UnitId unit = ask.unit->id;
  DecisionNumbers numbers;
  numbers.held = ledger.held(ask.share, unit, view);
  numbers.cap = ledger.cap(ask.share, unit);
  numbers.ceiling = ledger.ceiling(ask.share, unit);
  numbers.free = ledger.free(ask.env, unit, view);
  numbers.reserved = ledger.reserved(ask.env, unit, ask.share, view);
  numbers.lendable = ledger.lendable(ask.env, unit, view);
  return numbers;
}

}  // namespace gpuq::sched
