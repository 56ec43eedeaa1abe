#pragma once
// What passes between engine and store: the records a batch changed, and everything a start loads.
// Values; the engine makes RowChanges from what the state says it touched, in one place.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/event.h"
#include "core/model/usage.h"

namespace gpuq {

/// Counters that never go back, also not after deletions.
struct Counters {
  std::int64_t next_job = 1;
  std::int64_t next_attempt = 1;
  std::int64_t next_event = 1;
  std::int64_t next_class = 1;
  std::int64_t next_preemption = 1;
  std::int32_t next_node = 1;
  bool operator==(const Counters&) const = default;
};

/// Identity of the store. The fence of every order is (store_id, epoch, attempt).
struct StoreIdentity {
  std::string store_id;    ///< UUID, made once.
  std::int64_t epoch = 0;  ///< Raised in the first transaction of every server start.
  bool operator==(const StoreIdentity&) const = default;
};

/// Final values of everything a batch touched: upserts by key, then deletes by key.
struct RowChanges {
  std::vector<JobClass> classes;
  std::vector<Job> jobs;
  std::vector<JobArray> arrays;  ///< Kept for good: an archived one as it left memory.
  std::vector<PutSpec> specs;    ///< Inserts only: a spec never changes.
  std::vector<Attempt> attempts;
  std::vector<Booking> bookings;
  std::vector<Preemption> preemptions;
  std::vector<Node> nodes;
  std::vector<TokenRecord> tokens;
  std::vector<UsageRecord> usage;
  std::optional<PolicyTables> policy;  ///< Whole tables when the policy changed.
  std::vector<ClassId> drop_classes;
  std::vector<JobId> drop_bookings;
  std::vector<NodeId> drop_nodes;
  std::vector<std::string> drop_tokens;
  std::vector<UsageKey> drop_usage;
  /// Ended jobs that move, with spec, attempts and preemptions, to the archive.
  std::vector<JobId> archive_jobs;
  [[nodiscard]] bool empty() const;
};

/// One transaction.
struct CommitBatch {
  std::int64_t epoch = 0;  ///< Refused with kAborted when the store's epoch is another.
  Time time{};             ///< Core time of the batch; the store keeps the largest.
  Counters counters;
  std::vector<Event> events;  ///< Without their `changes`.
  RowChanges rows;
};

/// Everything a start loads: the live part of the database. Vectors ordered by id.
struct StoredState {
  StoreIdentity identity;
  Time last_time{};
  Counters counters;
  PolicyTables policy;
  std::vector<Node> nodes;
  std::vector<JobClass> classes;
  std::vector<JobArray> arrays;  ///< Of `jobs`.
  std::vector<Job> jobs;
  std::vector<Attempt> attempts;
  std::vector<Booking> bookings;
  std::vector<Preemption> preemptions;
  std::vector<TokenRecord> tokens;
  std::vector<UsageRecord> usage;  ///< By key.
};

}  // namespace gpuq
