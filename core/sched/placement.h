#pragma once
// Placement (N1 to N4): which nodes and which devices. Decides nothing about quota. All or
// nothing: a gang gets every instance or none.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/model/view.h"
#include "core/sched/ask.h"

namespace gpuq::sched {

/// How many instances of one ask the usable nodes hold, kept up to date as a search takes victims
/// away. Lives on the stack of one search.
class NodeFit {
 public:
  /// Counts over the nodes of the ask's environment that accept something new; `also_now` as in
  /// Ledger::fitting.
  NodeFit(const StateView& view, const Ledger& ledger, const Ask& ask, bool also_now);
  /// Recounts the nodes that `uses` stand on.
  void refresh(const std::vector<InstanceUse>& uses);
  [[nodiscard]] bool fits() const;
  [[nodiscard]] std::int64_t total() const { return total_; }
  /// Instances that the node at `index` (in StateView::nodes()) holds, also beyond the ask's own
  /// (P5).
  [[nodiscard]] std::int32_t at(std::size_t index) const { return counts_[index]; }
  [[nodiscard]] bool usable(NodeId node) const;
  /// Where one domain is required: the one with the most room, by name among equals, and its room.
  [[nodiscard]] std::pair<std::string, std::int64_t> best_domain() const;

 private:
  void recount(std::size_t index);

  const StateView& view_;
  const Ledger& ledger_;
  const Ask& ask_;
  bool also_now_;
  std::vector<std::int32_t> counts_;
  std::int64_t total_ = 0;
  std::map<std::string, std::int64_t> domains_;  ///< Only where one is required (N2).
};

/// Devices for every instance from what is free in both views, or nothing.
std::optional<std::vector<InstanceUse>> place_now(const StateView& view, const Ledger& ledger,
                                                  const Ask& ask);

/// Devices for every instance from what is free in kAfter, or nothing. Parts that are not free now
/// name the stopping attempt that frees them. Devices of `prefer` come first (the job waits for
/// those attempts anyway), then free ones, then what other attempts free.
std::optional<std::vector<InstanceUse>> place_booking(const StateView& view, const Ledger& ledger,
                                                      const Ask& ask,
                                                      const std::set<AttemptId>& prefer);

/// P7: the part of a booking that `ask` needs and the rest, free parts taken first; nothing when
/// the ask does not fit inside it.
struct Taken {
  std::vector<InstanceUse> mine;
  std::vector<InstanceUse> rest;
};
std::optional<Taken> take_from_booking(const StateView& view, const Ask& ask,
                                       const std::vector<InstanceUse>& booked);

/// Every attempt that `uses` waits for, ascending.
std::vector<AttemptId> awaited_by(const std::vector<InstanceUse>& uses);

}  // namespace gpuq::sched
