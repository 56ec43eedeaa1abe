#include "core/sim/memory_store.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace gpuq::sim {

namespace {

template <typename Map>
auto values(const Map& map) {
  std::vector<typename Map::mapped_type> list;
  list.reserve(map.size());
  for (const auto& [key, value] : map) list.push_back(value);
  return list;
}

}  // namespace

MemoryStore::MemoryStore(std::string store_id) { identity_.store_id = std::move(store_id); }

Result<StoredState> MemoryStore::load(bool raise_epoch) {
  if (raise_epoch) ++identity_.epoch;
  StoredState stored;
  stored.identity = identity_;
  stored.last_time = last_time_;
  stored.counters = counters_;
  stored.policy = policy_;
  stored.nodes = values(nodes_);
  stored.classes = values(classes_);
  stored.arrays = values(arrays_);
  std::erase_if(stored.arrays, [&](const JobArray& array) { return !jobs_.contains(array.id); });
  stored.jobs = values(jobs_);
  stored.attempts = values(attempts_);
  stored.bookings = values(bookings_);
  stored.preemptions = values(preemptions_);
  stored.tokens = values(tokens_);
  stored.usage = values(usage_);
  return stored;
}

void MemoryStore::fail_next(int count, Error error) {
  failures_ = count;
  failure_ = std::move(error);
}

bool MemoryStore::failing() {
  if (failures_ == 0) return false;
  --failures_;
  return true;
}

void MemoryStore::answer(std::function<void(Result<void>)> done, Result<void> result) {
  GPUQ_CHECK(executor_ != nullptr);
  executor_->post(
      [this, generation = generation_, done = std::move(done), result = std::move(result)] {
        if (generation == generation_) done(result);
      });
}

void MemoryStore::probe(std::function<void(Result<void>)> done) {
  answer(std::move(done), failing() ? Result<void>(failure_) : Result<void>());
}

void MemoryStore::commit(CommitBatch batch, std::function<void(Result<void>)> done) {
  if (failing()) return answer(std::move(done), failure_);
  if (batch.epoch != identity_.epoch) {
    return answer(std::move(done), Error{ErrorCode::kAborted, "the epoch is not ours"});
  }
  last_time_ = std::max(last_time_, batch.time);
  counters_ = batch.counters;
  for (Event& event : batch.events) events_.push_back(std::move(event));
  apply(std::move(batch.rows));
  answer(std::move(done), {});
}

void MemoryStore::apply(RowChanges rows) {
  if (rows.policy) policy_ = std::move(*rows.policy);
  for (Node& node : rows.nodes) nodes_[node.id] = std::move(node);
  for (JobClass& cls : rows.classes) classes_[cls.id] = std::move(cls);
  for (const PutSpec& spec : rows.specs) specs_[spec.id] = spec.bytes.get();
  for (Job& job : rows.jobs) jobs_[job.id] = std::move(job);
  for (JobArray& array : rows.arrays) arrays_[array.id] = array;
  for (Attempt& attempt : rows.attempts) attempts_[attempt.id] = std::move(attempt);
  for (Booking& booking : rows.bookings) bookings_[booking.job] = std::move(booking);
  for (Preemption& record : rows.preemptions) preemptions_[record.id] = std::move(record);
  for (TokenRecord& token : rows.tokens) tokens_[token.key] = std::move(token);
  for (const UsageRecord& record : rows.usage) usage_[record.key] = record;
  for (const JobId id : rows.drop_bookings) bookings_.erase(id);
  for (const NodeId id : rows.drop_nodes) nodes_.erase(id);
  for (const std::string& key : rows.drop_tokens) tokens_.erase(key);
  for (const UsageKey& key : rows.drop_usage) usage_.erase(key);
  for (const JobId id : rows.archive_jobs) {
    const auto job = jobs_.find(id);
    GPUQ_CHECK_MSG(job != jobs_.end() && is_terminal(job->second.state),
                   "a job goes to the archive whose end was never stored");
    ++archived_;
    jobs_.erase(id);
    specs_.erase(id);
    std::erase_if(attempts_, [&](const auto& entry) { return entry.second.job == id; });
    std::erase_if(preemptions_, [&](const auto& entry) { return entry.second.job == id; });
  }
  for (const ClassId id : rows.drop_classes) classes_.erase(id);
}

}  // namespace gpuq::sim
