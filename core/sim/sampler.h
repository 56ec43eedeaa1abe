#pragma once
// Sampler: means over equal spans of time of a run whose length nobody knows beforehand: when the
// spans are used up, they are joined in pairs and get twice as long. Single thread; owner: Meter.
#include <cstddef>
#include <vector>

#include "core/sim/runner.h"
#include "core/state/state.h"

namespace gpuq::sim {

class Sampler {
 public:
  /// At most `spans` spans; 0 = nothing is kept.
  explicit Sampler(std::size_t spans) : spans_(spans + spans % 2) {}
  /// From `from` to `until` the shares held what they hold in `state`.
  void add(Time from, Time until, const State& state);
  [[nodiscard]] Series series() const;

 private:
  /// Unit-seconds and job-seconds.
  struct Sum {
    std::vector<double> held;
    double waiting = 0;
  };
  void join_pairs();
  void look_at(const State& state);

  std::size_t spans_;
  Duration span_{1'000};
  Time end_{};
  std::vector<std::string> names_;
  std::vector<Sum> sums_;
  Sum rate_;  ///< Of the present state.
};

}  // namespace gpuq::sim
