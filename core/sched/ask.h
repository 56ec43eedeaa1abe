#pragma once
// Ask: one waiting job with one of its acceptable units, resolved for a pass. Made by the pass,
// valid during it; the pointers go into the state view.
#include "core/model/view.h"

namespace gpuq::sched {

struct Ask {
  const Job* job = nullptr;
  const JobClass* cls = nullptr;
  const Unit* unit = nullptr;
  ShareId share;
  EnvId env;
  Amount demand;  ///< instances x count
  InstanceNeed need;
  std::int32_t instances = 1;
};

/// The ask of `job` for its `n`-th acceptable unit.
Ask make_ask(const StateView& view, const Job& job, std::size_t n);

}  // namespace gpuq::sched
