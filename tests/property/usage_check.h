#pragma once
// UsageCheck: the usage of everybody, added up in floating point from what the raw records of each
// state hold, against what the state says. One for each run; it sees every state of it.
#include <cmath>
#include <map>
#include <string>

#include "tests/property/recount.h"

namespace gpuq::property {

class UsageCheck {
 public:
  /// Empty when the state's usage is what it should be.
  std::string see(const State& state) {
    const Recount recount(state);
    std::erase_if(sums_, [&](const auto& sum) {
      return !state.usage().counts(sum.first.share, sum.first.kind);
    });
    if (std::string fault = see_users(state, recount); !fault.empty()) return fault;
    for (const Share& share : state.policy().shares) {
      if (!state.usage().counts(share.id, UsageKind::kBorrowed)) continue;
      for (const Unit& unit : state.policy().units) {
        const Amount held = recount.held(share.id, unit.id, false);
        const Amount over = std::max(kZero, held - recount.cap(share.id, unit.id));
        const UsageKey key{share.id, UsageKind::kBorrowed, unit.id, {}};
        if (!agrees(state, share, key, over)) return "usage of share " + share.def.name;
      }
    }
    topology_ = state.topology_version();
    return {};
  }

 private:
  // What a booking has already is held, and charged to the job's user.
  std::string see_users(const State& state, const Recount& recount) {
    std::map<UsageKey, Amount> held;
    for (const auto& [key, sum] : sums_) {
      if (key.kind == UsageKind::kUser) held[key] = kZero;
    }
    for (const Held& one : recount.holders()) {
      if (!state.usage().counts(one.share, UsageKind::kUser)) continue;
      const std::string& user = state.job(one.job).user;
      held[{one.share, UsageKind::kUser, one.unit, user}] += one.booking ? one.freed : one.demand;
    }
    for (const auto& [key, amount] : held) {
      const Share* share = state.policy().share(key.share);
      if (share != nullptr && !agrees(state, *share, key, amount)) return "usage of " + key.name;
    }
    return {};
  }

  struct Sum {
    double value = 0;
    double held = 0;
    Time at{};
  };

  bool agrees(const State& state, const Share& share, const UsageKey& key, Amount held) {
    const Queue* queue = state.policy().queue(share.queue);
    const Duration half_life = state.policy().policy(queue->def.scheduling_policy)->def.half_life;
    Sum& sum = sums_[key];
    const Time now = state.last_time();
    const auto elapsed = static_cast<double>((now - sum.at).count());
    const double left = std::exp2(-elapsed / static_cast<double>(half_life.count()));
    sum = {sum.held + (sum.value - sum.held) * left, static_cast<double>(held.milli), now};
    const auto found = static_cast<double>(state.usage().at(key, now).fixed);
    // Two policies since the last look: it may have been forgotten and counted anew.
    if (found == 0 && state.topology_version() > topology_ + 1) sum.value = 0;
    return std::abs(std::ldexp(found, -32) - sum.value) < 1e-6 * (1 + sum.value);
  }

  std::map<UsageKey, Sum> sums_;
  std::uint64_t topology_ = 0;  ///< Grows with every policy.
};

}  // namespace gpuq::property
