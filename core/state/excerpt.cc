// The part of a state that a run forward needs. Made on the engine's thread, so its cost follows
// what holds capacity and what is taken along, not what waits or has ended.
#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/state/state.h"

namespace gpuq {

namespace {

using Jobs = std::set<WaitKey>;

/// A group's jobs that were not taken yet; the one with the earliest first job goes first.
struct Rest {
  const WaitGroup* group = nullptr;
  Jobs::const_iterator next;
  std::int32_t offset = 0;  ///< Members of an array that were taken of `next`.
  bool operator<(const Rest& other) const { return *other.next < *next; }
};

void add_first(const WaitingShare& share, std::size_t count, std::set<JobId>& chosen) {
  std::priority_queue<Rest> rests;
  for (const auto& [cls, group] : share.groups) rests.push({&group, group.jobs.begin()});
  for (; count > 0 && !rests.empty(); --count) {
    Rest rest = rests.top();
    rests.pop();
    chosen.insert(JobId(rest.next->id.value + rest.offset));
    if (++rest.offset == rest.group->span(*rest.next)) {
      ++rest.next;
      rest.offset = 0;
    }
    if (rest.next != rest.group->jobs.end()) rests.push(rest);
  }
}

/// Chooses the jobs of an excerpt.
class Chooser {
 public:
  Chooser(const State& state, std::size_t most) : state_(state) {
    std::size_t shares = 0;
    for (const Share& share : state.policy().shares) shares += state.waiting(share.id).count > 0;
    per_share_ = std::max<std::size_t>(1, most / std::max<std::size_t>(1, shares));
  }

  void choose(const std::vector<JobId>& also) {
    for (const AttemptId id : state_.live_attempts()) chosen_.insert(state_.attempt(id).job);
    for (const auto& [job, booking] : state_.bookings()) chosen_.insert(job);
    std::set<JobId> pending;
    for (const JobId id : also) {
      const Job* job = state_.find_job(id);
      if (job == nullptr || state_.find_array(id) != nullptr) continue;
      if (job->state == JobState::kRunnable) chosen_.insert(id);
      if (job->state == JobState::kPending) pending.insert(id);
    }
    for (const Share& share : state_.policy().shares) choose_runnable(share.id);
    for (const auto& [id, array] : state_.arrays()) {
      left_out_ += array.unmade() - state_.on_offer(array);
    }
    choose_pending(std::move(pending));
  }

  [[nodiscard]] const std::set<JobId>& chosen() const { return chosen_; }
  [[nodiscard]] std::int64_t left_out() const { return left_out_; }

 private:
  void choose_runnable(ShareId id) {
    const WaitingShare& share = state_.waiting(id);
    const std::size_t waiting = static_cast<std::size_t>(share.count) - share.booked.size();
    add_first(share, per_share_, chosen_);
    if (waiting > per_share_) left_out_ += static_cast<std::int64_t>(waiting - per_share_);
  }

  // A job that only its user keeps from starting is in no index, and starts in no forecast; others
  // may depend on it.
  void choose_pending(std::set<JobId> pending) {
    for (const auto& [when, job] : state_.backoffs()) pending.insert(job);
    for (const auto& [on, dependants] : state_.dependants()) {
      if (state_.job(on).state == JobState::kPending) pending.insert(on);
      pending.insert(dependants.begin(), dependants.end());
    }
    std::map<ShareId, std::size_t> taken;
    for (const JobId id : pending) {  // What a job depends on is older: chosen before it, or never.
      const Job& job = state_.job(id);
      const bool whole = std::ranges::all_of(
          job.depends_on, [this](const Dependency& on) { return chosen_.contains(on.job); });
      // Members are taken along as jobs of their own: an array's limit is not known there.
      const bool alone = !job.over_array_limit && state_.find_array(id) == nullptr;
      if (alone && whole && taken[job.share]++ < per_share_) {
        chosen_.insert(id);
      } else {
        ++left_out_;
      }
    }
  }

  const State& state_;
  std::size_t per_share_ = 1;
  std::set<JobId> chosen_;
  std::int64_t left_out_ = 0;
};

}  // namespace

StateExcerpt State::excerpt(std::size_t most, const std::vector<JobId>& also) const {
  Chooser chooser(*this, most);
  chooser.choose(also);
  StateExcerpt excerpt;
  excerpt.left_out = chooser.left_out();
  excerpt.default_grace = default_grace_;
  StoredState& records = excerpt.records;
  records.identity = identity_;
  records.last_time = last_time_;
  records.counters = counters_;
  records.policy = policy_;
  records.nodes = nodes_;
  for (const auto& [key, record] : usage_.records()) records.usage.push_back(record);
  std::set<ClassId> classes;
  records.jobs.reserve(chooser.chosen().size());
  for (const JobId id : chooser.chosen()) {
    const Job& taken = records.jobs.emplace_back(job(id));
    classes.insert(taken.cls);
    // Ended ones too: a retry avoids the nodes at fault (N4).
    for (const Attempt* attempt : attempts_of(id)) records.attempts.push_back(*attempt);
  }
  std::ranges::sort(records.attempts, {}, &Attempt::id);
  for (const ClassId id : classes) records.classes.push_back(classes_.at(id));
  for (const auto& [job, booking] : bookings_) records.bookings.push_back(booking);
  for (const auto& [beneficiary, open] : open_preemptions_) {
    for (const PreemptionId id : open) records.preemptions.push_back(preemptions_.at(id));
  }
  std::ranges::sort(records.preemptions, {}, &Preemption::id);
  return excerpt;
}

State StateExcerpt::state() && {
  auto state = State::from_stored(std::move(records));
  GPUQ_CHECK_MSG(state.has_value(), state ? "" : state.error().message);
  state->set_default_grace(default_grace);
  return std::move(*state);
}

}  // namespace gpuq
