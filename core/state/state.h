#pragma once
// State: everything the server knows, with its indexes. A value: ids, no pointers between records;
// clone() copies it. Owned by the engine, used on its thread. Changed only by apply(event); every
// other member reads. sanity_check() holds after every event.
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/model/ledger.h"
#include "core/model/plan.h"
#include "core/model/rows.h"
#include "core/model/view.h"
#include "core/model/waiting.h"
#include "core/state/usage_book.h"

namespace gpuq {

/// Keys of the records that events touched since take_touched().
struct Touched {
  std::set<ClassId> classes;
  std::set<JobId> jobs;
  std::set<JobId> arrays;
  // As they left, of what was touched and is gone again: the archive takes it from the store.
  std::vector<JobClass> gone_classes;
  std::vector<Job> gone_jobs;
  std::vector<JobArray> gone_arrays;
  std::vector<Attempt> gone_attempts;
  std::vector<Preemption> gone_preemptions;
  std::set<AttemptId> attempts;
  std::set<JobId> bookings;
  std::set<PreemptionId> preemptions;
  std::set<NodeId> nodes;
  std::set<std::string> tokens;
  std::vector<PutSpec> specs;
  std::vector<JobId> archived;
  bool policy = false;
};

struct StateExcerpt;
/// What the members of one array that have a record add up to. Derived.
struct ArrayMembers {
  MemberCounts counts;        ///< In memory, archived ones not included.
  std::set<WaitKey> limited;  ///< J5: kept back by the array's limit, and by nothing else.
  std::set<JobId> waiting;    ///< PENDING or RUNNABLE.
  /// Where the members without a record that may start stand among the waiting.
  struct Offer {
    ShareId share;
    GroupKey group;
    WaitKey first;
    std::int32_t count = 0;
    bool operator==(const Offer&) const = default;
  } offer;
};

class State final : public StateView {
 public:
  State();
  /// Builds the state that `stored` describes, indexes and all. kDataLoss when it contradicts
  /// itself (a booking without its job, two uses of one device, ...); the message names the record.
  static Result<State> from_stored(StoredState stored);
  /// The inverse: what a store holding exactly this state would load.
  [[nodiscard]] StoredState to_stored() const;
  [[nodiscard]] State clone() const { return *this; }
  /// F1: what a run forward from here needs, see StateExcerpt.
  [[nodiscard]] StateExcerpt excerpt(std::size_t most, const std::vector<JobId>& also = {}) const;

  /// Applies the event's changes in order. The event is right: the engine validated before.
  void apply(const Event& event);
  /// Stores the planner's reasons; derived, not durable.
  void set_reasons(const std::vector<GroupReason>& reasons);

  // StateView
  [[nodiscard]] const PolicyTables& policy() const override { return policy_; }
  [[nodiscard]] const std::vector<Node>& nodes() const override { return nodes_; }
  [[nodiscard]] const Job& job(JobId id) const override;
  [[nodiscard]] const JobClass& job_class(ClassId id) const override;
  [[nodiscard]] const Attempt& attempt(AttemptId id) const override;
  [[nodiscard]] std::vector<NodeId> nodes_at_fault(JobId job) const override;
  [[nodiscard]] const WaitingShare& waiting(ShareId share) const override;
  [[nodiscard]] const std::map<JobId, Booking>& bookings() const override { return bookings_; }
  [[nodiscard]] Ledger& scratch() const override { return ledger_; }
  [[nodiscard]] Duration default_grace() const override { return default_grace_; }
  [[nodiscard]] std::uint64_t version() const override { return version_; }
  [[nodiscard]] std::uint64_t topology_version() const override { return topology_version_; }
  [[nodiscard]] std::uint64_t holdings_version() const override { return holdings_version_; }

  [[nodiscard]] UsageValue usage(const UsageKey& key, Time now) const override {
    return usage_.at(key, now);
  }

