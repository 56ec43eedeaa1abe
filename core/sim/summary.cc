#include "core/sim/summary.h"

#include <algorithm>

namespace gpuq::sim {

namespace {

double units(Amount amount) { return static_cast<double>(amount.milli) / 1000; }

Duration percentile(const std::vector<Duration>& sorted, std::size_t percent) {
  if (sorted.empty()) return Duration(0);
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

template <typename Line>
void set_waits(Line& line, std::vector<Duration> waits) {
  std::ranges::sort(waits);
  line.wait_p50 = percentile(waits, 50);
  line.wait_p95 = percentile(waits, 95);
  line.wait_max = percentile(waits, 100);
}

}  // namespace

void Meter::measure(const Node& node, const State& state) {
  std::int64_t stranded = 0;
  if (node.accepts_new()) {
    const std::int64_t free = state.ledger().free_gpu_milli(node, "", false);
    if (free < static_cast<std::int64_t>(node.devices.size()) * 1000) stranded = free;
  }
  std::int64_t& known = stranded_on_[node.id];
  stranded_now_ += stranded - known;
  known = stranded;
}

void Meter::measure_all(const State& state) {
  stranded_on_.clear();
  stranded_now_ = 0;
  for (const Node& node : state.nodes()) measure(node, state);
}

void Meter::see_nodes(const Event& event, const State& state) {
  switch (event.type) {
    case EventType::kAttemptScheduled:
    case EventType::kAttemptStopping:
    case EventType::kAttemptEnded: {
      const Attempt* attempt = state.find_attempt(event.attempt);
      if (attempt == nullptr) return;
      for (const AttemptInstance& instance : attempt->instances) {
        if (const Node* node = state.find_node(instance.use.node)) measure(*node, state);
      }
      return;
    }
    case EventType::kBookingMade:
    case EventType::kBookingChanged:
    case EventType::kBookingVoided:
    case EventType::kNodeRegistered:
    case EventType::kNodeChanged:
    case EventType::kPolicyApplied:
      return measure_all(state);
    default:
      return;
  }
}

void Meter::see_submitted(ShareMeter& share, const Job& job, const JobArray* array) {
  const std::int32_t jobs = array == nullptr ? 1 : array->size();
  share.jobs += jobs;
  share.priorities[job.priority].jobs += jobs;
  for (std::int32_t k = 0; k < jobs; ++k) {
    submitted_[array == nullptr ? job.id : array->member(k)] = job.priority;
  }
}

void Meter::see_job(const Event& event, const Job& job, const State& state) {
  ShareMeter& share = shares_[event.share];
  switch (event.type) {
    case EventType::kJobSubmitted:
      see_submitted(share, job, state.find_array(job.id));
      break;
    case EventType::kAttemptScheduled:
      if (const auto first = submitted_.find(job.id); first != submitted_.end()) {
        share.priorities[first->second].waits.push_back(event.at - job.created_at);
        submitted_.erase(first);
      }
      break;
    case EventType::kPreemptionStarted:
      ++preemptions_;
      break;
    case EventType::kAttemptEnded:
      if (const Attempt* attempt = state.find_attempt(event.attempt)) {
        const double seconds = static_cast<double>(repeated_(attempt->id).count()) / 1000;
        share.lost += units(attempt->demand) * seconds;
      }
      break;
    case EventType::kJobSucceeded:
    case EventType::kJobFailed:
      // An array counts by its members; those that never had a record end with it.
      if (const JobArray* array = state.find_array(job.id)) {
        share.finished += array->size() - array->made;
      } else {
        ++share.finished;
      }
      break;
    default:
      break;
  }
}

void Meter::see(const Event& event, const State& state) {
  see_nodes(event, state);
  if (!event.share.valid()) return;
  if (const Job* job = state.find_job(event.job)) see_job(event, *job, state);
}

void Meter::advance(Time now, const State& state) {
  const double seconds = static_cast<double>((now - last_).count()) / 1000;
  sampler_.add(last_, now, state);
  last_ = now;
  if (seconds <= 0) return;
  const Ledger& ledger = state.ledger();
  for (const Environment& env : state.policy().environments) {
    for (const Unit& unit : state.policy().units) {
      capacity_ += units(ledger.pool(env.id, unit.id)) * seconds;
    }
  }
  stranded_ += static_cast<double>(stranded_now_) / 1000 * seconds;
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

ShareSummary Meter::summary_of(const ShareMeter& meter) {
  ShareSummary line;
  line.jobs = meter.jobs;
  line.finished = meter.finished;
  line.used_unit_seconds = meter.used;
  line.borrowed_unit_seconds = meter.borrowed;
  line.lost_unit_seconds = meter.lost;
  std::vector<Duration> waits;
  for (auto it = meter.priorities.rbegin(); it != meter.priorities.rend(); ++it) {
    const auto& [priority, jobs] = *it;
    waits.insert(waits.end(), jobs.waits.begin(), jobs.waits.end());
    line.priorities.push_back({priority, jobs.jobs, {}, {}, {}});
    set_waits(line.priorities.back(), jobs.waits);
  }
  set_waits(line, std::move(waits));
  return line;
}

Summary Meter::summary(const State& state) const {
  Summary summary;
  double used = 0;
  for (const Share& share : state.policy().shares) {
    const auto it = shares_.find(share.id);
    summary.shares.push_back(it == shares_.end() ? ShareSummary() : summary_of(it->second));
    summary.shares.back().share = share.def.name;
    used += summary.shares.back().used_unit_seconds;
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
