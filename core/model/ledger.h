#pragma once
// Ledger: who holds what. It counts every share's held units and every device's use in two views:
// kNow (as things are) and kAfter (stopping attempts gone, bookings in full), so that a start can
// be tested twice (Q6). Owned by the state, which adds and removes holdings as attempts and
// bookings change. A pass borrows it as scratch: it marks, changes, and rolls back exactly
// (decision 0003). Thread: the engine's.
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/policy.h"

namespace gpuq {

enum class View : std::uint8_t { kNow = 0, kAfter = 1 };

/// An attempt or a booking that holds capacity.
struct HoldingKey {
  bool booking = false;
  std::int64_t id = 0;  ///< AttemptId, or the JobId of a booking.
  auto operator<=>(const HoldingKey&) const = default;
};
inline HoldingKey key_of(AttemptId id) { return {false, id.value}; }
inline HoldingKey booking_key(JobId id) { return {true, id.value}; }

struct Holding {
  HoldingKey key;
  JobId job;
  ShareId share;
  UnitId unit;
  Amount demand;
  std::string user;  ///< Whose job it is.
  std::int32_t priority = 0;
  bool preemptible = true;
  bool stopping = false;       ///< Counts in kNow only.
  bool kept_for_head = false;  ///< O5, O6: nobody's yet; only a pass adds these.
  Time started{};              ///< Scheduled or booked at.
  Time running_since = kNever;
  std::vector<InstanceUse> uses;
  std::vector<AttemptId> victims;  ///< Bookings: attempts it waits for.
  bool operator==(const Holding&) const = default;
};

/// P4's order: not preemptible first, priority high to low, earliest start, smaller job id.
struct LayKey {
  bool preemptible = false;
  std::int32_t negated_priority = 0;
  Time started{};
  JobId job;
  HoldingKey key;
  auto operator<=>(const LayKey&) const = default;
};

/// What one instance needs of a node.
struct InstanceNeed {
  std::string gpu_model;  ///< "" = any.
  std::int32_t whole_gpus = 0;
  std::int32_t fraction_milli = 0;  ///< One more device, in part.
  std::int32_t cpus = 0;
  std::int64_t memory_mib = 0;
  [[nodiscard]] std::int64_t gpu_milli() const {
    return whole_gpus * std::int64_t{1000} + fraction_milli;
  }
  [[nodiscard]] bool wants_gpus() const { return gpu_milli() > 0; }
};

/// The need of one instance of `cls` in its unit request `request`; `unit` is that unit.
InstanceNeed instance_need(const JobClass& cls, const UnitRequest& request, const Unit& unit);

struct DeviceLoad {
  std::int32_t used[2] = {0, 0};  ///< Milli, by View.
  /// Milli that are free in kAfter and, with `also_now`, in kNow as well; negative when overbooked.
  [[nodiscard]] std::int32_t free(bool also_now) const {
    return 1000 - (also_now && used[0] > used[1] ? used[0] : used[1]);
  }
  bool operator==(const DeviceLoad&) const = default;
};

struct NodeLoad {
  std::vector<DeviceLoad> devices;
  std::int64_t cpus[2] = {0, 0};
  std::int64_t memory_mib[2] = {0, 0};
  bool operator==(const NodeLoad&) const = default;
};

class Ledger {
 public:
  Ledger() = default;
  Ledger(const Ledger& other);  ///< Copies are independent: pointers are made anew.
  Ledger& operator=(const Ledger& other);
  Ledger(Ledger&&) = default;
  Ledger& operator=(Ledger&&) = default;
  ~Ledger() = default;

  /// Starts anew for this policy and these nodes, without holdings. `nodes` must outlive the use of
  /// the ledger by a pass and may be indexed by id through node_index().
  void reset(const PolicyTables& policy, const std::vector<Node>& nodes);

  void add(Holding holding);
  void remove(HoldingKey key);
  void set_stopping(HoldingKey key, bool stopping);
  /// Recomputes P(u) of every environment where holdings on unusable or foreign devices changed.
  void refresh_pools(const PolicyTables& policy, const std::vector<Node>& nodes);
  [[nodiscard]] bool pools_dirty() const { return pools_dirty_; }

