// Apply: the policy document's change and what it means for nodes and jobs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/engine/policy_change.h"
#include "core/engine/transaction.h"
#include "core/model/policy_document.h"

namespace gpuq {

namespace {

std::map<ShareId, ShareUse> count_uses(const State& state) {
  std::map<ShareId, ShareUse> uses;
  for (const auto& [id, job] : state.jobs()) {
    if (is_terminal(job.state)) continue;
    ShareUse& use = uses[job.share];
    if (const JobArray* array = state.find_array(id)) {
      use.waiting += array->unmade();
      continue;
    }
    ++(is_active(job.state) ? use.active : use.waiting);
  }
  return uses;
}

std::vector<JobId> jobs_of(const State& state, ShareId share) {
  std::vector<JobId> jobs;
  for (const auto& [id, job] : state.jobs()) {
    if (job.share == share && !is_terminal(job.state)) jobs.push_back(id);
  }
  return jobs;
}

template <typename Record>
void sort_by_id(std::vector<Record>& records) {
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.id < b.id; });
}

// A deleted share with jobs stays, taking nothing new, until its last job has ended (P12); with it
// its queue and the queue's environment and units.
void keep_while_used(const PolicyTables& before, const std::map<ShareId, ShareUse>& uses,
                     PolicyTables& after) {
  for (const Share& share : before.shares) {
    if (after.share(share.id) != nullptr || !uses.contains(share.id)) continue;
    Share kept = share;
    kept.deleting = true;
    kept.def.enabled = false;
    after.shares.push_back(kept);
    if (after.queue(share.queue) == nullptr) {
      Queue queue = *before.queue(share.queue);
      queue.deleting = true;
      queue.def.enabled = false;
      after.queues.push_back(queue);
      const Environment* env = before.environment_of(share.queue);
      if (env != nullptr && after.environment(env->id) == nullptr) {
        after.environments.push_back(*env);
      }
    }
    for (const CapacityLimit& limit : share.def.capacity_limits) {
      const Unit* unit = before.unit(limit.unit);
      if (unit != nullptr && after.unit(unit->id) == nullptr) after.units.push_back(*unit);
    }
  }
  sort_by_id(after.shares);
  sort_by_id(after.queues);
  sort_by_id(after.environments);
  sort_by_id(after.units);
}

void end_jobs(Transaction& tx, const std::string& actor, ShareId share,
              const std::string& share_name) {
  const std::string reason = fmt::format("Quota share {} was deleted", share_name);
  for (const JobId id : jobs_of(tx.state(), share)) {
    Job job = tx.state().job(id);
    if (is_terminal(job.state)) continue;  // It depended on one before it in this list.
    if (!is_active(job.state)) {
      end_waiting_job(tx, actor, id, reason);
    } else if (!job.terminating) {
      job.terminating = true;
      job.status_reason = reason;
      stop_attempt(tx, actor, job.attempt, StopCause::kTerminated, grace_of(tx.state(), job),
                   reason, {PutJob{job}});
    }
  }
}

// The attempts that stand above the share's cap in P4's order and that a preemption could stop.
std::vector<AttemptId> excess_of(const Transaction& tx, ShareId share, UnitId unit) {
  const Ledger& ledger = tx.state().ledger();
  std::vector<AttemptId> excess;
  Amount laid;
  bool over = false;
  for (const auto& [key, holding] : ledger.laid(share)) {
    if (holding->unit != unit || holding->stopping) continue;
    laid += holding->demand;
    over = over || laid > ledger.cap(share, unit);
    if (!over || holding->key.booking || !holding->preemptible) continue;
    if (ledger.old_enough_at(*holding) > tx.now()) continue;
    excess.emplace_back(holding->key.id);
  }
  return excess;
}

