#pragma once
// What is kept for the head of a share that has waited its head_wait_limit (O5, O6), and when that
// head could start at the earliest. Decides nothing: the pass knows who is a head and who obeys.
// The ledger is unchanged on return.
#include <vector>

#include "core/model/view.h"
#include "core/sched/ask.h"

namespace gpuq::sched {

inline constexpr Duration kDefaultHeadWaitLimit{std::chrono::minutes(15)};

/// Capacity kept for one head.
struct Hold {
  JobId head;
  Time since{};  ///< When the head had waited long enough: of two holds the older one counts.
  /// As a booking of the head would be: its demand, and its places where it can be placed now, else
  /// the whole of the nodes that can be free earliest.
  Holding kept;
  Time nodes_free = kNoTime;      ///< kNoTime: it can be placed now. kNever: nobody knows.
  bool lacks_nodes_only = false;  ///< O6: its quota is there, or lent to jobs that end in time.
};

/// The hold of the head that `ask` speaks of.
Hold make_hold(const StateView& view, Ledger& ledger, const Ask& ask, Time since, Time now);

/// The same without places.
Hold demand_only(const Ask& ask, Time since, Time now);

/// From when on a head that lacks quota can have its right at the earliest, by the timeouts and
/// graces of what holds it: of its own share's, when that is at its ceiling, else of everybody's.
/// kNever when one of those has no timeout. An owner's job may also take back what is lent.
Time quota_free_at(const StateView& view, Ledger& ledger, const Ask& ask, Time now);

/// When `holding` has given up what it holds, at the latest; kNever when nobody knows. Evictions of
/// this pass count from `now`; all else does not move with it, so that time alone never lets more
/// jobs pass a head.
Time gone_by(const StateView& view, const Holding& holding, Time now);

/// The latest end of an attempt of `job` that begins to run at `running`; kNever without a timeout.
Time ends_by(const StateView& view, const Job& job, Time running);

/// While it lives, what `holds` keep is taken in the ledger.
class Kept {
 public:
  enum class Part : std::uint8_t {
    kAll,    ///< Quota and places.
    kNodes,  ///< Places only: for a search of victims, which counts what really is held.
  };
  Kept(Ledger& ledger, const std::vector<const Hold*>& holds, Part part);
  ~Kept();
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

 private:
  Ledger& ledger_;
  std::vector<HoldingKey> keys_;
};

}  // namespace gpuq::sched
