#pragma once
// Recount: every number of the rules' sections 1, 2 and 5 counted anew from the raw records
// (attempts, bookings, policy, nodes), without the ledger. Slow and simple on purpose: the tests
// hold the core's numbers and choices against it.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/state/state.h"

namespace gpuq::property {

/// Something that holds capacity: a live attempt or a booking.
struct Held {
  bool booking = false;
  bool stopping = false;
  bool preemptible = true;
  AttemptId attempt;
  JobId job;
  ShareId share;
  UnitId unit;
  Amount demand;
  Amount freed;  ///< Of a booking: the part that needs no waiting.
  std::int32_t priority = 0;
  Time started{};
  Time old_enough_at{};  ///< P11: a victim from then on.
  std::vector<InstanceUse> uses;
};

/// A waiting job with one of its units.
struct Want {
  JobId job;
  ShareId share;
  UnitId unit;
  Amount demand;
  std::int32_t instances = 1;
  bool preemptible = true;
  std::string domain_label;  ///< N2: one domain of this label is required; "" = none.
  std::string model;
  std::int64_t whole = 0;  ///< GPUs per instance.
  std::int64_t part = 0;   ///< Milli of one more.
  std::int64_t cpus = 0;
  std::int64_t memory_mib = 0;
};

/// What a what-if leaves out.
struct Without {
  std::set<AttemptId> stopped;  ///< Attempts counted as being stopped.
  std::set<JobId> bookings;     ///< Jobs whose bookings are gone.
};

enum class Claim { kNone, kOwner, kBorrower };

class Recount {
 public:
  explicit Recount(const State& state, const Without& without = {});

  [[nodiscard]] const std::vector<Held>& holders() const { return holders_; }
  [[nodiscard]] Amount held(ShareId share, UnitId unit, bool after) const;
  /// Of that, what not preemptible jobs hold (P11).
  [[nodiscard]] Amount held_not_preemptible(ShareId share, UnitId unit, bool after) const;
  [[nodiscard]] Amount cap(ShareId share, UnitId unit) const;
  [[nodiscard]] Amount ceiling(ShareId share, UnitId unit) const;
  [[nodiscard]] Amount pool(UnitId unit, EnvId env) const;
  [[nodiscard]] Amount free(UnitId unit, EnvId env, bool after) const;
  [[nodiscard]] Amount reserved(UnitId unit, EnvId env, ShareId except, bool after) const;
  [[nodiscard]] Amount lendable(UnitId unit, EnvId env, bool after) const;
  [[nodiscard]] EnvId env_of(ShareId share) const;
  [[nodiscard]] Claim claim(const Want& want, bool after) const;
  /// P11: not preemptible jobs, `want` included, fit the share's cap.
  [[nodiscard]] bool within_not_preemptible_limit(const Want& want, bool after) const;
  /// Instances that `node` can hold; 0 when it takes nothing new.
  [[nodiscard]] std::int64_t fitting_on(const Want& want, const Node& node, bool after) const;
  /// The same over all nodes, or the most of one domain where one is required (N2).
  [[nodiscard]] std::int64_t fitting(const Want& want, bool after) const;
  /// The holders of `unit` in `share` that borrow (P4).
  [[nodiscard]] std::vector<const Held*> borrowing(ShareId share, UnitId unit) const;
  [[nodiscard]] bool on_usable_node(const Held& held) const;
  /// Milli of one device in use.
  [[nodiscard]] std::int64_t device_used(NodeId node, std::int32_t device, bool after) const;

  /// Invariants 1 to 3 and 7 of one state; empty when they hold.
  [[nodiscard]] std::string faults() const;

 private:
  struct Use {
    std::int64_t now = 0;
    std::int64_t after = 0;
  };
  void add_use(const Held& held);
  [[nodiscard]] Amount held_by(ShareId share, UnitId unit, bool after, bool not_preemptible) const;
  [[nodiscard]] std::string device_faults() const;
  [[nodiscard]] std::string job_faults() const;
  [[nodiscard]] std::string ledger_faults() const;

  const State& state_;
  std::vector<Held> holders_;
  std::map<std::pair<NodeId, std::int32_t>, Use> devices_;
  std::map<NodeId, Use> cpus_;
  std::map<NodeId, Use> memory_;
};

/// `job` with its `n`-th unit.
Want want_of(const State& state, const Job& job, std::size_t n);
/// `job` with `unit`.
Want want_of(const State& state, const Job& job, UnitId unit);

}  // namespace gpuq::property
