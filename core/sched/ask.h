#pragma once
// Ask: one waiting job with one of its acceptable units, resolved for a pass. Made by the pass,
// valid during it; the pointers go into the state view.
#include <string>
#include <vector>

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
  std::vector<NodeId> avoided;  ///< N4: taken last.
  /// N2, gangs only: they keep to nodes that agree in this label. Null: anywhere.
  const std::string* topology_label = nullptr;
  bool one_domain = false;  ///< In one domain or not at all.
};

/// N2: the domain of `node` for this ask; null when it belongs to none.
const std::string* domain_of(const Ask& ask, const Node& node);

/// What `ask` would hold from `now` on; key, places and victims are the caller's to fill.
Holding holding_for(const Ask& ask, Time now);

/// The ask of `job` for its `n`-th acceptable unit.
Ask make_ask(const StateView& view, const Job& job, std::size_t n);

}  // namespace gpuq::sched