// P12 with drain: what a lowered cap leaves above it does not wait for somebody who needs it.
void stop_excess(Transaction& tx, const std::string& actor, const PolicyTables& before) {
  std::vector<AttemptId> excess;
  for (const Share& share : tx.state().policy().shares) {
    const Share* old = before.share(share.id);
    if (old == nullptr) continue;
    for (const Unit& unit : tx.state().policy().units) {
      const Amount cap = limit_of(share.def.capacity_limits, unit.def.name);
      if (cap >= limit_of(old->def.capacity_limits, unit.def.name)) continue;
      for (const AttemptId id : excess_of(tx, share.id, unit.id)) excess.push_back(id);
    }
  }
  const std::string reason = "Stopped because the capacity limit of its quota share was lowered";
  for (const AttemptId id : excess) {
    Job job = tx.state().job(tx.state().attempt(id).job);
    job.status_reason = fmt::format("PREEMPTION_IN_PROGRESS: {}", reason);
    stop_attempt(tx, actor, id, StopCause::kPreempted, grace_of(tx.state(), job), reason,
                 {PutJob{job}});
  }
}

void emit_policy(Transaction& tx, const std::string& actor, PolicyTables tables,
                 std::string detail) {
  Event event = tx.event(EventType::kPolicyApplied, actor);
  event.detail = std::move(detail);
  std::vector<Node> moved;
  for (const Node& node : tx.state().nodes()) {
    const EnvId env = environment_for(tables, node);
    if (env == node.env) continue;
    moved.push_back(node);
    moved.back().env = env;
  }
  event.changes.emplace_back(PutPolicy{std::move(tables)});
  for (Node& node : moved) event.changes.emplace_back(PutNode{std::move(node)});
  tx.emit(std::move(event));
}

}  // namespace

Result<Reply> handle(Transaction& tx, const std::string& actor, const ApplyPolicyCommand& command) {
  const State& state = tx.state();
  const PolicyLimits limits{tx.config().max_shares_per_queue, tx.config().max_units_per_share};
  const auto uses = count_uses(state);
  PolicyChange change = plan_policy_change(state.policy(), command, state.nodes(), uses, limits);
  Reply reply;
  reply.changes = change.changes;
  reply.issues = change.issues;
  const bool failed = change.has_errors();
  if (failed || command.dry_run || change.tables == state.policy()) return reply;
  std::string detail;
  for (const std::string& line : change.changes) detail += (detail.empty() ? "" : "; ") + line;
  std::map<ShareId, std::string> names;
  for (const Share& share : state.policy().shares) names[share.id] = share.def.name;
  const PolicyTables before = state.policy();
  keep_while_used(before, uses, change.tables);
  emit_policy(tx, actor, std::move(change.tables), std::move(detail));
  for (const ShareId share : change.deleted_shares) end_jobs(tx, actor, share, names[share]);
  if (command.drain) stop_excess(tx, actor, before);
  finish_deletions(tx);
  return reply;
}

void finish_deletions(Transaction& tx) {
  const PolicyTables& policy = tx.state().policy();
  const auto leaving = [](const auto& record) { return record.deleting; };
  if (std::none_of(policy.shares.begin(), policy.shares.end(), leaving)) return;
  const auto uses = count_uses(tx.state());
  PolicyTables tables = policy;
  std::erase_if(tables.shares,
                [&](const Share& share) { return share.deleting && !uses.contains(share.id); });
  if (tables.shares.size() == policy.shares.size()) return;
  bool retired = false;
  std::erase_if(tables.queues, [&](const Queue& queue) {
    if (!queue.deleting) return false;
    const bool empty = std::none_of(tables.shares.begin(), tables.shares.end(),
                                    [&](const Share& share) { return share.queue == queue.id; });
    const auto& served = queue.def.service_environments;
    retired =
        retired || (empty && std::find(served.begin(), served.end(), kRetiredName) != served.end());
    return empty;
  });
  // The retired built-in environment and policy served the built-in queue only.
  if (retired) {
    std::erase_if(tables.environments,
                  [&](const Environment& env) { return env.def.name == kRetiredName; });
    std::erase_if(tables.policies,
                  [&](const SchedulingPolicy& record) { return record.def.name == kRetiredName; });
  }
  emit_policy(tx, "", std::move(tables), "a deleted quota share has no job left");
}

}  // namespace gpuq
