#pragma once
// F3: where a run forward has come to rest, whom the jobs that still wait are waiting for: attempts
// that nobody knows the end of. Lives beside the state for one look.
#include <map>
#include <set>
#include <tuple>

#include "core/state/state.h"

namespace gpuq::sim {

class Blockers {
 public:
  Blockers(const State& state, Time now) : state_(state), now_(now) {}

  /// Only an operator or a user can change that it waits: held, misconfigured, switched off.
  [[nodiscard]] bool needs_a_person(const Job& job) const;
  /// The jobs without a known end that stand in its way; empty if none is seen to.
  const std::set<JobId>& of(const Job& job);

 private:
  struct Endless {
    JobId job;
    EnvId env;
    ShareId share;
    UnitId unit;
  };
  [[nodiscard]] Reason own_reason(const Job& job) const;
  void prepare();
  [[nodiscard]] std::set<JobId> holders(const Job& job, bool of_share, bool of_units) const;
  [[nodiscard]] std::set<JobId> look(const Job& job);

  const State& state_;
  Time now_;
  bool prepared_ = false;
  std::vector<Endless> endless_;
  std::map<JobId, std::set<JobId>> by_job_;
  /// Jobs of one class, share and kind of reason wait for the same.
  std::map<std::tuple<ShareId, ClassId, bool>, std::set<JobId>> by_class_;
};

}  // namespace gpuq::sim
