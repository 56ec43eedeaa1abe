#include "core/engine/invariants.h"

#include <fmt/format.h>

#include "core/base/check.h"

namespace gpuq {

void check_start(const State& state, const Decision& d) {
  const Ledger& ledger = state.ledger();
  const EnvId env = ledger.environment(d.share);
  const auto fail = [&](const char* what) {
    GPUQ_CHECK_MSG(false, fmt::format("start of job {}: {}", d.job.value, what));
  };
  const Booking* booking = state.find_booking(d.job);
  const auto instances = static_cast<std::size_t>(state.job_class(state.job(d.job).cls).instances);
  if (d.uses.size() != instances) fail("a part of a gang (invariant 2)");
  for (const InstanceUse& use : d.uses) {
    const Node& node = state.node(use.node);
    if (!node.accepts_new() || node.env != env) fail("on a node that takes nothing new (N3)");
  }
  // Without the job's own booking, which the start replaces.
  Ledger rest = ledger;
  if (booking != nullptr) rest.remove(booking_key(d.job));
  for (const View view : {View::kNow, View::kAfter}) {
    const Amount held = rest.held(d.share, d.unit, view) + d.demand;
    if (held > rest.ceiling(d.share, d.unit)) fail("above its share's ceiling (invariant 3)");
    const bool preemptible = state.job_class(state.job(d.job).cls).preemptible;
    const Amount fixed = rest.held_not_preemptible(d.share, d.unit, view) + d.demand;
    if (!preemptible && fixed > rest.cap(d.share, d.unit)) {
      fail("not preemptible jobs above their share's cap (P11)");
    }
    const Amount left = rest.free(env, d.unit, view) - d.demand;
    if (left < rest.reserved(env, d.unit, d.share, view)) {
      fail("takes what a RESERVE share keeps idle (invariant 4)");
    }
  }
}

}  // namespace gpuq
