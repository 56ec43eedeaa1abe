// The state from and to what a store holds, and the checks that guard both.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/state/state.h"

namespace gpuq {

namespace {

Error contradiction(std::string what) {
  return {ErrorCode::kDataLoss, fmt::format("the stored state contradicts itself: {}; restore a "
                                            "backup or report this",
                                            what)};
}

}  // namespace

Result<State> State::from_stored(StoredState stored) {
  State state;
  state.identity_ = std::move(stored.identity);
  state.last_time_ = stored.last_time;
  state.counters_ = stored.counters;
  state.policy_ = std::move(stored.policy);
  state.nodes_ = std::move(stored.nodes);
  for (const Node& node : state.nodes_) state.node_names_[node.name] = node.id;
  state.ledger_.reset(state.policy_, state.nodes_);
  for (JobClass& cls : stored.classes) state.put(PutClass{std::move(cls)});
  for (JobArray& array : stored.arrays) state.put(PutArray{array});
  for (Job& job : stored.jobs) {
    if (!state.classes_.contains(job.cls)) {
      return contradiction(fmt::format("job {} has no class", job.id.value));
    }
    if (state.policy_.share(job.share) == nullptr && !is_terminal(job.state)) {
      return contradiction(fmt::format("job {} has no quota share", job.id.value));
    }
    const JobArray* array = state.array_of(job.id);
    if (array != nullptr && array->position(job.id) >= array->made) {
      return contradiction(
          fmt::format("array {} has no member {} yet", array->id.value, array->index(job.id)));
    }
    state.put(PutJob{std::move(job)});
  }
  for (const auto& [id, array] : state.arrays_) {
    if (state.jobs_.contains(id)) continue;
    return contradiction(fmt::format("array {} has no job", id.value));
  }
  for (Attempt& attempt : stored.attempts) {
    if (!state.jobs_.contains(attempt.job)) {
      return contradiction(fmt::format("attempt {} has no job", attempt.id.value));
    }
    state.put(PutAttempt{std::move(attempt)});
  }
  for (Booking& booking : stored.bookings) {
    const Job* job = state.find_job(booking.job);
    if (job == nullptr || job->state != JobState::kRunnable) {
      return contradiction(fmt::format("a booking of job {} without need", booking.job.value));
    }
    state.put(PutBooking{std::move(booking)});
  }
  for (Preemption& record : stored.preemptions) state.put(PutPreemption{std::move(record)});
  for (TokenRecord& token : stored.tokens) state.put(PutToken{std::move(token)});
  state.ledger_.refresh_pools(state.policy_, state.nodes_);
  state.usage_.set_policy(state.policy_, state.last_time_);
  for (UsageRecord& record : stored.usage) state.usage_.load(std::move(record));
  state.uncharged_.clear();
  state.touched_ = {};
  const std::string fault = state.sanity_check();
  if (!fault.empty()) return contradiction(fault);
  for (const auto& [on, dependants] : state.dependants()) {
    if (!is_terminal(state.job(on).state)) continue;
    return contradiction(fmt::format("job {} waits for job {}, which has ended",
                                     dependants.begin()->value, on.value));
  }
  return state;
}

StoredState State::to_stored() const {
  StoredState stored;
  stored.identity = identity_;
  stored.last_time = last_time_;
  stored.counters = counters_;
  stored.policy = policy_;
  stored.nodes = nodes_;
  for (const auto& [id, record] : classes_) stored.classes.push_back(record);
  for (const auto& [id, record] : arrays_) stored.arrays.push_back(record);
  for (const auto& [id, record] : jobs_) stored.jobs.push_back(record);
  for (const auto& [id, record] : attempts_) stored.attempts.push_back(record);
  for (const auto& [id, record] : bookings_) stored.bookings.push_back(record);
  for (const auto& [id, record] : preemptions_) stored.preemptions.push_back(record);
  for (const auto& [id, record] : tokens_) stored.tokens.push_back(record);
  for (const auto& [key, record] : usage_.records()) stored.usage.push_back(record);
  return stored;
}

namespace {

// Final values of the touched keys: what still exists is put, the rest is dropped.
template <typename Keys, typename Map, typename Puts, typename Drops>
void split(const Keys& keys, const Map& map, Puts& puts, Drops&& drop) {
  puts.reserve(keys.size());
  for (const auto& key : keys) {
    const auto it = map.find(key);
    if (it == map.end()) {
      drop(key);
    } else {
      puts.push_back(it->second);
    }
  }
}

template <typename Record>
void append(std::vector<Record>& to, std::vector<Record>& from) {
  std::ranges::move(from, std::back_inserter(to));
}

}  // namespace

RowChanges State::take_changes() {
  RowChanges rows;
  Touched touched = std::exchange(touched_, {});
  const auto no_drop = [](const auto&) {};
  split(touched.classes, classes_, rows.classes,
        [&](ClassId id) { rows.drop_classes.push_back(id); });
  split(touched.jobs, jobs_, rows.jobs, no_drop);
  split(touched.arrays, arrays_, rows.arrays, no_drop);
  split(touched.attempts, attempts_, rows.attempts, no_drop);
  split(touched.bookings, bookings_, rows.bookings,
        [&](JobId id) { rows.drop_bookings.push_back(id); });
  split(touched.preemptions, preemptions_, rows.preemptions, no_drop);
  split(touched.tokens, tokens_, rows.tokens,
        [&](const std::string& key) { rows.drop_tokens.push_back(key); });
  split(usage_.take_touched(), usage_.records(), rows.usage,
        [&](const UsageKey& key) { rows.drop_usage.push_back(key); });
  for (const NodeId id : touched.nodes) {
    const auto it =
        std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.id == id; });
    if (it == nodes_.end()) {
      rows.drop_nodes.push_back(id);
    } else {
      rows.nodes.push_back(*it);
    }
  }
  append(rows.classes, touched.gone_classes);
  append(rows.jobs, touched.gone_jobs);
  append(rows.arrays, touched.gone_arrays);
  append(rows.attempts, touched.gone_attempts);
  append(rows.preemptions, touched.gone_preemptions);
  rows.specs = std::move(touched.specs);
  rows.archive_jobs = std::move(touched.archived);
  if (touched.policy) rows.policy = policy_;
  return rows;
}

}  // namespace gpuq
