#include "core/engine/time_limits.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/model/turn.h"

namespace gpuq {

namespace {

std::optional<Duration> limit_of(const QueueDef& queue, ReasonCode code) {
  std::optional<Duration> limit;
  for (const TimeLimitAction& action : queue.time_limit_actions) {
    if (action.reason != to_string(code)) continue;
    limit = std::min(action.max_time, limit.value_or(action.max_time));
  }
  return limit;
}

}  // namespace

void TimeLimits::note(const Event& event) {
  if (limited_ && event.job.valid() && event.job_state == JobState::kRunnable) {
    fresh_.insert(event.job);
  }
}

void TimeLimits::see(const State& state, Time now) {
  limited_ = std::ranges::any_of(state.policy().queues, [](const Queue& queue) {
    return !queue.def.time_limit_actions.empty();
  });
  if (!limited_) {
    *this = {};
    return;
  }
  run_clock(state, now);
  limits_.clear();
  // A member that was given a record is in its group by itself.
  look_again_ = std::exchange(members_made_, state.members_made()) != state.members_made();
  std::erase_if(groups_, [&](const auto& group) {
    const auto& waiting = state.waiting(group.first.first).groups;
    return !waiting.contains(group.first.second);
  });
  std::erase_if(heads_, [&](const auto& head) { return !state.policy().share(head.first); });
  for (const Share& share : state.policy().shares) {
    const Queue* queue = state.policy().queue(share.queue);
    if (queue != nullptr) see_share(state, share, queue->def);
  }
  for (const JobId id : fresh_) {
    const Job* job = state.find_job(id);
    if (job == nullptr || job->state != JobState::kRunnable) continue;
    const auto group = groups_.find({job->share, state.group_of(*job)});
    if (group != groups_.end() && state.find_booking(id) == nullptr) {
      track(state, id, group->second);
    }
  }
  fresh_.clear();
  drop_gone(state);
}

void TimeLimits::run_clock(const State& state, Time now) {
  if (!stands_) clock_ += now - last_;
  last_ = now;
  stands_ = std::ranges::any_of(
      state.nodes(), [](const Node& node) { return node.link == NodeLink::kUnreachable; });
}

// A group whose reason has changed is looked at whole, once; after that only events add to it.
void TimeLimits::see_share(const State& state, const Share& share, const QueueDef& queue) {
  for (const auto& [key, group] : state.waiting(share.id).groups) {
    const ReasonCode code = group.reason.code;
    const auto limit = is_misconfiguration(code) ? limit_of(queue, code) : std::nullopt;
    if (limit) limits_[{share.queue, code}] = *limit;
    const ReasonCode seen = limit ? code : ReasonCode::kNone;
    const ReasonCode before = std::exchange(groups_[{share.id, key}], seen);
    if (!limit) continue;
    const bool look = before != seen || look_again_;
    const auto follow = [&](JobId id) {
      if (before != seen) {
        tracked_.erase(id);
        if (const JobArray* array = state.array_of(id)) tracked_.erase(array->id);
      }
      track(state, id, code);
    };
    // Members with a record first: they go on with the clock that their array still has.
    for (auto wait = group.jobs.begin(); look && wait != group.jobs.end(); ++wait) {
      if (!group.spans.contains(*wait)) follow(wait->id);
    }
    for (const auto& [first, members] : group.spans) follow(state.array_of(first.id)->id);
  }
  see_head(state, share, queue);
}

void TimeLimits::see_head(const State& state, const Share& share, const QueueDef& queue) {
  std::optional<Turn> head;
  for (const auto& [key, group] : state.waiting(share.id).groups) {
    if (is_misconfiguration(group.reason.code)) continue;
    const Turn turn = turn_of(state, state.job(group.jobs.begin()->id), last_);
    if (!head || turn < *head) head = turn;
  }
  const auto limit = !head ? std::nullopt : limit_of(queue, state.reason_of(head->id).code);
  if (!limit) {
    heads_.erase(share.id);
    return;
  }
  const Entry entry{state.reason_of(head->id).code, state.job(head->id).runnable_since, clock_};
  HeadClock& clock = heads_[share.id];
  clock.limit = *limit;
  if (clock.job == head->id && clock.entry.code == entry.code &&
      clock.entry.runnable_since == entry.runnable_since) {
    return;
  }
  clock.job = head->id;
  clock.entry = entry;
}

void TimeLimits::track(const State& state, JobId id, ReasonCode code) {
  if (code == ReasonCode::kNone) return;
  const Job& job = state.job(id);
  const auto known = tracked_.find(id);
  if (known != tracked_.end() && known->second.code == code &&
      known->second.runnable_since == job.runnable_since) {
    return;
  }
  Entry entry{code, job.runnable_since, clock_};
  entry.since = clock_of(state, id, entry);
  tracked_[id] = entry;
  Line& line = lines_[{job.queue, code}];
  const auto behind = std::ranges::upper_bound(
      line, entry.since, {}, [](const auto& waiting) { return waiting.second.since; });
  line.emplace(behind, id, entry);
}

// A member that was given a record goes on with the clock that it had with its array.
Duration TimeLimits::clock_of(const State& state, JobId id, const Entry& entry) const {
  const JobArray* array = state.array_of(id);
  const auto known = array == nullptr ? tracked_.end() : tracked_.find(array->id);
  if (known == tracked_.end()) return entry.since;
  const bool same =
      known->second.code == entry.code && known->second.runnable_since == entry.runnable_since;
  return same ? known->second.since : entry.since;
}

bool TimeLimits::waits_still(const State& state, JobId id, const Entry& entry) const {
  const auto tracked = tracked_.find(id);
  if (tracked == tracked_.end() || tracked->second != entry) return false;
  const Job* job = state.find_job(id);
  if (job == nullptr || job->state != JobState::kRunnable) return false;
  const JobArray* array = state.find_array(id);
  if (array != nullptr && state.on_offer(*array) == 0) return false;
  const auto group = groups_.find({job->share, state.group_of(*job)});
  return job->runnable_since == entry.runnable_since && group != groups_.end() &&
         group->second == entry.code && state.find_booking(id) == nullptr;
}

// Only the fronts matter: who waits no more behind them is passed over when its turn comes.
void TimeLimits::drop_gone(const State& state) {
  for (auto& [key, line] : lines_) {
    while (!line.empty() && !waits_still(state, line.front().first, line.front().second)) {
      const auto tracked = tracked_.find(line.front().first);
      if (tracked != tracked_.end() && tracked->second == line.front().second) {
        tracked_.erase(tracked);
      }
      line.pop_front();
    }
  }
}

std::vector<std::pair<JobId, ReasonCode>> TimeLimits::overdue(const State& state) {
  std::vector<std::pair<JobId, ReasonCode>> found;
  for (auto& [key, line] : lines_) {
    const auto limit = limits_.find(key);
    if (limit == limits_.end()) continue;
    for (; !line.empty() && line.front().second.since + limit->second <= clock_; line.pop_front()) {
      const auto& [id, entry] = line.front();
      if (!waits_still(state, id, entry)) continue;
      found.emplace_back(id, entry.code);
      tracked_.erase(id);
    }
  }
  for (const auto& [share, head] : heads_) {
    if (head.entry.since + head.limit <= clock_) found.emplace_back(head.job, head.entry.code);
  }
  std::ranges::sort(found);
  return found;
}

Time TimeLimits::next_due(Time now) const {
  if (!limited_ || stands_) return kNever;
  Time next = kNever;
  const auto consider = [&](Duration due) { next = std::min(next, now + (due - clock_)); };
  for (const auto& [key, line] : lines_) {
    const auto limit = limits_.find(key);
    if (limit != limits_.end() && !line.empty()) {
      consider(line.front().second.since + limit->second);
    }
  }
  for (const auto& [share, head] : heads_) consider(head.entry.since + head.limit);
  return next;
}

}  // namespace gpuq
