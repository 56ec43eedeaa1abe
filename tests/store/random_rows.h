#pragma once
// Random batches for the store, every field filled, and the state that they must leave behind. The
// same seed makes the same batches.
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/model/rows.h"

namespace gpuq::store {

/// What a store holds after the batches that were applied to it. Plain maps, no SQL.
class ExpectedStore {
 public:
  void apply(const CommitBatch& batch);
  /// Without identity.
  [[nodiscard]] StoredState state() const;

  struct Archived {
    Job job;
    JobClass cls;
    std::vector<Attempt> attempts;
    std::vector<Preemption> preemptions;
  };
  std::map<JobId, Archived> archived;
  std::map<JobId, std::string> specs;
  std::vector<Event> events;
  std::map<ClassId, JobClass> all_classes;
  std::map<ClassId, JobClass> classes;
  std::map<JobId, Job> jobs;
  std::map<JobId, JobArray> arrays;
  std::map<AttemptId, Attempt> attempts;
  std::map<JobId, Booking> bookings;
  std::map<PreemptionId, Preemption> preemptions;
  std::map<NodeId, Node> nodes;
  std::map<std::string, TokenRecord> tokens;
  std::map<UsageKey, UsageRecord> usage;
  PolicyTables policy;
  Counters counters;
  Time last_time{};

 private:
  void archive(JobId id);
};

/// Names the first difference, "" when there is none. Identities are not compared.
std::string difference(const StoredState& a, const StoredState& b);
bool same_event(const Event& a, const Event& b);

class BatchGenerator {
 public:
  explicit BatchGenerator(std::uint64_t seed) : random_(seed) {}
  /// A batch that may follow on `now`: new records, changed ones, dropped ones, archived ones. The
  /// first one has a policy and nodes. Epoch 1.
  CommitBatch next(const ExpectedStore& now);

 private:
  std::int64_t number(std::int64_t low, std::int64_t high);
  bool chance(int percent) { return number(0, 99) < percent; }
  std::string text();
  Time time() { return time_from_ms(number(0, std::int64_t{1} << 45)); }
  Duration duration() { return Duration(number(0, 100'000'000)); }
  std::optional<Duration> maybe_duration();
  std::vector<CapacityLimit> limits();
  std::map<std::string, std::string> labels();
  PolicyTables policy(const PolicyTables& before);
  Queue queue(QueueId id);
  Share share(ShareId id, QueueId queue);
  Node node(NodeId id);
  JobClass job_class(ClassId id, const PolicyTables& policy);
  InstanceUse use(const std::vector<NodeId>& nodes);
  JobArray array(JobId id);
  Job job(JobId id, ClassId cls, const PolicyTables& policy);
  Attempt attempt(AttemptId id, JobId job, std::int32_t number, const std::vector<NodeId>& nodes);
  Booking booking(JobId job, const std::vector<NodeId>& nodes);
  Preemption preemption(PreemptionId id, JobId job);
  UsageRecord usage(const UsageKey& key);
  Event event();
  void add_jobs(const ExpectedStore& now, CommitBatch& batch, const std::vector<NodeId>& nodes);
  void change_jobs(const ExpectedStore& now, CommitBatch& batch, const std::vector<NodeId>& nodes);
  void drop_records(const ExpectedStore& now, CommitBatch& batch);

  std::mt19937_64 random_;
  Counters next_;
  std::int64_t clock_ = 0;
};

}  // namespace gpuq::store
