// The pass and the usage of users (O10): counted at the moments between two decisions, when the
// ledger holds just what is decided.
#include <algorithm>

#include "core/sched/pass.h"

namespace gpuq::sched {

const UsageValue* Pass::usage_of(const Share& share, const Job& job) {
  if (share.def.user_order != UserOrder::kFair) return nullptr;
  const UsageKey key = user_key(view_, job);
  const auto [it, fresh] = users_.try_emplace(key);
  if (fresh) it->second = counted_usage(view_, key, now_);
  return &it->second;
}

Turn Pass::turn_of_job(const Job& job) {
  const UsageValue* usage = usage_of(*cursor_of(job.share).share, job);
  return turn_of(wait_key(job), usage != nullptr ? *usage : UsageValue());
}

void Pass::count_usage() {
  if (counted_at_ == changes_) return;
  counted_at_ = changes_;
  for (auto& [key, usage] : users_) usage = counted_usage(view_, key, now_);
}

// Groups of one class differ in their users only: what the first of them finds no way to do none
// of them can (O7). A single job has something to itself and answers for itself alone.
void Pass::fail_alike(ShareCursor& cursor, const GroupCursor& failed, Phase phase) {
  const auto p = static_cast<std::size_t>(phase);
  for (GroupCursor& group : cursor.groups) {
    const bool alike = failed.group != nullptr && group.group != nullptr &&
                       group.key.cls == failed.key.cls && !group.used_up;
    if (alike || &group == &failed) group.failed[p] = true;
  }
}

// When time alone brings the user of `group` before that of the head that holds: then what is kept
// for the head is so no longer. Of two users whose holdings stay the same the order changes once.
Time Pass::overtakes_head_at(const ShareCursor& cursor, const GroupCursor& group) {
  if (!cursor.hold.head || group.usage == nullptr) return kNever;
  if (group.group == nullptr || group.never) return kNever;
  const WaitKey& head = *cursor.hold.head;
  const WaitKey& other = group.head();
  if (head.negated_priority != other.negated_priority) return kNever;
  const UsageKey head_user = user_key(view_, view_.job(head.id));
  const UsageKey other_user = user_key(view_, view_.job(other.id));
  const auto is_before = [&](Time at) {
    return turn_of(other, counted_usage(view_, other_user, at)) <
           turn_of(head, counted_usage(view_, head_user, at));
  };
  Time late = std::min(plan_.next_wakeup, now_ + 64 * kMaxHalfLife);
  Time early = now_;
  if (is_before(early) || !is_before(late)) return kNever;
  while (late - early > Duration(1)) {
    const Time middle = early + (late - early) / 2;
    (is_before(middle) ? late : early) = middle;
  }
  return late;
}

// One answer for all groups of a class whose first jobs have one priority (O7); the head that holds
// is not behind itself.
WaitVerdict Pass::answer_for(const ShareCursor& cursor, const GroupCursor& group,
                             Answers& answers) {
  if (group.recalled != nullptr) return *group.recalled;
  const JobId job = group.head().id;
  const bool holds = cursor.hold.head && cursor.hold.head->id == job;
  if (group.group == nullptr || holds) return why_waits(view_.job(job));
  const std::pair shape(group.key.cls, group.head().negated_priority);
  const auto [known, fresh] = answers.try_emplace(shape, &group.verdict);
  if (!fresh) return *known->second;
  return why_waits(view_.job(job));
}

}  // namespace gpuq::sched
