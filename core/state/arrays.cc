// Arrays in the state: what their members add up to, and how those without a record wait (J5).
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/state/state.h"

namespace gpuq {

namespace {

const ArrayMembers kNoMembers;

// J5: these take one of the places that the limit allows.
std::int32_t let_in(const MemberCounts& counts) {
  return counts.in(JobState::kRunnable) + counts.in(JobState::kScheduled) +
         counts.in(JobState::kStarting) + counts.in(JobState::kRunning);
}

bool waits(const Job& job) {
  return job.state == JobState::kPending || job.state == JobState::kRunnable;
}

// Waits for the limit alone.
bool is_limited(const Job& job) {
  if (job.state != JobState::kPending || !job.over_array_limit) return false;
  return !job.held && job.retry_at == kNoTime && job.depends_on.empty();
}

}  // namespace

void State::put(const PutArray& change) {
  JobArray& array = arrays_[change.record.id];
  if (array.made != change.record.made) ++members_made_;
  array = change.record;
  touched_.arrays.insert(change.record.id);
  refresh_offer(change.record.id);
}

void State::index_member(const JobArray& array, const Job& job) {
  ArrayMembers& members = members_[array.id];
  ++members.counts.by_state[static_cast<std::size_t>(job.state)];
  if (is_limited(job)) members.limited.insert(wait_key(job));
  if (waits(job)) members.waiting.insert(job.id);
}

void State::unindex_member(const JobArray& array, const Job& job) {
  ArrayMembers& members = members_[array.id];
  --members.counts.by_state[static_cast<std::size_t>(job.state)];
  members.limited.erase(wait_key(job));
  members.waiting.erase(job.id);
}

void State::withdraw(const ArrayMembers::Offer& offer) {
  if (offer.count == 0) return;
  WaitingShare& share = waiting_.at(offer.share);
  share.count -= offer.count;
  const auto group = share.groups.find(offer.group);
  group->second.jobs.erase(offer.first);
  group->second.spans.erase(offer.first);
  if (group->second.jobs.empty()) share.groups.erase(group);
}

// The members without a record that may start are one entry among the waiting jobs.
void State::refresh_offer(JobId id) {
  const JobArray& array = arrays_.at(id);
  const auto parent = jobs_.find(id);
  if (parent == jobs_.end()) return;  // It comes next.
  ArrayMembers::Offer offer;
  offer.count = on_offer(array);
  if (offer.count > 0) {
    offer.share = parent->second.share;
    offer.group = group_of(parent->second);
    offer.first = wait_key(parent->second);
    offer.first.id = array.member(array.made);
  }
  ArrayMembers& members = members_[id];
  if (offer == members.offer) return;
  ArrayMembers::Offer old = std::exchange(members.offer, offer);
  if (offer.count > 0) {
    WaitingShare& share = waiting_[offer.share];
    const bool same_place = old.count > 0 && old.first == offer.first;
    share.count += offer.count - (same_place ? std::exchange(old.count, 0) : 0);
    WaitGroup& group = share.groups[offer.group];
    group.jobs.insert(offer.first);
    group.spans[offer.first] = offer.count;
  }
  withdraw(old);  // Last: a group that it empties loses its reason.
}

void State::drop_array(JobId id) {
  const auto array = arrays_.find(id);
  if (array == arrays_.end()) return;
  const MemberCounts& counts = members_of(id).counts;
  GPUQ_CHECK_MSG(counts.ended() == 0 && let_in(counts) == 0, "an array before its members");
  touched_.arrays.erase(id);
  touched_.gone_arrays.push_back(array->second);
  members_.erase(id);
  arrays_.erase(array);
}

const JobArray* State::find_array(JobId id) const {
  const auto found = arrays_.find(id);
  return found == arrays_.end() ? nullptr : &found->second;
}

const JobArray* State::array_of(JobId id) const {
  auto after = arrays_.lower_bound(id);
  if (after == arrays_.begin()) return nullptr;
  const JobArray& array = std::prev(after)->second;
  return array.has_member(id) ? &array : nullptr;
}

const ArrayMembers& State::members_of(JobId array) const {
  const auto found = members_.find(array);
  return found == members_.end() ? kNoMembers : found->second;
}

bool State::lets_in(const JobArray& array, const WaitKey& key) const {
  if (array.range.limit == 0) return true;
  const ArrayMembers& members = members_of(array.id);
  const std::int32_t room = array.range.limit - let_in(members.counts);
  if (room <= 0) return false;
  return members.offer.count < room || key < members.offer.first;
}

std::int32_t State::on_offer(const JobArray& array) const {
  const auto parent = jobs_.find(array.id);
  if (parent == jobs_.end() || parent->second.state != JobState::kRunnable) return 0;
  if (array.range.limit == 0) return array.unmade();
  const std::int32_t room = array.range.limit - let_in(members_of(array.id).counts);
  return std::clamp(room, 0, array.unmade());
}

MemberCounts State::member_counts(const JobArray& array) const {
  MemberCounts counts = members_of(array.id).counts;
  const auto add = [&counts](JobState state, std::int32_t members) {
    counts.by_state[static_cast<std::size_t>(state)] += members;
  };
  add(JobState::kSucceeded, array.archived_succeeded);
  add(JobState::kFailed, array.archived_failed);
  const std::int32_t offered = on_offer(array);
  add(JobState::kRunnable, offered);
  add(JobState::kPending, array.unmade() - offered);
  if (array.dropped()) add(JobState::kFailed, array.size() - array.made);
  return counts;
}

JobState State::shown_state(const Job& job) const {
  const JobArray* array = is_terminal(job.state) ? nullptr : find_array(job.id);
  return array == nullptr ? job.state : member_counts(*array).state();
}

// A member as it follows from its array.
const Job* State::find_unmade(JobId id) const {
  if (const auto known = unmade_.find(id); known != unmade_.end()) return &known->second;
  const JobArray* array = array_of(id);
  if (array == nullptr || array->position(id) < array->made) return nullptr;
  Job job = jobs_.at(array->id);
  job.id = id;
  if (array->dropped()) {
    job.state = JobState::kFailed;
    job.ended_at = array->dropped_at;
    job.exit_code = -1;
  } else if (job.state == JobState::kRunnable) {
    job.over_array_limit = array->position(id) - array->made >= on_offer(*array);
    job.state = waiting_state(job);
  }
  return &unmade_.emplace(id, std::move(job)).first->second;
}

Reason State::why_pending(const Job& job) const {
  Reason reason;
  if (!job.depends_on.empty()) {
    std::set<JobId> jobs;
    for (const Dependency& dependency : job.depends_on) jobs.insert(dependency.job);
    reason.code = ReasonCode::kDependency;
    reason.jobs_in_all = static_cast<std::int32_t>(jobs.size());
    for (const JobId other : jobs) {
      if (reason.jobs.size() < kMaxJobsNamed) reason.jobs.push_back(other);
    }
  } else if (job.held) {
    reason.code = ReasonCode::kHeldByUser;
  } else if (job.retry_at != kNoTime) {
    reason.code = ReasonCode::kRetryBackoff;
    reason.when = job.retry_at;
  } else {
    const JobArray* array = array_of(job.id);
    GPUQ_CHECK(array != nullptr);
    reason.code = ReasonCode::kArrayLimit;
    reason.other = array->id;
    reason.jobs_in_all = array->range.limit;
  }
  return reason;
}

// That of its first member that waits; one that waits for capacity before the others.
Reason State::reason_of_array(const JobArray& array) const {
  JobId shown;
  for (const JobId id : members_of(array.id).waiting) {
    const bool runnable = jobs_.at(id).state == JobState::kRunnable;
    if (!shown.valid() || runnable) shown = id;
    if (runnable) break;
  }
  const bool offers = on_offer(array) > 0;
  const bool waits_for_capacity = shown.valid() && jobs_.at(shown).state == JobState::kRunnable;
  if ((offers && !waits_for_capacity) || (!shown.valid() && array.unmade() > 0)) {
    shown = array.member(array.made);
  }
  return shown.valid() ? reason_of(shown) : Reason();
}

}  // namespace gpuq