  /// Changes after `mark()` are undone by `rollback(mark)`, exactly. Without a mark nothing is
  /// logged.
  [[nodiscard]] std::size_t mark();
  void rollback(std::size_t mark);
  /// Undoes everything since the first mark and stops logging.
  void end_scratch();

  // Quota. All in O(1).
  [[nodiscard]] Amount held(ShareId share, UnitId unit, View view) const;
  /// Of that, what not preemptible jobs and their bookings hold (P11).
  [[nodiscard]] Amount held_not_preemptible(ShareId share, UnitId unit, View view) const;
  /// Of that, what `user` holds (O10): zero in shares that do not order by users.
  [[nodiscard]] Amount held_by(ShareId share, UnitId unit, const std::string& user,
                               View view) const;
  /// Who holds something of `unit` in a share that orders by users, ascending.
  [[nodiscard]] std::vector<std::string> users(ShareId share, UnitId unit) const;
  [[nodiscard]] Amount cap(ShareId share, UnitId unit) const;
  [[nodiscard]] Amount ceiling(ShareId share, UnitId unit) const;  ///< Q1
  [[nodiscard]] bool may_borrow(ShareId share) const;
  /// P11: from when on `holding` is old enough to be a victim.
  [[nodiscard]] Time old_enough_at(const Holding& holding) const;
  [[nodiscard]] EnvId environment(ShareId share) const;
  [[nodiscard]] Amount pool(EnvId env, UnitId unit) const;   ///< P(u)
  [[nodiscard]] Amount limit(EnvId env, UnitId unit) const;  ///< The environment's limit.
  /// Units on all known nodes of the environment, DOWN ones included (O4).
  [[nodiscard]] Amount known_units(EnvId env, UnitId unit) const;
  [[nodiscard]] Amount free(EnvId env, UnitId unit, View view) const;  ///< May be negative.
  /// Q2 over all RESERVE shares but `except`.
  [[nodiscard]] Amount reserved(EnvId env, UnitId unit, ShareId except, View view) const;
  [[nodiscard]] Amount lendable(EnvId env, UnitId unit, View view) const;  ///< Q3
  /// Sum of caps of lending shares, and of RESERVE shares other than `except` (O4's bounds).
  [[nodiscard]] Amount lending_caps(EnvId env, UnitId unit) const;
  [[nodiscard]] Amount reserve_caps(EnvId env, UnitId unit, ShareId except) const;

  // Holdings.
  [[nodiscard]] const Holding* find(HoldingKey key) const;
  [[nodiscard]] const std::map<HoldingKey, Holding>& holdings() const { return holdings_; }
  /// The holdings of a share in P4's order.
  [[nodiscard]] const std::map<LayKey, const Holding*>& laid(ShareId share) const;
  /// Number of attempts being stopped.
  [[nodiscard]] std::int64_t stopping_count() const { return stopping_count_; }

  // Nodes.
  [[nodiscard]] const NodeLoad& load(NodeId node) const;
  /// The holdings that use something of `node`.
  [[nodiscard]] const std::set<HoldingKey>& on_node(NodeId node) const;
  /// Position of the node in State::nodes(); the node must be known.
  [[nodiscard]] std::size_t node_index(NodeId node) const;
  /// How many instances of `need` fit on `node`, at most `limit`, using only capacity that is free
  /// in kAfter and, with `also_now`, in kNow as well. Does not look at the node's link or admin
  /// state.
  [[nodiscard]] std::int32_t fitting(const Node& node, const InstanceNeed& need, std::int32_t limit,
                                     bool also_now) const;
  /// The same on the empty node, every device counted (O4).
  [[nodiscard]] static std::int32_t fitting_empty(const Node& node, const InstanceNeed& need,
                                                  std::int32_t limit);
  /// Milli of matching GPUs on `node` that are free in kAfter (and kNow).
  [[nodiscard]] std::int64_t free_gpu_milli(const Node& node, const std::string& model,
                                            bool also_now) const;
  [[nodiscard]] std::int32_t device_free(const Node& node, std::int32_t device,
                                         bool also_now) const;
  /// At least as much as free_gpu_milli() of all nodes of `env` together, whatever their state, and
  /// in O(1): what is not there in all need not be looked for node by node.
  [[nodiscard]] std::int64_t free_gpu_bound(EnvId env, bool also_now) const;