  /// Also a member of an array that has no record: then as a record would be made now, good until
  /// the next event.
  [[nodiscard]] const Job* find_job(JobId id) const;
  /// The array that `id` names; null for other jobs.
  [[nodiscard]] const JobArray* find_array(JobId id) const;
  /// The array that `id` is a member of, or null.
  [[nodiscard]] const JobArray* array_of(JobId id) const;
  [[nodiscard]] const std::map<JobId, JobArray>& arrays() const { return arrays_; }
  /// Grows when members are given records.
  [[nodiscard]] std::uint64_t members_made() const { return members_made_; }
  [[nodiscard]] const ArrayMembers& members_of(JobId array) const;
  /// All members, whether they have a record, had one, or never had one.
  [[nodiscard]] MemberCounts member_counts(const JobArray& array) const;
  /// Of an array what its members make of it, else the job's own.
  [[nodiscard]] JobState shown_state(const Job& job) const;
  /// How many members without a record may start: the next ones.
  [[nodiscard]] std::int32_t on_offer(const JobArray& array) const;
  /// J5: whether the limit has room for the waiting member at `key`; those before it in O1's order
  /// that have no record come first.
  [[nodiscard]] bool lets_in(const JobArray& array, const WaitKey& key) const;
  [[nodiscard]] const Attempt* find_attempt(AttemptId id) const;
  [[nodiscard]] const Node* find_node(const std::string& name) const;
  [[nodiscard]] const Node* find_node(NodeId id) const;
  [[nodiscard]] const Node& node(NodeId id) const;  ///< Must exist.
  [[nodiscard]] bool class_is_unused(ClassId id) const;
  [[nodiscard]] const Booking* find_booking(JobId id) const;
  [[nodiscard]] const TokenRecord* find_token(const std::string& key) const;
  /// The class equal to `wanted` (ids aside), or null.
  [[nodiscard]] const JobClass* find_class(const JobClass& wanted) const;
  /// All attempts in memory of `job`, by number.
  [[nodiscard]] std::vector<const Attempt*> attempts_of(JobId job) const;
  /// All preemption records in memory of `job`, oldest first.
  [[nodiscard]] std::vector<const Preemption*> preemptions_of(JobId job) const;
  /// All jobs that have a record in memory, by id; ended ones stay until archived.
  [[nodiscard]] const std::map<JobId, Job>& jobs() const { return jobs_; }
  [[nodiscard]] const std::map<AttemptId, Attempt>& attempts() const { return attempts_; }
  [[nodiscard]] const std::map<PreemptionId, Preemption>& preemptions() const {
    return preemptions_;
  }
  /// Open preemption records that name `beneficiary`, ascending; null when none.
  [[nodiscard]] const std::set<PreemptionId>* open_preemptions(JobId beneficiary) const;
  [[nodiscard]] const std::map<std::string, TokenRecord>& tokens() const { return tokens_; }
  [[nodiscard]] const std::set<AttemptId>& live_attempts() const { return live_attempts_; }
  /// Ended jobs still in memory, by id.
  [[nodiscard]] const std::set<JobId>& ended_jobs() const { return ended_jobs_; }
  /// J2: the waiting jobs whose back-off runs, by its end.
  [[nodiscard]] const std::set<std::pair<Time, JobId>>& backoffs() const { return backoffs_; }
  /// J3: the waiting jobs that depend on `job`, ascending; null when none.
  [[nodiscard]] const std::set<JobId>* dependants(JobId job) const;
  [[nodiscard]] const std::map<JobId, std::set<JobId>>& dependants() const { return dependants_; }
  /// The group that the job waits in, or would.
  [[nodiscard]] GroupKey group_of(const Job& job) const;
  /// Exactly one typed reason for every waiting job (section "Why a job waits"); O(log n).
  [[nodiscard]] Reason reason_of(JobId id) const;
  [[nodiscard]] const UsageBook& usage() const { return usage_; }
  /// What is held now of what `key` counts.
  [[nodiscard]] Amount held_of(const UsageKey& key) const;
  [[nodiscard]] const Counters& counters() const { return counters_; }
  Counters& mutable_counters() { return counters_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] StoreIdentity& identity() { return identity_; }
  [[nodiscard]] const StoreIdentity& identity() const { return identity_; }
  [[nodiscard]] Time last_time() const { return last_time_; }
  void set_last_time(Time time) { last_time_ = time; }
  /// Configuration, not state: whoever loads a state sets it.
  void set_default_grace(Duration grace) { default_grace_ = grace; }

  /// Records touched since the last call, as final values for the store.
  RowChanges take_changes();

  /// Checks indexes against records and invariants 1, 2, 3, 7 of docs/SCHEDULING.md; an empty
  /// string when all holds, else the first fault.
  [[nodiscard]] std::string sanity_check() const;

