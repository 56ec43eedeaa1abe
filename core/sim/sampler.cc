#include "core/sim/sampler.h"

#include <algorithm>

namespace gpuq::sim {

namespace {

double seconds(Duration time) { return static_cast<double>(time.count()) / 1000; }

void add_times(std::vector<double>& to, const std::vector<double>& rate, double factor) {
  to.resize(std::max(to.size(), rate.size()));
  for (std::size_t i = 0; i < rate.size(); ++i) to[i] += rate[i] * factor;
}

}  // namespace

void Sampler::look_at(const State& state) {
  const PolicyTables& policy = state.policy();
  rate_.held.assign(policy.shares.size(), 0);
  rate_.waiting = 0;
  names_.resize(policy.shares.size());
  for (std::size_t i = 0; i < policy.shares.size(); ++i) {
    const Share& share = policy.shares[i];
    names_[i] = share.def.name;
    rate_.waiting += static_cast<double>(state.waiting(share.id).count);
    for (const Unit& unit : policy.units) {
      const Amount held = state.ledger().held(share.id, unit.id, View::kNow);
      rate_.held[i] += static_cast<double>(held.milli) / 1000;
    }
  }
}

void Sampler::join_pairs() {
  for (std::size_t i = 0; i < sums_.size(); i += 2) {
    Sum joined = std::move(sums_[i]);
    if (i + 1 < sums_.size()) {
      add_times(joined.held, sums_[i + 1].held, 1);
      joined.waiting += sums_[i + 1].waiting;
    }
    sums_[i / 2] = std::move(joined);
  }
  sums_.resize((sums_.size() + 1) / 2);
  span_ *= 2;
}

void Sampler::add(Time from, Time until, const State& state) {
  if (spans_ == 0 || until <= from) return;
  look_at(state);
  end_ = until;
  while (until.time_since_epoch() > span_ * static_cast<std::int64_t>(spans_)) join_pairs();
  while (from < until) {
    const std::int64_t index = from.time_since_epoch() / span_;
    const Time next = std::min(until, Time(span_ * (index + 1)));
    sums_.resize(std::max(sums_.size(), static_cast<std::size_t>(index) + 1));
    Sum& sum = sums_[static_cast<std::size_t>(index)];
    add_times(sum.held, rate_.held, seconds(next - from));
    sum.waiting += rate_.waiting * seconds(next - from);
    from = next;
  }
}

Series Sampler::series() const {
  Series series;
  series.span = span_;
  series.shares = names_;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Time from(span_ * static_cast<std::int64_t>(i));
    const double length = seconds(std::min(end_, from + span_) - from);
    std::vector<double> held(names_.size());
    add_times(held, sums_[i].held, 1 / length);
    series.held.push_back(std::move(held));
    series.waiting.push_back(sums_[i].waiting / length);
  }
  return series;
}

}  // namespace gpuq::sim
