#include "core/sim/summary.h"

#include <algorithm>

namespace gpuq::sim {

namespace {

double units(Amount amount) { return static_cast<double>(amount.milli) / 1000; }

Duration percentile(std::vector<Duration> values, std::size_t percent) {
  if (values.empty()) return Duration(0);
  std::sort(values.begin(), values.end());
  const std::size_t rank = (values.size() * percent + 99) / 100;
  return values[std::max<std::size_t>(rank, 1) - 1];
}

// Free GPUs on nodes that are partly used: what a job of whole nodes can not have.
double stranded_gpus(const State& state) {
  double sum = 0;
  for (const Node& node : state.nodes()) {
    if (!node.accepts_new()) continue;
    const std::int64_t free = state.ledger().free_gpu_milli(node, "", false);
    const auto all = static_cast<std::int64_t>(node.devices.size()) * 1000;
    if (free < all) sum += static_cast<double>(free) / 1000;
  }
  return sum;
}

}  // namespace

Meter::Meter(const Scenario&) {}

void Meter::see(const Event& event, const State& state) {
  if (!event.share.valid()) return;
  ShareMeter& share = shares_[event.share];
  if (const Share* record = state.policy().share(event.share)) share.name = record->def.name;
  const Job* job = state.find_job(event.job);
  if (job == nullptr) return;
  switch (event.type) {
    case EventType::kJobSubmitted:
      ++share.jobs;
      break;
    case EventType::kAttemptScheduled:
      if (started_.insert(job->id).second) share.waits.push_back(event.at - job->created_at);
      break;
    case EventType::kPreemptionStarted: {
      ++preemptions_;
      const auto records = state.preemptions_of(job->id);
      if (!records.empty()) {
        share.lost += static_cast<double>(records.back()->lost_unit_ms) / 1000;
      }
      break;
    }
    case EventType::kJobSucceeded:
    case EventType::kJobFailed:
      ++share.finished;
      break;
    default:
      break;
  }
}

void Meter::advance(Time now, const State& state) {
  const double seconds = static_cast<double>((now - last_).count()) / 1000;
  last_ = now;
  if (seconds <= 0) return;
  const Ledger& ledger = state.ledger();
  for (const Environment& env : state.policy().environments) {
    for (const Unit& unit : state.policy().units) {
      capacity_ += units(ledger.pool(env.id, unit.id)) * seconds;
    }
  }
  stranded_ += stranded_gpus(state) * seconds;
  for (const Share& share : state.policy().shares) {
    ShareMeter& meter = shares_[share.id];
    meter.name = share.def.name;
    for (const Unit& unit : state.policy().units) {
      const Amount held = ledger.held(share.id, unit.id, View::kNow);
      meter.used += units(held) * seconds;
      const Amount over = held - ledger.cap(share.id, unit.id);
      if (over > kZero) meter.borrowed += units(over) * seconds;
    }
  }
}

Summary Meter::summary(const State& state) const {
  Summary summary;
  double used = 0;
  for (const Share& share : state.policy().shares) {
    ShareSummary line;
    line.share = share.def.name;
    const auto it = shares_.find(share.id);
    if (it != shares_.end()) {
      const ShareMeter& meter = it->second;
      line.jobs = meter.jobs;
      line.finished = meter.finished;
      line.wait_p50 = percentile(meter.waits, 50);
      line.wait_p95 = percentile(meter.waits, 95);
      line.wait_max = percentile(meter.waits, 100);
      line.used_unit_seconds = meter.used;
      line.borrowed_unit_seconds = meter.borrowed;
      line.lost_unit_seconds = meter.lost;
      used += meter.used;
    }
    summary.shares.push_back(std::move(line));
  }
  summary.length = last_.time_since_epoch();
  summary.preemptions = preemptions_;
  if (capacity_ > 0) {
    summary.utilisation = used / capacity_;
    summary.fragmentation = stranded_ / capacity_;
  }
  return summary;
}

}  // namespace gpuq::sim