 private:
  void put(const PutClass& change);
  void put(const DropClass& change);
  void put(const PutJob& change);
  void put(const PutArray& change);
  void put(const PutSpec& change);
  void put(const PutAttempt& change);
  void put(const PutBooking& change);
  void put(const DropBooking& change);
  void put(const PutPreemption& change);
  void put(const PutNode& change);
  void put(const DropNode& change);
  void put(const PutPolicy& change);
  void put(const PutToken& change);
  void put(const DropToken& change);
  void put(const ArchiveJob& change);
  void index_job(const Job& job);
  void unindex_job(const Job& job);
  void refresh_holdings(const Job& job);
  void index_member(const JobArray& array, const Job& job);
  void unindex_member(const JobArray& array, const Job& job);
  void refresh_offer(JobId array);
  void withdraw(const ArrayMembers::Offer& offer);
  void drop_array(JobId id);
  [[nodiscard]] const Job* find_unmade(JobId id) const;
  [[nodiscard]] Reason reason_of_array(const JobArray& array) const;
  [[nodiscard]] Reason why_pending(const Job& job) const;
  void unindex_preemption(const Preemption& record);
  void rebuild_ledger();
  void held_changes(ShareId share, UnitId unit, const std::string& user);
  void held_by_all();
  void regroup_waiting(const PolicyTables& before);
  void charge_usage();
  [[nodiscard]] Holding holding_of(const Attempt& attempt) const;
  [[nodiscard]] Holding holding_of(const Booking& booking) const;

  StoreIdentity identity_;
  Time last_time_{};
  Duration default_grace_ = kDefaultGrace;
  Counters counters_;
  PolicyTables policy_;
  std::vector<Node> nodes_;  ///< By id; dropped nodes leave a gap in ids.
  std::map<ClassId, JobClass> classes_;
  std::map<JobId, Job> jobs_;
  std::map<JobId, JobArray> arrays_;
  std::map<JobId, ArrayMembers> members_;  ///< By array.
  /// Members without a record that somebody has looked at since the last event.
  mutable std::map<JobId, Job> unmade_;
  std::map<AttemptId, Attempt> attempts_;
  std::map<JobId, Booking> bookings_;
  std::map<PreemptionId, Preemption> preemptions_;
  std::map<std::string, TokenRecord> tokens_;
  UsageBook usage_;

  struct ClassLess {
    bool operator()(const JobClass& a, const JobClass& b) const { return a.before(b); }
  };
  std::map<JobClass, ClassId, ClassLess> class_index_;
  std::map<ClassId, std::int64_t> class_refs_;
  std::map<ShareId, WaitingShare> waiting_;
  std::map<JobId, Reason> lacking_reasons_;  ///< Of jobs that lost a part of their booking (P7).
  std::map<JobId, std::vector<AttemptId>> job_attempts_;
  std::map<JobId, std::vector<PreemptionId>> job_preemptions_;
  std::map<JobId, std::set<PreemptionId>> open_preemptions_;  ///< By beneficiary.
  std::map<std::string, NodeId> node_names_;
  std::set<AttemptId> live_attempts_;
  std::set<JobId> ended_jobs_;
  std::set<std::pair<Time, JobId>> backoffs_;
  std::map<JobId, std::set<JobId>> dependants_;  ///< By the job depended on; no empty ones.
  mutable Ledger ledger_;  ///< Scratch for passes: they restore it exactly (docs/decisions/0003).
  std::set<UsageKey> uncharged_;  ///< Of the event at hand: what is held may be another amount.
  std::uint64_t members_made_ = 0;
  std::uint64_t version_ = 1;
  std::uint64_t topology_version_ = 1;
  std::uint64_t holdings_version_ = 1;
  Touched touched_;
};

/// A part of a state as plain records: cheap to make on the engine's thread, and made a state again
/// on another. It holds what holds capacity, what is booked, and of the jobs that wait at most
/// `most`: of each share the first in O1's order, and those of `also`. Ended jobs and tokens are
/// left out, and jobs that depend on what is.
struct StateExcerpt {
  StoredState records;
  Duration default_grace{0};
  std::int64_t left_out = 0;  ///< Jobs that could start some day and are not in it.

  [[nodiscard]] State state() &&;
};

}  // namespace gpuq
