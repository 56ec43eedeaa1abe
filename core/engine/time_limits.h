#pragma once
// J4: how long jobs have been RUNNABLE for the reasons that their queues limit. Told of every event
// and of every state at rest; looks at groups and at the jobs that events name, never at all that
// wait. Not durable: a start of the server sets the clocks anew. Owned by the engine, its thread.
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/state/state.h"

namespace gpuq {

class TimeLimits {
 public:
  /// `event` was applied: its job may wait from now on.
  void note(const Event& event);
  /// A pass found nothing to decide: its reasons hold at `now`.
  void see(const State& state, Time now);
  /// After see(): the jobs whose time is up, ascending, with the reason.
  [[nodiscard]] std::vector<std::pair<JobId, ReasonCode>> overdue(const State& state);
  /// When the next one will be, if nothing changes.
  [[nodiscard]] Time next_due(Time now) const;

 private:
  /// Since when, on the clock that stands still while a node is silent.
  struct Entry {
    ReasonCode code = ReasonCode::kNone;
    Time runnable_since{};  ///< Tells one stay in RUNNABLE from the next.
    Duration since{0};
    bool operator==(const Entry&) const = default;
  };
  struct HeadClock {
    JobId job;
    Entry entry;
    Duration limit{0};
  };
  using Line = std::deque<std::pair<JobId, Entry>>;  ///< By `since`.

  void run_clock(const State& state, Time now);
  void see_share(const State& state, const Share& share, const QueueDef& queue);
  void see_head(const State& state, const Share& share, const QueueDef& queue);
  void track(const State& state, JobId id, ReasonCode code);
  [[nodiscard]] Duration clock_of(const State& state, JobId id, const Entry& entry) const;
  [[nodiscard]] bool waits_still(const State& state, JobId id, const Entry& entry) const;
  void drop_gone(const State& state);

  bool limited_ = false;  ///< Some queue has a limit.
  bool stands_ = true;    ///< The clock does: a node is silent.
  Time last_{};
  Duration clock_{0};
  std::set<JobId> fresh_;  ///< Named by events since the last see().
  std::map<std::pair<ShareId, GroupKey>, ReasonCode> groups_;
  /// Of a MISCONFIGURATION. An array stands for its members without a record.
  std::map<JobId, Entry> tracked_;
  std::uint64_t members_made_ = 0;  ///< What `groups_` knows of.
  bool look_again_ = false;         ///< Members without a record were given some.
  std::map<std::pair<QueueId, ReasonCode>, Line> lines_;
  std::map<std::pair<QueueId, ReasonCode>, Duration> limits_;
  std::map<ShareId, HeadClock> heads_;
};

}  // namespace gpuq
