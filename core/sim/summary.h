#pragma once
// Meter: integrates use over virtual time and sums a run up. Single thread; owner: the runner.
// Figures are for people: floating point is fine here, nothing decides by them.
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/sim/runner.h"
#include "core/sim/sampler.h"
#include "core/state/state.h"

namespace gpuq::sim {

class Meter {
 public:
  /// What an attempt that was preempted has done in vain.
  using RepeatedFn = std::function<Duration(AttemptId)>;
  /// `samples`: see RunOptions.
  Meter(std::size_t samples, RepeatedFn repeated)
      : sampler_(samples), repeated_(std::move(repeated)) {}
  void see(const Event& event, const State& state);
  /// Adds what was used from the last call's time until `now`.
  void advance(Time now, const State& state);
  [[nodiscard]] Summary summary(const State& state) const;
  [[nodiscard]] Series series() const { return sampler_.series(); }

 private:
  struct PriorityMeter {
    std::int64_t jobs = 0;
    std::vector<Duration> waits;
  };
  struct ShareMeter {
    std::string name;
    std::int64_t jobs = 0;
    std::int64_t finished = 0;
    std::map<std::int32_t, PriorityMeter> priorities;
    double used = 0;
    double borrowed = 0;
    double lost = 0;
  };
  void see_submitted(ShareMeter& share, const Job& job, const JobArray* array);
  void see_job(const Event& event, const Job& job, const State& state);
  void see_nodes(const Event& event, const State& state);
  void measure(const Node& node, const State& state);
  void measure_all(const State& state);
  [[nodiscard]] static ShareSummary summary_of(const ShareMeter& meter);

  Sampler sampler_;
  RepeatedFn repeated_;
  Time last_{};
  double capacity_ = 0;  ///< Unit-seconds.
  double stranded_ = 0;  ///< GPU-seconds.
  std::int64_t preemptions_ = 0;
  std::map<ShareId, ShareMeter> shares_;
  std::map<JobId, std::int32_t> submitted_;  ///< Not yet started: priority.
  // Free GPUs on nodes that are partly used: what a job of whole nodes can not have. Kept node by
  // node, as events change them: there may be thousands of nodes and millions of events.
  std::map<NodeId, std::int64_t> stranded_on_;
  std::int64_t stranded_now_ = 0;
};

}  // namespace gpuq::sim
