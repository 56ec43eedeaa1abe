// J3: jobs that wait for the end of others.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "core/engine/transaction.h"

namespace gpuq {

namespace {

std::string never_text(const Dependency& on, JobState end) {
  return fmt::format("DEPENDENCY: job {} is {} and was to be {}: this job can never start",
                     on.job.value, to_string(end), to_string(on.condition));
}

/// Takes the end of one job into account; true when `id` has ended with it.
bool settle(Transaction& tx, JobId id, const Job& ended) {
  Job job = tx.state().job(id);
  const auto broken = std::ranges::find_if(job.depends_on, [&](const Dependency& on) {
    return on.job == ended.id && !is_met(on.condition, ended.state);
  });
  if (broken != job.depends_on.end()) {
    fail_waiting_job(tx, "", id, never_text(*broken, ended.state), false);
    return true;
  }
  std::erase_if(job.depends_on, [&](const Dependency& on) { return on.job == ended.id; });
  settle_waiting(tx.state(), job, tx.now());
  const bool free = job.state == JobState::kRunnable;
  Event event = tx.job_event(free ? EventType::kJobRunnable : EventType::kJobUpdated, "", job);
  event.detail =
      fmt::format("job {}, which it depends on, is {}", ended.id.value, to_string(ended.state));
  event.changes.emplace_back(PutJob{std::move(job)});
  tx.emit(std::move(event));
  return false;
}

/// The array of which the first cause was a member ends with its last; the first cause may be an
/// array itself that has lost its members without a record.
void settle_arrays(Transaction& tx, std::deque<JobId>& causes) {
  const State& state = tx.state();
  const JobId cause = causes.front();
  if (const JobArray* array = state.array_of(cause)) {
    const JobId id = array->id;
    if (end_array(tx, id)) causes.push_back(id);
    return;
  }
  const JobArray* array = state.find_array(cause);
  if (array == nullptr) return;
  if (array->dropped()) {
    const auto& dependants = state.dependants();
    auto it = dependants.lower_bound(array->member(array->made));
    for (; it != dependants.end() && array->has_member(it->first); ++it) {
      causes.push_back(it->first);
    }
  }
  (void)end_array(tx, cause);
}

/// The state that `on` is to be judged by; an archived job has ended, how is not known here.
Result<JobState> state_of(const State& state, const Dependency& on) {
  if (const Job* job = state.find_job(on.job)) return job->state;
  const std::int64_t id = on.job.value;
  if (id <= 0 || id >= state.counters().next_job) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("depends_on: job {} does not exist: name a job that was submitted "
                             "before",
                             id)};
  }
  if (on.condition == DependencyCondition::kEnded) return JobState::kSucceeded;
  return Error{ErrorCode::kFailedPrecondition,
               fmt::format("depends_on: job {} ended long ago and is in the archive: leave it out "
                           "if gpuq show {} says {}",
                           id, id, to_string(on.condition))};
}

/// The job that is meant: a member where an index is given.
Result<JobId> job_of(const State& state, const DependencyRequest& request) {
  if (!request.index) return request.job;
  const JobArray* array = state.find_array(request.job);
  if (array == nullptr) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("depends_on: job {} is no array that is still known: leave out .{}",
                             request.job.value, *request.index)};
  }
  const auto member = array->member_at_index(*request.index);
  if (member) return *member;
  return Error{ErrorCode::kNotFound,
               fmt::format("depends_on: array {} has no member {}: its indexes are {}",
                           request.job.value, *request.index, index_text(array->range))};
}

}  // namespace

Result<OpenDependencies> open_dependencies(const State& state,
                                           const std::vector<DependencyRequest>& wanted) {
  if (wanted.size() > kMaxDependencies) {
    return invalid(fmt::format("depends_on names {} jobs: at most {} are allowed", wanted.size(),
                               kMaxDependencies));
  }
  OpenDependencies result;
  for (const DependencyRequest& request : wanted) {
    const auto job = job_of(state, request);
    if (!job) return job.error();
    const Dependency on{*job, request.condition};
    const auto found = state_of(state, on);
    if (!found) return found.error();
    if (!is_terminal(*found)) {
      if (std::ranges::find(result.open, on) == result.open.end()) result.open.push_back(on);
    } else if (!is_met(on.condition, *found) && result.never.empty()) {
      result.never = never_text(on, *found);
    }
  }
  return result;
}

void settle_dependants(Transaction& tx, JobId ended) {
  // What ends with one job may end others: a list and no recursion, chains may be long.
  std::deque<JobId> causes{ended};
  for (; !causes.empty(); causes.pop_front()) {
    settle_arrays(tx, causes);
    const auto* found = tx.state().dependants(causes.front());
    if (found == nullptr || !is_terminal(tx.state().job(causes.front()).state)) continue;
    const std::vector<JobId> dependants(found->begin(), found->end());
    for (const JobId id : dependants) {
      if (settle(tx, id, tx.state().job(causes.front()))) causes.push_back(id);
    }
  }
}

}  // namespace gpuq
