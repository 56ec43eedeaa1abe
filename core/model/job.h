#pragma once
// Jobs, their interned classes and their attempts. Plain values: the state owns them, the store
// writes them, the planner reads them. What the scheduler does not need (command, environment
// variables, working directory) is the job's spec: bytes that stay in the store.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/amount.h"
#include "core/base/ids.h"
#include "core/base/time.h"

namespace gpuq {

enum class JobState : std::uint8_t {
  kSubmitted = 1,
  kPending = 2,
  kRunnable = 3,
  kScheduled = 4,
  kStarting = 5,
  kRunning = 6,
  kSucceeded = 7,
  kFailed = 8,
};

const char* to_string(JobState state);  ///< "SUBMITTED" ... "FAILED"

constexpr bool is_terminal(JobState s) { return s >= JobState::kSucceeded; }
/// Holds an allocation.
constexpr bool is_active(JobState s) {
  return s == JobState::kScheduled || s == JobState::kStarting || s == JobState::kRunning;
}

inline constexpr std::int32_t kMaxPriority = 9999;
inline constexpr std::int32_t kMaxInstances = 100'000;
inline constexpr std::int32_t kMaxNodeLosses = 10;  ///< Attempts lost to hardware before FAILED.
inline constexpr Duration kDefaultGrace{30'000};
inline constexpr Duration kMaxBackoff{600'000};

/// `count` of one unit for every instance.
struct UnitRequest {
  UnitId unit;
  Amount count;
  bool operator==(const UnitRequest&) const = default;
  auto operator<=>(const UnitRequest&) const = default;
};

enum class RetryAction : std::uint8_t { kRetry = 1, kExit = 2 };

/// One evaluate_on_exit rule: both patterns must match; an empty one matches everything.
struct ExitRule {
  std::string on_status_reason;  ///< Glob with `*` and `?`.
  std::string on_exit_code;      ///< Glob over the decimal exit code.
  RetryAction action = RetryAction::kRetry;
  bool operator==(const ExitRule&) const = default;
  auto operator<=>(const ExitRule&) const = default;
};

/// Everything of a job that scheduling and retrying depend on, shared by all jobs that have it
/// equal (O7 tries one of them per pass). Immutable; interned by the state, `id` excluded from
/// equality.
struct JobClass {
  ClassId id;
  std::vector<UnitRequest> units;   ///< In order of preference (Q9); at least one.
  std::int32_t instances = 1;       ///< 1..kMaxInstances
  std::int32_t cpus = 0;            ///< Per instance, beside what the unit's shape fixes.
  std::int64_t memory_mib = 0;      ///< Per instance, likewise.
  std::string topology_label;       ///< N2: a gang keeps to nodes that agree in it; "" = anywhere.
  bool topology_required = false;   ///< N2: in one domain or not at all.
  std::optional<Duration> timeout;  ///< Per attempt, from RUNNING.
  std::optional<Duration> grace;    ///< P9
  bool preemptible = true;          ///< P11
  bool exit_zero_after_stop_succeeds = false;      ///< P10
  std::optional<std::int32_t> preemption_retries;  ///< P10; unset = no limit.
  std::int32_t max_attempts = 1;                   ///< 1..10
  std::vector<ExitRule> exit_rules;                ///< At most 5; first match decides.
  Duration backoff{0};                             ///< J2: before the first retry; 0..10 min.

  /// Total order over everything but the id; interning and determinism rest on it.
  [[nodiscard]] bool same_as(const JobClass& other) const;
  [[nodiscard]] bool before(const JobClass& other) const;
};

/// How a job must end for one that depends on it. Numbers are stored.
enum class DependencyCondition : std::uint8_t { kSucceeded = 1, kFailed = 2, kEnded = 3 };
const char* to_string(DependencyCondition condition);  ///< "SUCCEEDED", "FAILED", "ENDED"

struct Dependency {
  JobId job;
  DependencyCondition condition = DependencyCondition::kSucceeded;
  bool operator==(const Dependency&) const = default;
};

inline constexpr std::size_t kMaxDependencies = 100;

/// J3: whether a job that ended in `end` is what `condition` asks for.
constexpr bool is_met(DependencyCondition condition, JobState end) {
  if (condition == DependencyCondition::kEnded) return is_terminal(end);
  return end ==
         (condition == DependencyCondition::kFailed ? JobState::kFailed : JobState::kSucceeded);
}

struct Job {
  JobId id;  ///< Also the submit sequence (O1).
  ClassId cls;
  QueueId queue;
  ShareId share;
  std::int32_t priority = 0;
  JobState state = JobState::kRunnable;
  bool terminating = false;           ///< A user's cancel is under way; never requeued.
  bool held = false;                  ///< J1: PENDING until its user releases it.
  bool over_array_limit = false;      ///< J5: PENDING until its array's limit has room.
  Time retry_at = kNoTime;            ///< J2: PENDING until then; kNoTime = no back-off runs.
  std::int32_t attempt_count = 0;     ///< Attempts ever started; the next one's number is +1.
  std::int32_t counted_attempts = 0;  ///< Those that used up the retry strategy.
  std::int32_t node_losses = 0;
  std::int32_t preemptions = 0;
  AttemptId attempt;  ///< The live one, 0 when none.
  /// F2: how long its user expects an attempt to run. A hint for forecasts, binding nobody; not in
  /// the class, so that jobs which differ in nothing else are tried once per pass (O7).
  std::optional<Duration> expected_run_time;
  Time created_at{};
  Time runnable_since{};
  Time ended_at{};  ///< Only when terminal.
  /// Of the last attempt that had one; 128 + signal; -1 none. Of an array that has ended: the
  /// highest of its members' final ones.
  std::int32_t exit_code = -1;
  std::string name;
  std::string user;
  std::string status_reason;
  std::vector<Dependency>
      depends_on;  ///< J3: PENDING until it is empty; what has come true is gone.
  bool operator==(const Job&) const = default;
};

/// J2: the wait after the attempt that was the `counted`th (from 1) to use up the retry strategy.
Duration backoff_after(const JobClass& cls, std::int32_t counted);

/// PENDING while something keeps a job without an attempt from RUNNABLE, else RUNNABLE.
inline JobState waiting_state(const Job& job) {
  const bool kept =
      job.held || job.retry_at != kNoTime || !job.depends_on.empty() || job.over_array_limit;
  return kept ? JobState::kPending : JobState::kRunnable;
}

/// Part of one device. `awaits` is the attempt whose exit frees it; 0 = it is free (or in use by
/// us).
struct DeviceUse {
  std::int32_t device = 0;  ///< Index into Node::devices.
  std::int32_t milli = 1000;
  AttemptId awaits;
  bool operator==(const DeviceUse&) const = default;
};

/// CPUs and memory that a booking gets when `attempt` has exited.
struct AwaitedHost {
  AttemptId attempt;
  std::int32_t cpus = 0;
  std::int64_t memory_mib = 0;
  bool operator==(const AwaitedHost&) const = default;
};

/// What one instance uses (allocation) or will use (booking) on one node.
struct InstanceUse {
  NodeId node;
  std::vector<DeviceUse> devices;
  std::int32_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::vector<AwaitedHost> awaited;  ///< Bookings only; sums stay within cpus and memory_mib.
  bool operator==(const InstanceUse&) const = default;
};

enum class InstanceState : std::uint8_t {
  kSent = 1,      ///< Ordered, no word yet.
  kStarting = 2,  ///< The agent prepares it.
  kPrepared = 3,  ///< Waits at the gang's barrier.
  kRunning = 4,
  kExited = 5,
};

/// Why an attempt is being stopped.
enum class StopCause : std::uint8_t {
  kNone = 0,
  kPreempted = 1,
  kTerminated = 2,  ///< By a user or an operator.
  kTimeout = 3,
  kNodeDrain = 4,
  kGangMember = 5,  ///< Another instance ended badly.
};

enum class AttemptOutcome : std::uint8_t {
  kNone = 0,  ///< Still live.
  kSucceeded = 1,
  kFailed = 2,       ///< Ended badly by itself.
  kStartFailed = 3,  ///< Never ran: command, directory, refusal.
  kPreempted = 4,
  kTerminated = 5,
  kTimedOut = 6,
  kLost = 7,  ///< Node, agent or supervisor gone; the exit is unknown.
};

const char* to_string(InstanceState state);
const char* to_string(StopCause cause);
const char* to_string(AttemptOutcome outcome);

struct AttemptInstance {
  InstanceUse use;
  InstanceState state = InstanceState::kSent;
  std::int32_t exit_code = -1;  ///< 128 + signal; -1 unknown.
  bool signalled = false;       ///< A signal had been sent before its exit was reaped (P10).
  bool start_failed = false;    ///< Never ran.
  bool operator==(const AttemptInstance&) const = default;
};

/// One try at running a job.
struct Attempt {
  AttemptId id;
  JobId job;
  std::int32_t number = 1;  ///< Counts within the job: "17#2".
  ShareId share;
  UnitId unit;
  Amount demand;
  JobState state = JobState::kScheduled;  ///< SCHEDULED, STARTING, RUNNING; unchanged by a stop.
  StopCause stop = StopCause::kNone;
  AttemptOutcome outcome = AttemptOutcome::kNone;
  bool lost_to_node = false;  ///< Costs the job no retry.
  Time scheduled_at{};
  Time running_at = kNever;
  Time stop_at = kNever;  ///< When the stop was decided.
  Duration grace{0};      ///< Of the stop under way.
  Time ended_at = kNever;
  std::int32_t exit_code = -1;
  std::string status_reason;
  std::vector<AttemptInstance> instances;
  bool operator==(const Attempt&) const = default;

  [[nodiscard]] bool live() const { return outcome == AttemptOutcome::kNone; }
  [[nodiscard]] bool stopping() const { return live() && stop != StopCause::kNone; }
};

/// The job's end in one number: 0, its exit code, 124 time limit, 125 preempted for good or lost, 1
/// where nothing ran. `last`: its last attempt, or null. Nothing before the end.
std::optional<std::int32_t> final_exit_code(const Job& job, const Attempt* last);

/// Which right a preemption rests on.
enum class PreemptRule : std::uint8_t { kCrossShare = 1, kInShare = 2 };
const char* to_string(PreemptRule rule);  ///< "CROSS_SHARE", "IN_SHARE"

/// P7: everything a job will use, reserved for it. One per job. `devices` and `awaited` may cover
/// less than the job needs after a takeover (`lacking`): then the job chooses anew what it lacks.
struct Booking {
  JobId job;
  ShareId share;
  UnitId unit;
  Amount demand;  ///< What it counts as in full.
  bool lacking = false;
  Time made_at{};
  std::vector<InstanceUse> instances;
  std::vector<AttemptId> victims;  ///< Live attempts whose exit it waits for, ascending.
  bool operator==(const Booking&) const = default;
};

enum class PreemptionEnd : std::uint8_t {
  kOpen = 0,
  kGiven = 1,   ///< The freed capacity went to `beneficiary`.
  kVoided = 2,  ///< `end_rule` says by which rule.
  kLost = 3,    ///< The node went with it.
};

/// P10: who asked, under which rule, when, what was lost. A takeover (P7) changes `beneficiary`.
struct Preemption {
  PreemptionId id;
  AttemptId attempt;
  JobId job;
  JobId beneficiary;
  PreemptRule rule = PreemptRule::kCrossShare;
  PreemptionEnd end = PreemptionEnd::kOpen;
  std::int32_t handed = 0;  ///< How often it was handed to another job.
  Time at{};
  std::int64_t lost_unit_ms = 0;  ///< Units (milli) x ms / 1000 of lost work.
  std::string end_rule;
  bool operator==(const Preemption&) const = default;
};

}  // namespace gpuq
