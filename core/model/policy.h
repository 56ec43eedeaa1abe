#pragma once
// The quota policy twice: as a document that names things by name (what administrators write and
// Apply sends), and as tables with ids (what the state holds). Values; no owner, any thread.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/amount.h"
#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/model/usage.h"

namespace gpuq {

enum class SharingStrategy : std::uint8_t { kReserve = 1, kLend = 2, kLendAndBorrow = 3 };
enum class QueueKind : std::uint8_t { kQuota = 1, kFifo = 2, kFairShare = 3 };
enum class IdleOrder : std::uint8_t { kFifo = 1, kLeastBorrowed = 2, kDecayedUsage = 3 };

/// O10: who of a share's users is next among waiting jobs of one priority.
enum class UserOrder : std::uint8_t { kFifo = 1, kFair = 2 };

const char* to_string(UserOrder order);           ///< "FIFO", "FAIR"
const char* to_string(SharingStrategy strategy);  ///< "RESERVE", "LEND", "LEND_AND_BORROW"
const char* to_string(QueueKind kind);            ///< "QUOTA", "FIFO", "FAIRSHARE"
const char* to_string(IdleOrder order);           ///< "FIFO", "LEAST_BORROWED", "DECAYED_USAGE"

/// Name of the environment, queue and share that exist before the first apply.
inline constexpr const char* kDefaultName = "default";

/// What capacity is counted in; see docs/SCHEDULING.md "What is counted".
struct UnitDef {
  std::string name;
  std::string gpu_model;        ///< Matches Device::model; empty = any model. Only with gpus > 0.
  std::int32_t gpus = 0;        ///< GPUs a unit, 0..1024.
  std::int32_t cpus = 0;        ///< CPUs a unit.
  std::int64_t memory_mib = 0;  ///< Memory a unit.
  bool operator==(const UnitDef&) const = default;
};

struct CapacityLimit {
  std::string unit;
  Amount max_capacity;  ///< >= 0
  bool operator==(const CapacityLimit&) const = default;
};

/// What `limits` allow of `unit`: none limit nothing, a unit that they leave out has no room.
Amount limit_of(const std::vector<CapacityLimit>& limits, const std::string& unit);

struct EnvDef {
  std::string name;
  std::map<std::string, std::string> node_labels;  ///< Selector; empty = every node.
  std::vector<CapacityLimit> capacity_limits;      ///< Empty only in the built-in policy: no limit.
  bool enabled = true;
  bool operator==(const EnvDef&) const = default;
};

struct SchedulingPolicyDef {
  std::string name;
  QueueKind kind = QueueKind::kQuota;
  IdleOrder idle_order = IdleOrder::kFifo;
  Duration half_life = kDefaultHalfLife;  ///< Of usage, where the queue counts any.
  bool operator==(const SchedulingPolicyDef&) const = default;
};

struct ShareDef {
  std::string name;
  std::vector<CapacityLimit> capacity_limits;
  SharingStrategy strategy = SharingStrategy::kReserve;
  std::int32_t borrow_limit = -1;           ///< Percent of the cap, >= -1; -1 = no ceiling (Q1).
  bool in_share_preemption = false;         ///< P2
  Duration min_runtime{0};                  ///< P11
  std::optional<Duration> grace;            ///< P9; unset = the job's, else 30 s.
  std::optional<Duration> head_wait_limit;  ///< O5; unset = 15 min; 0 = strict order.
  UserOrder user_order = UserOrder::kFifo;  ///< O10
  bool enabled = true;
  bool operator==(const ShareDef&) const = default;
};

struct TimeLimitAction {
  std::string reason;    ///< A reason code as listings show it.
  Duration max_time{0};  ///< 600..86400 s
  bool operator==(const TimeLimitAction&) const = default;
};

struct QueueDef {
  std::string name;
  std::int32_t priority = 0;                      ///< High first.
  std::vector<std::string> service_environments;  ///< A quota queue has exactly one (Q8).
  std::string scheduling_policy;
  std::vector<TimeLimitAction> time_limit_actions;
  std::vector<ShareDef> shares;
  bool enabled = true;
  bool operator==(const QueueDef&) const = default;
};

/// A policy document. A kind that is nullopt is not named by the document and stays as it is; a
/// kind that is named replaces what there is (deletions need `prune`).
struct PolicyDoc {
  std::optional<std::vector<UnitDef>> units;
  std::optional<std::vector<EnvDef>> environments;
  std::optional<std::vector<SchedulingPolicyDef>> policies;
  std::optional<std::vector<QueueDef>> queues;
  bool operator==(const PolicyDoc&) const = default;
};

/// One finding of the policy check. `path` addresses the place in the document
/// ("job_queues[0].quota_shares[1].capacity_limits.a100"), for line numbers on the client.
struct PolicyIssue {
  bool is_error = true;
  std::string path;
  std::string message;
};

struct Unit {
  UnitId id;
  UnitDef def;
  bool operator==(const Unit&) const = default;
};

struct Environment {
  EnvId id;
  EnvDef def;
  bool operator==(const Environment&) const = default;
};

struct SchedulingPolicy {
  PolicyId id;
  SchedulingPolicyDef def;
  bool operator==(const SchedulingPolicy&) const = default;
};

/// `def.shares` is left empty here: shares are records of their own.
struct Queue {
  QueueId id;
  QueueDef def;
  bool deleting = false;  ///< Goes when its last share has gone.
  bool operator==(const Queue&) const = default;
};

struct Share {
  ShareId id;
  QueueId queue;
  ShareDef def;
  bool deleting = false;  ///< Takes no jobs; goes when its last job has ended (P12).
  bool operator==(const Share&) const = default;
};

/// All policy records, each kind ordered by id. Ids are never reused (`next_*` only grow).
struct PolicyTables {
  std::vector<Unit> units;
  std::vector<Environment> environments;
  std::vector<SchedulingPolicy> policies;
  std::vector<Queue> queues;
  std::vector<Share> shares;
  std::int32_t next_id = 1;  ///< One counter for all five kinds.
  bool builtin = true;       ///< Still the built-in policy: units follow the nodes' GPU models.
  bool operator==(const PolicyTables&) const = default;

  [[nodiscard]] const Unit* unit(UnitId id) const;
  [[nodiscard]] const Unit* unit(const std::string& name) const;
  [[nodiscard]] const Environment* environment(EnvId id) const;
  [[nodiscard]] const Environment* environment(const std::string& name) const;
  [[nodiscard]] const SchedulingPolicy* policy(const std::string& name) const;
  [[nodiscard]] const Queue* queue(QueueId id) const;
  [[nodiscard]] const Queue* queue(const std::string& name) const;
  [[nodiscard]] const Share* share(ShareId id) const;
  [[nodiscard]] const Share* share(QueueId queue, const std::string& name) const;
  /// The environment that `queue` runs on; null for an unknown queue.
  [[nodiscard]] const Environment* environment_of(QueueId queue) const;
};

}  // namespace gpuq
