// What time does: unconfirmed stops, overrun time limits, ended back-offs, expired tokens, the
// archive.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/engine/node_events.h"
#include "core/engine/transaction.h"

namespace gpuq {

namespace {

// P9: grace plus the margin without a confirmed exit: the share's charge ends, the devices stay
// charged to the node until an agent has verified them.
void give_up(Transaction& tx, AttemptId id) {
  const Attempt attempt = tx.state().attempt(id);
  AttemptEnd end;
  end.outcome = AttemptOutcome::kLost;
  end.lost_to_node = true;
  end.reason = fmt::format("Lost: the exit was not confirmed {} s after the grace period",
                           tx.config().unconfirmed_stop_margin.count() / 1000);
  if (attempt.stop == StopCause::kTimeout) {
    end.outcome = AttemptOutcome::kTimedOut;
    end.lost_to_node = false;
  }
  if (attempt.stop == StopCause::kTerminated) {
    end.outcome = AttemptOutcome::kTerminated;
    end.lost_to_node = false;
  }
  end_attempt(tx, "", id, end);
  charge_devices(tx, "", attempt);
}

// J2: back-offs that are over, the earliest end first.
void end_backoffs(Transaction& tx) {
  const auto& backoffs = tx.state().backoffs();
  while (!backoffs.empty() && backoffs.begin()->first <= tx.now()) {
    Job job = tx.state().job(backoffs.begin()->second);
    job.retry_at = kNoTime;
    settle_waiting(tx.state(), job, tx.now());
    Event event = tx.job_event(EventType::kJobRunnable, "", job);
    event.detail = "its back-off is over: rule J2";
    event.changes.emplace_back(PutJob{job});
    tx.emit(std::move(event));
  }
}

}  // namespace

Result<Reply> handle(Transaction& tx, const std::string&, const TickCommand&) {
  State& state = tx.state();
  const Duration margin = tx.config().unconfirmed_stop_margin;
  std::vector<AttemptId> stuck;
  std::vector<AttemptId> overdue;
  for (const AttemptId id : state.live_attempts()) {
    const Attempt& attempt = state.attempt(id);
    if (attempt.stopping()) {
      if (tx.now() >= attempt.stop_at + attempt.grace + margin) stuck.push_back(id);
      continue;
    }
    const auto timeout = state.job_class(state.job(attempt.job).cls).timeout;
    if (!timeout || attempt.running_at == kNever) continue;
    if (tx.now() >= attempt.running_at + *timeout + margin) overdue.push_back(id);
  }
  for (const AttemptId id : stuck) give_up(tx, id);
  for (const AttemptId id : overdue) {
    const Job& job = state.job(state.attempt(id).job);
    stop_attempt(tx, "", id, StopCause::kTimeout, grace_of(tx.state(), job),
                 "Attempt duration exceeded its timeout");
  }
  end_backoffs(tx);
  std::vector<Change> expired;
  for (const auto& [key, token] : state.tokens()) {
    if (token.expires <= tx.now()) expired.emplace_back(DropToken{key});
  }
  if (!expired.empty()) {
    Event event = tx.event(EventType::kJobsArchived, "");
    event.detail = fmt::format("{} client tokens expired", expired.size());
    event.changes = std::move(expired);
    tx.emit(std::move(event));
  }
  return Reply{};
}

namespace {

// Oldest end first. An array ends with its last member, and goes after it.
std::vector<JobId> by_end(const State& state) {
  std::vector<std::tuple<Time, JobId, bool, JobId>> ended;
  for (const JobId id : state.ended_jobs()) {
    const JobArray* array = state.find_array(id);
    const JobId last = array == nullptr ? id : array->member(array->size() - 1);
    ended.emplace_back(state.job(id).ended_at, last, array != nullptr, id);
  }
  std::ranges::sort(ended);
  std::vector<JobId> jobs;
  jobs.reserve(ended.size());
  for (const auto& [at, last, is_array, id] : ended) jobs.push_back(id);
  return jobs;
}

void count_archived(const State& state, JobArray& array, const Job& member) {
  ++(member.state == JobState::kSucceeded ? array.archived_succeeded : array.archived_failed);
  array.archived_exit_code = std::max(array.archived_exit_code, end_of(state, member));
}

}  // namespace

void archive_ended(Transaction& tx, std::size_t keep) {
  const State& state = tx.state();
  // Some slack, so that the archive moves in large batches.
  if (state.ended_jobs().size() <= keep + keep / 10) return;
  std::vector<JobId> moves = by_end(state);
  moves.resize(std::min<std::size_t>(moves.size() - keep, 1'000));
  Event event = tx.event(EventType::kJobsArchived, "");
  event.detail = fmt::format("{} ended jobs moved to the archive", moves.size());
  std::set<ClassId> classes;
  std::map<JobId, JobArray> arrays;
  for (const JobId id : moves) {
    classes.insert(state.job(id).cls);
    if (const JobArray* array = state.array_of(id)) {
      count_archived(state, arrays.try_emplace(array->id, *array).first->second, state.job(id));
    }
  }
  for (const auto& [id, array] : arrays) event.changes.emplace_back(PutArray{array});
  for (const JobId id : moves) event.changes.emplace_back(ArchiveJob{id});
  tx.emit(std::move(event));
  Event unused = tx.event(EventType::kJobsArchived, "");
  for (const ClassId id : classes) {
    if (state.class_is_unused(id)) unused.changes.emplace_back(DropClass{id});
  }
  if (unused.changes.empty()) return;
  unused.detail = fmt::format("{} job classes are unused", unused.changes.size());
  tx.emit(std::move(unused));
}

}  // namespace gpuq
