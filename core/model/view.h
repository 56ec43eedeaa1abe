#pragma once
// StateView: the only way the planner sees the state. Const, but for the ledger that it borrows as
// scratch space for one pass and gives back unchanged (decision 0003).
#include <cstdint>
#include <map>
#include <vector>

#include "core/model/job.h"
#include "core/model/ledger.h"
#include "core/model/node.h"
#include "core/model/policy.h"
#include "core/model/usage.h"
#include "core/model/waiting.h"

namespace gpuq {

class StateView {
 public:
  virtual ~StateView() = default;
  [[nodiscard]] virtual const PolicyTables& policy() const = 0;
  [[nodiscard]] virtual const std::vector<Node>& nodes() const = 0;  ///< By id.
  [[nodiscard]] virtual const Job& job(JobId id) const = 0;          ///< Must exist.
  [[nodiscard]] virtual const JobClass& job_class(ClassId id) const = 0;
  [[nodiscard]] virtual const Attempt& attempt(AttemptId id) const = 0;
  /// N4: where attempts of `job` were lost through the node's fault, ascending.
  [[nodiscard]] virtual std::vector<NodeId> nodes_at_fault(JobId job) const = 0;
  [[nodiscard]] virtual const WaitingShare& waiting(ShareId share) const = 0;
  [[nodiscard]] virtual const std::map<JobId, Booking>& bookings() const = 0;
  [[nodiscard]] virtual Ledger& scratch() const = 0;
  /// What is charged to `key` at `now`: zero where the policy counts nothing of the kind.
  [[nodiscard]] virtual UsageValue usage(const UsageKey& key, Time now) const = 0;
  /// P9: the grace where neither job nor share sets one.
  [[nodiscard]] virtual Duration default_grace() const = 0;
  /// Grows with every event.
  [[nodiscard]] virtual std::uint64_t version() const = 0;
  /// Grows when policy or nodes change: what an empty pool could hold depends on nothing else.
  [[nodiscard]] virtual std::uint64_t topology_version() const = 0;
  /// Grows when attempts, bookings, nodes or policy change: whether a job fits depends on nothing
  /// else.
  [[nodiscard]] virtual std::uint64_t holdings_version() const = 0;

 protected:
  StateView() = default;
  StateView(const StateView&) = default;
  StateView& operator=(const StateView&) = default;
};

/// The grace of a stop of `job`: its own, else its share's, else the configured default (P9).
Duration grace_of(const StateView& view, const Job& job);

}  // namespace gpuq
