#pragma once
// Transaction: the commands or decisions of one batch while they run. Emits events, applies them at
// once, collects what leaves after the commit. Lives on the engine's stack; one at a time.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/engine/command.h"
#include "core/engine/engine.h"
#include "core/engine/ports.h"
#include "core/model/plan.h"
#include "core/state/state.h"

namespace gpuq {

using Effect = std::function<void(AgentGateway&)>;

class Transaction {
 public:
  Transaction(State& state, const EngineConfig& config, Time now)
      : state_(state), config_(config), now_(now) {}

  /// An event of this batch's time, to be filled and given to emit().
  [[nodiscard]] Event event(EventType type, const std::string& actor) const;
  [[nodiscard]] Event job_event(EventType type, const std::string& actor, const Job& job) const;
  /// Numbers the event, applies it and keeps it for the commit. Gives a record to members of arrays
  /// that it changes, and lets members in where it leaves room (J5).
  void emit(Event event);
  void effect(Effect effect) { effects_.push_back(std::move(effect)); }
  /// Wants a tick at `when`.
  void wake_at(Time when) { wakeups_.push_back(when); }

  [[nodiscard]] State& state() { return state_; }
  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] const EngineConfig& config() const { return config_; }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] Fence fence(AttemptId attempt) const;
  [[nodiscard]] std::vector<Event>& events() { return events_; }
  [[nodiscard]] std::vector<Effect>& effects() { return effects_; }
  [[nodiscard]] const std::vector<Time>& wakeups() const { return wakeups_; }

 private:
  void renew_offer(const Event& cause, JobId array, std::int32_t before);

  State& state_;
  const EngineConfig& config_;
  Time now_;
  std::vector<Event> events_;
  std::vector<Effect> effects_;
  std::vector<Time> wakeups_;
  bool letting_in_ = false;
};

// The handlers, one source file a subject. Each validates first and changes nothing when it
// refuses.
Result<Reply> handle(Transaction& tx, const std::string& actor, const SubmitCommand& command);
Result<Reply> handle(Transaction& tx, const std::string& actor, const UpdateJobCommand& command);
Result<Reply> handle(Transaction& tx, const std::string& actor, const CancelCommand& command);
Result<Reply> handle(Transaction& tx, const std::string& actor, const ApplyPolicyCommand& command);
Result<Reply> handle(Transaction& tx, const std::string& actor, const SetNodeAdminCommand& command);
Result<Reply> handle(Transaction& tx, const std::string& actor, const RegisterNodeCommand& command);
Result<Reply> handle(Transaction& tx, const std::string& actor, const NodeLinkCommand& command);
Result<Reply> handle(Transaction& tx, const std::string& actor, const NodeHealthCommand& command);
Result<Reply> handle(Transaction& tx, const std::string& actor, const ReportCommand& command);
Result<Reply> handle(Transaction& tx, const std::string& actor, const TickCommand& command);

/// Carries out one decision of a plan that was made from exactly this state.
void carry_out(Transaction& tx, const Decision& decision);

/// Moves ended jobs beyond EngineConfig::keep_ended_jobs to the archive, oldest end first.
void archive_ended(Transaction& tx, std::size_t keep);

// What several handlers do to attempts.

/// How an attempt ended, for end_attempt().
struct AttemptEnd {
  AttemptOutcome outcome = AttemptOutcome::kFailed;
  std::int32_t exit_code = -1;
  bool lost_to_node = false;
  std::string reason;
};

/// Starts to stop a live attempt: SIGTERM now, SIGKILL after `grace` (P9). Emits kAttemptStopping
/// with `extra` changes. A stop under way keeps its start; its cause changes only to a user's
/// termination.
void stop_attempt(Transaction& tx, const std::string& actor, AttemptId id, StopCause cause,
                  Duration grace, const std::string& reason, std::vector<Change> extra = {});

/// Ends a live attempt and decides what becomes of its job: terminal or RUNNABLE again (P10, retry
/// strategy). Instances keep the states that are known of them: one that was given up has not
/// exited. Frees what bookings waited for. Emits the events.
void end_attempt(Transaction& tx, const std::string& actor, AttemptId id, const AttemptEnd& end);

/// Drops the booking that `id` may have; preemptions made for it end as voided by `rule`.
void give_up_booking(const State& state, JobId id, const std::string& rule,
                     std::vector<Change>& changes);

/// Ends a job that has no live attempt, with its booking, and what its end decides for jobs that
/// depend on it. Of an array only what has no record: it ends itself with its last member.
void end_waiting_job(Transaction& tx, const std::string& actor, JobId id,
                     const std::string& reason);
/// The first half of it. `cancelled`: somebody wanted its end.
void fail_waiting_job(Transaction& tx, const std::string& actor, JobId id,
                      const std::string& reason, bool cancelled);

/// J3: which of the wanted dependencies are open, and why one can never come true.
struct OpenDependencies {
  std::vector<Dependency> open;
  std::string never;  ///< Empty: all can.
};
Result<OpenDependencies> open_dependencies(const State& state,
                                           const std::vector<DependencyRequest>& wanted);

/// J3: the job has ended. Those that depend on it go on, or end with it, and so on from there; an
/// array ends with the last of its members.
void settle_dependants(Transaction& tx, JobId ended);

/// The state of a waiting job follows from what keeps it (J1 to J3, J5); RUNNABLE counts from
/// `now`.
void settle_waiting(const State& state, Job& job, Time now);

// Arrays (J5).

/// Puts a record first for each member without one that a change of `event` needs to have one, and
/// for those before it.
void make_members(const State& state, Event& event);
/// The arrays that `event` changes, themselves or in a member.
std::vector<JobId> arrays_touched(const State& state, const Event& event);
/// Lets members in that the limit of `array` kept back, while there is room.
void let_members_in(Transaction& tx, JobId array);
/// The array's members without a record have failed: they never will have one.
void drop_members(Transaction& tx, const std::string& actor, JobId array, const std::string& reason,
                  bool cancelled);
/// Ends an array all of whose members have ended; false if it has not, or had already.
bool end_array(Transaction& tx, JobId array);
/// The final exit code of a member that has ended.
std::int32_t end_of(const State& state, const Job& member);
/// Members whose record is in memory and that have not ended, ascending.
std::vector<JobId> live_members(const State& state, const JobArray& array);

/// Sends Stop to every instance of the attempt that has not exited.
void send_stops(Transaction& tx, const Attempt& attempt);
void send_start(Transaction& tx, const Attempt& attempt, std::int32_t instance);
/// Tells the agents that every instance's end is stored.
void send_forgets(Transaction& tx, const Attempt& attempt);

/// Ends the shares and queues that were deleted or replaced and have no job left. Emits.
void finish_deletions(Transaction& tx);

}  // namespace gpuq
