#pragma once
// Pass: one run of the planner. Holds the decisions so far and the scratch ledger with their
// effects, so that every test sees what was decided before. Lives on make_plan's stack.
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/model/plan.h"
#include "core/model/turn.h"
#include "core/model/view.h"
#include "core/sched/ask.h"
#include "core/sched/explain.h"
#include "core/sched/holds.h"
#include "core/sched/quota.h"
#include "core/sched/victims.h"

namespace gpuq::sched {

/// The waiting jobs of one class in one share, and where it matters of one user, taken from the
/// front.
struct GroupCursor {
  GroupKey key;
  const WaitGroup* group = nullptr;  ///< Null: a single job that lost a part of its booking (P7).
  std::set<WaitKey>::const_iterator next;  ///< Of these `offset` members were passed by (J5).
  std::int32_t offset = 0;
  WaitKey current;  ///< The job that is looked at.
  bool used_up = false;
  bool never = false;               ///< O4
  bool failed[2] = {false, false};  ///< By phase; the rest of the group would fail too (O7).
  /// It failed in the last pass and nothing has changed since.
  const WaitVerdict* recalled = nullptr;
  WaitVerdict verdict;                ///< Of this pass, once it is explained.
  const UsageValue* usage = nullptr;  ///< Of the user (O10); null: none counts.
  [[nodiscard]] const WaitKey& head() const { return current; }
  [[nodiscard]] Turn turn() const {
    return turn_of(head(), usage != nullptr ? *usage : UsageValue());
  }

  void begin();  ///< To the group's first job.
  void step();   ///< To the one behind it.
  [[nodiscard]] bool at_end() const { return next == group->jobs.end(); }

 private:
  void settle();
};

/// O5, O6: the head of a share that holds capacity.
struct HeadHold {
  std::optional<WaitKey> head;
  bool known = false;           ///< `for_all` has been looked for.
  std::optional<Hold> for_all;  ///< O6: it binds jobs of all shares.
  std::optional<Hold> own;      ///< O5: made on demand, at change number `made_at`.
  std::uint64_t made_at = 0;
  std::optional<Time> quota_at;  ///< Likewise, at `quota_made_at`.
  std::uint64_t quota_made_at = 0;
};

struct ShareCursor {
  const Share* share = nullptr;
  std::deque<GroupCursor> groups;  ///< Grows while others of it are looked at (P7).
  bool done[2] = {false, false};
  bool paused = false;  ///< O2: an earlier job could start now by borrowing.
  HeadHold hold;
  // O2's rank in phase A, taken anew after every act.
  Amount held;
  Amount cap;
  Time head_created{};
};

/// O2 (B): where a share stands in the queue's order for idle capacity.
struct BorrowRank {
  /// With `cap` the ratio that counts; equal for all in FIFO order. An amount, or usage in its
  /// fixed point.
  Amount borrowed;
  Amount cap;
  Amount without_cap;  ///< Between shares with cap 0: their usage.
  Time created_at{};
  JobId id;
  [[nodiscard]] bool before(const BorrowRank& other) const;
};

enum class Phase : std::uint8_t { kOwners = 0, kBorrowers = 1 };
enum class Outcome : std::uint8_t { kActed, kFailed, kPaused };

class Pass {
 public:
  Pass(const StateView& view, Time now, PlanCache& cache);
  Plan run();

 private:
  // bookings.cc
  void settle_bookings(EnvId env);
  [[nodiscard]] const char* void_rule(const Holding& booking) const;
  void start_on_booking(const Booking& booking);
  [[nodiscard]] bool may_start_on_booking(const Ask& ask,
                                          const std::vector<InstanceUse>& uses) const;
  [[nodiscard]] bool try_takeover(const Ask& ask);
  [[nodiscard]] bool may_take_over(const Ask& ask, const Holding& booking) const;

  // fair.cc
  using Answers = std::map<std::pair<ClassId, std::int32_t>, const WaitVerdict*>;
  [[nodiscard]] const UsageValue* usage_of(const Share& share, const Job& job);
  [[nodiscard]] Turn turn_of_job(const Job& job);
  void count_usage();
  [[nodiscard]] WaitVerdict answer_for(const ShareCursor& cursor, const GroupCursor& group,
                                       Answers& answers);
  [[nodiscard]] Time overtakes_head_at(const ShareCursor& cursor, const GroupCursor& group);
  static void fail_alike(ShareCursor& cursor, const GroupCursor& failed, Phase phase);

  // pass.cc
  void run_queue(const Queue& queue, const Environment& env);
  void open_share(const Share& share);
  bool run_owners();
  bool run_borrowers();
  [[nodiscard]] std::vector<ShareCursor*> shares_by_need();
  void recall_failures();
  void remember_failures();
  [[nodiscard]] const WaitKey* first_borrower(ShareCursor& cursor);
  [[nodiscard]] BorrowRank rank_of(const WaitKey& first);
  bool act_in_share(ShareCursor& cursor, Phase phase);
  [[nodiscard]] std::vector<GroupCursor*> in_order(ShareCursor& cursor, Phase phase) const;
  void advance(GroupCursor& cursor);
  [[nodiscard]] const WaitKey* head_of(const ShareCursor& cursor) const;
  void clear_failures();
  [[nodiscard]] bool could_borrow(const Job& job);
  void explain_all();
  [[nodiscard]] WaitVerdict why_waits(const Job& job);
  [[nodiscard]] WaitVerdict verdict_on(const Job& job);
  [[nodiscard]] std::vector<std::pair<ShareId, JobId>> holding_heads() const;

