#pragma once
// Commands: what callers, agents and timers ask of the engine. Converted from the wire by
// server/rpc or made by the simulator; validated against the state by the engine, one by one.
// Values.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/base/shared_bytes.h"
#include "core/model/event.h"

namespace gpuq {

/// J3 as asked for.
struct DependencyRequest {
  JobId job;
  DependencyCondition condition = DependencyCondition::kSucceeded;
  std::optional<std::int32_t> index = {};  ///< Of an array: its member of this index alone.
};

/// Everything of one submission that the core needs. Names are resolved by the engine.
struct JobRequest {
  std::string name;           ///< 1..128 bytes of UTF-8 without control characters.
  std::string queue;          ///< "" = the only queue, else an error.
  std::string share;          ///< "" = the queue's only share, else an error.
  std::int32_t priority = 0;  ///< 0..9999
  /// Unit names with counts in order of preference; "" with a count = the queue's GPU units in
  /// policy order (`gpus` shortcut). Empty list = one `cpu` unit.
  std::vector<std::pair<std::string, Amount>> units;
  std::int32_t instances = 1;
  std::int32_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::string topology_label;      ///< N2: a node label; at most 128 bytes.
  bool topology_required = false;  ///< Only with a label.
  std::optional<Duration> timeout;
  std::optional<Duration> expected_run_time;  ///< F2: a hint; more than 0, at most `timeout`.
  std::optional<Duration> grace;
  bool preemptible = true;
  bool exit_zero_after_stop_succeeds = false;
  std::optional<std::int32_t> preemption_retries;
  std::int32_t max_attempts = 1;
  std::vector<ExitRule> exit_rules;
  Duration backoff{0};  ///< J2: before the first retry; 0..10 min.
  bool held = false;    ///< J1: submitted on hold.
  /// J3: on jobs that are there; at most kMaxDependencies.
  std::vector<DependencyRequest> depends_on;
  std::optional<ArrayRange> array;  ///< J5: one job for each of these indexes.
  SharedBytes spec;                 ///< Opaque bytes for the agent side, stored as they are.
};

struct SubmitCommand {
  std::string user;              ///< The authenticated caller.
  std::vector<JobRequest> jobs;  ///< All or nothing.
  std::string client_token;      ///< "" = none.
  std::uint64_t body_hash = 0;   ///< Of the whole request; compared when the token repeats.
};
/// Only the set fields; of an array for each member that they can be set for. Holding a held job
/// and releasing one that is not held, or has ended, change nothing.
struct UpdateJobCommand {
  JobId job;
  std::optional<std::int32_t> priority;
  std::optional<bool> held = {};  ///< J1: true holds, false releases.
};
/// Idempotent: an ended job stays as it is. Waiting jobs end at once, active ones are stopped; of
/// an array all members.
struct CancelCommand {
  JobId job;
  std::string reason;
};
/// A document, or single objects as a document with `partial`: then kinds are merged, not replaced.
struct ApplyPolicyCommand {
  PolicyDoc doc;
  bool dry_run = false;
  bool prune = false;
  bool drain = false;  ///< P12: stop what a lowered cap leaves above it.
  bool partial = false;
  /// Names to delete, only with `partial`: kind ("queue", "share", "environment", "policy",
  /// "unit"), name ("queue/share" for shares).
  std::vector<std::pair<std::string, std::string>> deletions;
  /// With `partial`: refuse to replace (create) or refuse to create (update); both false = upsert.
  bool must_not_exist = false;
  bool must_exist = false;
};
struct SetNodeAdminCommand {
  std::string node;
  NodeAdmin admin = NodeAdmin::kOpen;
};

/// What an agent says it still has of one instance.
struct ReportedInstance {
  AttemptId attempt;
  std::int32_t instance = 0;
  InstanceState state = InstanceState::kRunning;
  std::int32_t exit_code = -1;
  bool signalled_before_exit = false;
  bool start_failed = false;  ///< Never ran; `status_reason` says why.
  bool exit_known = true;     ///< False: the supervisor died, nobody reaped it.
  std::string status_reason;
};

struct RegisterNodeCommand {
  Node node;  ///< id, link, admin, env are ignored.
  std::vector<ReportedInstance> instances;
  std::int64_t highest_epoch_seen = 0;
  std::string highest_store_id;
};
/// The session of a node ended, or was silent too long.
struct NodeLinkCommand {
  std::string node;
  NodeLink link = NodeLink::kUnreachable;
};
/// The node's agent found, or finds no more, that nothing new can start there.
struct NodeHealthCommand {
  std::string node;
  bool healthy = true;
  std::string reason;  ///< One sentence, unless healthy.
};
struct ReportCommand {
  std::string node;
  ReportedInstance report;
  StopCause agent_cause = StopCause::kNone;  ///< kTimeout when the agent enforced the time limit.
};
/// Time passed: graces run out, tokens expire, ended jobs are archived, the pass's wakeup comes.
struct TickCommand {};

using CommandBody = std::variant<SubmitCommand, UpdateJobCommand, CancelCommand, ApplyPolicyCommand,
                                 SetNodeAdminCommand, RegisterNodeCommand, NodeLinkCommand,
                                 NodeHealthCommand, ReportCommand, TickCommand>;

struct Command {
  std::string actor;  ///< Stored with the events.
  CommandBody body;
};

/// What a command answers, after its batch is committed.
struct Reply {
  std::vector<JobId> jobs;           ///< Submit: in request order.
  bool repeated_token = false;       ///< Submit: nothing new, the first answer again.
  std::vector<std::string> changes;  ///< ApplyPolicy: one line each, also on a dry run.
  std::vector<PolicyIssue> issues;   ///< ApplyPolicy: errors (then nothing changed) and warnings.
  NodeId node;                       ///< RegisterNode.
  /// RegisterNode: instances the agent must stop, they are not its own any more.
  std::vector<std::pair<AttemptId, std::int32_t>> fenced_off;
  /// RegisterNode: ended ones whose report is stored.
  std::vector<std::pair<AttemptId, std::int32_t>> forget;
};

using ReplyFn = std::function<void(Result<Reply>)>;

}  // namespace gpuq