  /// True when both count the same; marks and logs do not matter.
  [[nodiscard]] bool same_as(const Ledger& other) const;

 private:
  struct ViewSums {
    Amount held, reserved, lent, reserve_over;
    bool operator==(const ViewSums&) const = default;
  };
  struct PoolBook {
    Amount pool, limit, known, lending_caps, reserve_caps;
    ViewSums sums[2];
    bool operator==(const PoolBook&) const = default;
  };
  struct UserSums {
    Amount held[2];
    bool operator==(const UserSums&) const = default;
  };
  struct ShareBook {
    EnvId env;
    SharingStrategy strategy = SharingStrategy::kReserve;
    std::int32_t borrow_limit = -1;
    Duration min_runtime{0};
    bool known = false;
    std::vector<Amount> caps;  ///< By unit.
    std::vector<Amount> held[2];
    std::vector<Amount> not_preemptible[2];
    bool by_user = false;                                      ///< O10
    std::map<std::pair<UnitId, std::string>, UserSums> users;  ///< No empty ones.
    std::map<LayKey, const Holding*> laid;
  };
  enum class Op : std::uint8_t { kAdded, kRemoved, kStopping };
  struct LogEntry {
    Op op;
    HoldingKey key;
    bool was_stopping = false;
    Holding removed;
  };

  /// What is free on the usable devices of a node, in kNow and kAfter together [0] and in kAfter
  /// alone [1]. Follows from loads_.
  struct NodeSpace {
    std::int64_t milli[2] = {0, 0};
    std::int32_t whole[2] = {0, 0};  ///< Devices of which nothing is used.
    bool uniform = true;             ///< All devices are of `model`.
    std::string model;
    bool operator==(const NodeSpace&) const = default;
  };

  void count(const Holding& holding, View view, std::int32_t sign);
  void count_space(std::size_t node, std::size_t device, std::int32_t sign);
  void add_held(ShareBook& share, UnitId unit, View view, Amount amount);
  static void add_user(ShareBook& share, const Holding& holding, View view, Amount amount);
  void raw_add(Holding holding);
  Holding raw_remove(HoldingKey key);
  void raw_set_stopping(HoldingKey key, bool stopping);
  [[nodiscard]] Amount booked_free_part(const Holding& holding) const;
  [[nodiscard]] PoolBook& book(EnvId env, UnitId unit);
  [[nodiscard]] const PoolBook& book(EnvId env, UnitId unit) const;
  [[nodiscard]] ShareBook& share_book(ShareId share);
  [[nodiscard]] const ShareBook& share_book(ShareId share) const;
  [[nodiscard]] bool uses_odd_device(const Holding& holding) const;

  [[nodiscard]] std::size_t slot(UnitId unit) const {
    return slot_[static_cast<std::size_t>(unit.value)];
  }

  std::vector<std::size_t> slot_;              ///< By unit or environment id: a small dense number.
  std::vector<UnitDef> units_;                 ///< By unit slot.
  std::vector<PoolBook> books_;                ///< By environment slot * units + unit slot.
  std::vector<ShareBook> shares_;              ///< By share id.
  std::vector<std::size_t> node_index_;        ///< By node id.
  std::vector<NodeLoad> loads_;                ///< By node index.
  std::vector<std::set<HoldingKey>> on_node_;  ///< By node index.
  std::vector<EnvId> node_env_;
  std::vector<std::vector<bool>> odd_device_;  ///< Unusable or charged, by node index and device.
  std::vector<NodeSpace> space_;               ///< By node index.
  std::vector<std::int64_t> env_space_[2];     ///< Sums of NodeSpace::milli, by environment slot.
  std::map<HoldingKey, Holding> holdings_;
  std::int64_t stopping_count_ = 0;
  bool pools_dirty_ = false;
  bool logging_ = false;
  std::vector<LogEntry> log_;
};

}  // namespace gpuq
