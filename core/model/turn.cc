#include "core/model/turn.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace gpuq {

namespace {

// Of one user's jobs, the first that does not come before `mine`.
WaitKey bound_of(const Turn& mine, UsageValue usage) {
  if (usage < mine.usage) return {mine.negated_priority + 1, kNoTime, JobId()};
  if (mine.usage < usage) return {mine.negated_priority, kNoTime, JobId()};
  return {mine.negated_priority, mine.created_at, mine.id};
}

std::int64_t jobs_before(const WaitGroup& group, const WaitKey& bound) {
  std::int64_t before = std::distance(group.jobs.begin(), group.jobs.lower_bound(bound));
  for (const auto& [first, members] : group.spans) {  // J5: the first of each is counted already.
    if (!(first < bound)) continue;
    const bool within = std::tie(first.negated_priority, first.created_at) ==
                        std::tie(bound.negated_priority, bound.created_at);
    const std::int64_t reach = within ? bound.id.value - first.id.value : members;
    before += std::min<std::int64_t>(members, reach) - 1;
  }
  return before;
}

}  // namespace

Turn turn_of(const StateView& view, const Job& job, Time now) {
  const Share* share = view.policy().share(job.share);
  const bool fair = share != nullptr && share->def.user_order == UserOrder::kFair;
  return turn_of(wait_key(job),
                 fair ? counted_usage(view, user_key(view, job), now) : UsageValue());
}

UsageKey user_key(const StateView& view, const Job& job) {
  return {job.share, UsageKind::kUser, view.job_class(job.cls).units.front().unit, job.user};
}

UsageValue counted_usage(const StateView& view, const UsageKey& user, Time now) {
  const Amount held = view.scratch().held_by(user.share, user.unit, user.name, View::kAfter);
  return with_advance(view.usage(user, now), held);
}

std::int64_t jobs_before(const StateView& view, const Job& job, Time now) {
  const WaitingShare& waiting = view.waiting(job.share);
  const Turn mine = turn_of(view, job, now);
  std::int64_t before = std::ranges::count_if(waiting.booked, [&](const WaitKey& key) {
    return turn_of(view, view.job(key.id), now) < mine;
  });
  for (const auto& [key, group] : waiting.groups) {
    const UsageValue usage = turn_of(view, view.job(group.jobs.begin()->id), now).usage;
    before += jobs_before(group, bound_of(mine, usage));
  }
  return before;
}

}  // namespace gpuq