  // head.cc
  void find_holds();
  void renew_hold(ShareCursor& cursor);
  void learn_holds();
  void hold_for_all(ShareCursor& cursor);
  [[nodiscard]] bool owns_without_passers(const Ask& ask, Time since, Time until);
  [[nodiscard]] std::optional<WaitKey> holding_head(const ShareCursor& cursor);
  [[nodiscard]] static Time holds_since(const ShareCursor& cursor, const Job& head);
  [[nodiscard]] std::vector<const Hold*> holds_obeyed(const Job& job);
  [[nodiscard]] const Hold& own_hold(ShareCursor& cursor);
  [[nodiscard]] ShareCursor& cursor_of(ShareId share);
  [[nodiscard]] bool behind_head(const Job& job);
  [[nodiscard]] bool fits_beside_head(const Ask& ask, const std::function<bool()>& test);
  [[nodiscard]] Time head_quota_at(ShareCursor& cursor);
  [[nodiscard]] bool may_end_in_time(const Ask& ask);
  [[nodiscard]] bool ends_in_time(const Ask& ask, const Hold& hold);
  [[nodiscard]] std::optional<std::vector<InstanceUse>> place_start(const Ask& ask,
                                                                    bool owners_only);
  [[nodiscard]] JobId held_for(const Job& job);

  // attempt.cc
  Outcome try_job(JobId job, Phase phase);
  /// Takes what the job kept of its booking (P7) off the ledger, while it is looked at.
  std::optional<Holding> lift_kept(JobId job);
  void started_on(const Holding& booking);
  Outcome try_asks(const std::vector<Ask>& asks, Phase phase);
  bool try_start(const Ask& ask, bool owners_only);
  [[nodiscard]] bool could_start(const Ask& ask);
  bool try_book_stopping(const Ask& ask);
  [[nodiscard]] std::vector<AttemptId> quota_waits(const Ask& ask) const;
  [[nodiscard]] bool could_make_room(const Ask& ask);
  [[nodiscard]] bool could_evict(const Ask& ask) const;
  [[nodiscard]] Time first_old_enough(const Ask& ask);
  [[nodiscard]] bool has_lower_own(const Ask& ask) const;
  [[nodiscard]] bool someone_is_over(const Ask& ask) const;
  [[nodiscard]] std::optional<Means> find_means(const Ask& ask, Phase phase, MinRuntime protection,
                                                VictimSet& set) const;
  [[nodiscard]] std::optional<VictimSet> protected_victims(const Ask& ask);
  bool try_preempt(const Ask& ask, Phase phase);
  bool carry_out(const Ask& ask, const VictimSet& set, const char* rule);
  [[nodiscard]] std::set<AttemptId> preferred(const Ask& ask,
                                              const std::vector<Eviction>& evictions) const;
  void start(const Ask& ask, std::vector<InstanceUse> uses, const char* rule);
  void void_for(const Ask& ask, const Victim& victim);
  void book(const Ask& ask, std::vector<InstanceUse> uses, std::vector<Eviction> evictions,
            std::vector<AttemptId> waits, const char* rule, Right right);
  void void_booking(JobId job, const char* rule, JobId handed_to);
  void take_back(HoldingKey fresh);
  void wait_again(JobId job);
  void add(Decision decision);
  [[nodiscard]] Decision decision(DecisionKind kind, const Ask& ask, const char* rule) const;

  const StateView& view_;
  Ledger& ledger_;
  Time now_;
  PlanCache& cache_;
  Plan plan_;
  std::vector<bool> taken_back_;  ///< By decision index: O8.
  bool holds_known_ = false;      ///< Every head's `known`.
  std::uint64_t changes_ = 0;     ///< Grows with every change of the ledger that stays.
  EnvId env_;
  QueueId queue_;
  IdleOrder idle_order_ = IdleOrder::kFifo;  ///< Of the queue.
  bool min_runtime_counts_ = false;          ///< Some share of the queue has one (P11).
  std::vector<ShareCursor> shares_;
  std::map<UsageKey, UsageValue> users_;  ///< O10: of those who wait, as of change `counted_at_`.
  std::uint64_t counted_at_ = 0;
  /// Starts of this pass: holding -> decision index. The latest comes first.
  std::map<HoldingKey, std::size_t> fresh_;
  std::map<HoldingKey, Holding> on_booking_;  ///< Of these, on which booking.
  std::set<JobId> acted_;                     ///< Started or booked in this pass.
  std::set<JobId> barred_;                    ///< Taken back: not again in this pass.
  JobId lifted_;                              ///< The job of lift_kept().
  bool retry_ = false;  ///< A start was taken back: the job that wanted its place tries again.
};

}  // namespace gpuq::sched
