#pragma once
// MemoryStore: the Store port over maps, for the simulator and tests. Commits are atomic and
// answered through the executor, as a real store's are; tests make the next ones fail. Single
// thread.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/engine/ports.h"

namespace gpuq::sim {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::string store_id = "00000000-0000-4000-8000-000000000001");

  Result<StoredState> load(bool raise_epoch) override;
  void commit(CommitBatch batch, std::function<void(Result<void>)> done) override;
  void probe(std::function<void(Result<void>)> done) override;

  /// Answers go through this executor; set before use, and again after a simulated crash.
  void set_executor(Executor* executor) { executor_ = executor; }
  /// The next `count` commits and probes fail with `error`; nothing of them is kept.
  void fail_next(int count, Error error);
  /// Forgets the answers still owed: the server that waited for them is dead.
  void crash() { ++generation_; }

  [[nodiscard]] const std::map<JobId, std::string>& specs() const { return specs_; }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] std::size_t archived() const { return archived_; }

 private:
  void answer(std::function<void(Result<void>)> done, Result<void> result);
  bool failing();
  void apply(RowChanges rows);

  Executor* executor_ = nullptr;
  std::uint64_t generation_ = 0;
  int failures_ = 0;
  Error failure_;
  StoreIdentity identity_;
  Time last_time_{};
  Counters counters_;
  PolicyTables policy_;
  std::map<NodeId, Node> nodes_;
  std::map<ClassId, JobClass> classes_;
  std::map<JobId, Job> jobs_;
  std::map<JobId, JobArray> arrays_;
  std::map<JobId, std::string> specs_;
  std::map<AttemptId, Attempt> attempts_;
  std::map<JobId, Booking> bookings_;
  std::map<PreemptionId, Preemption> preemptions_;
  std::map<std::string, TokenRecord> tokens_;
  std::map<UsageKey, UsageRecord> usage_;
  std::vector<Event> events_;
  std::size_t archived_ = 0;
};

}  // namespace gpuq::sim
