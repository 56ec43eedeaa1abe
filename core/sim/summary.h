#pragma once
// Meter: integrates use over virtual time and sums a run up. Single thread; owner: the runner.
// Figures are for people: floating point is fine here, nothing decides by them.
#include <map>
#include <set>
#include <vector>

#include "core/sim/runner.h"
#include "core/state/state.h"

namespace gpuq::sim {

class Meter {
 public:
  explicit Meter(const Scenario& scenario);
  void see(const Event& event, const State& state);
  /// Adds what was used from the last call's time until `now`.
  void advance(Time now, const State& state);
  [[nodiscard]] Summary summary(const State& state) const;

 private:
  struct ShareMeter {
    std::string name;
    std::int64_t jobs = 0;
    std::int64_t finished = 0;
    std::vector<Duration> waits;
    double used = 0;
    double borrowed = 0;
    double lost = 0;
  };
  Time last_{};
  double capacity_ = 0;  ///< Unit-seconds.
  double stranded_ = 0;
  std::int64_t preemptions_ = 0;
  std::map<ShareId, ShareMeter> shares_;
  std::set<JobId> started_;
};

}  // namespace gpuq::sim
