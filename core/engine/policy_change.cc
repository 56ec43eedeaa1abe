#include "core/engine/policy_change.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/engine/policy_diff.h"
#include "core/engine/policy_guard.h"
#include "core/engine/policy_nodes.h"
#include "core/engine/policy_target.h"
#include "core/model/policy_check.h"
#include "core/model/policy_document.h"

namespace gpuq {

namespace {

/// The document that a command changes. The first change of all replaces the built-in policy whole.
PolicyDoc base_document(const PolicyTables& current) {
  if (!current.builtin) return policy_document(current);
  PolicyDoc nothing;
  nothing.units.emplace();
  nothing.environments.emplace();
  nothing.policies.emplace();
  nothing.queues.emplace();
  return nothing;
}

bool names_nothing(const ApplyPolicyCommand& command) {
  const PolicyDoc& doc = command.doc;
  return !doc.units && !doc.environments && !doc.policies && !doc.queues &&
         command.deletions.empty();
}

/// Turns a checked document into tables, keeping the id of everything that has its name.
class TableBuilder {
 public:
  TableBuilder(const PolicyTables& current, const PolicyDoc& doc, bool keep_builtin)
      : current_(current), doc_(doc), keep_builtin_(keep_builtin) {
    tables_.next_id = current.next_id;
    tables_.builtin = false;
  }

  PolicyTables build() {
    for (const UnitDef& def : *doc_.units) {
      tables_.units.push_back({id_of<UnitId>(current_.unit(def.name)), def});
    }
    for (const EnvDef& def : *doc_.environments) {
      const Environment* old = current_.environment(def.name);
      if (keep_builtin_ && old != nullptr && is_builtin(*old)) old = nullptr;
      tables_.environments.push_back({id_of<EnvId>(old), def});
    }
    for (const SchedulingPolicyDef& def : *doc_.policies) {
      const SchedulingPolicy* old = current_.policy(def.name);
      if (keep_builtin_ && current_.builtin) old = nullptr;
      tables_.policies.push_back({id_of<PolicyId>(old), def});
    }
    for (const QueueDef& def : *doc_.queues) add_queue(def);
    if (keep_builtin_) add_retired();
    std::ranges::sort(tables_.units, {}, &Unit::id);
    std::ranges::sort(tables_.environments, {}, &Environment::id);
    std::ranges::sort(tables_.policies, {}, &SchedulingPolicy::id);
    std::ranges::sort(tables_.queues, {}, &Queue::id);
    std::ranges::sort(tables_.shares, {}, &Share::id);
    return std::move(tables_);
  }

 private:
  template <typename Id, typename Record>
  Id id_of(const Record* old) {
    return old != nullptr ? old->id : Id(tables_.next_id++);
  }

  void add_queue(const QueueDef& def) {
    const Queue* old = current_.queue(def.name);
    Queue queue{id_of<QueueId>(old), def};
    queue.def.shares.clear();
    for (const ShareDef& share : def.shares) {
      const Share* before = old != nullptr ? current_.share(old->id, share.name) : nullptr;
      tables_.shares.push_back({id_of<ShareId>(before), queue.id, share});
    }
    tables_.queues.push_back(std::move(queue));
  }

  bool is_builtin(const Queue& queue) const {
    return current_.builtin || is_retired(current_, queue);
  }
  bool is_builtin(const Environment& environment) const {
    return current_.builtin || is_retired(environment);
  }
  bool is_builtin(const Unit& unit) const { return current_.builtin || is_retired(current_, unit); }

  /// What is left of the built-in policy stays, disabled, for the jobs that it still has.
  void add_retired() {
    std::vector<CapacityLimit> retired_units;
    for (const Unit& unit : current_.units) {
      if (!is_builtin(unit) || tables_.unit(unit.def.name) != nullptr) continue;
      retired_units.push_back({unit.def.name, kZero});
      tables_.units.push_back(unit);
    }
    for (Environment environment : current_.environments) {
      if (!is_builtin(environment)) continue;
      environment.def.name = kRetiredName;
      environment.def.enabled = false;
      environment.def.node_labels = {{kRetiredLabel, "true"}};
      environment.def.capacity_limits = retired_units;
      tables_.environments.push_back(std::move(environment));
    }
    for (Queue queue : current_.queues) {
      if (!is_builtin(queue)) continue;
      const SchedulingPolicy* policy = current_.policy(queue.def.scheduling_policy);
      if (policy != nullptr) {
        tables_.policies.push_back(*policy);
        tables_.policies.back().def.name = kRetiredName;
      }
      add_retired_shares(queue.id);
      queue.def.scheduling_policy = kRetiredName;
      queue.def.service_environments = {kRetiredName};
      queue.def.enabled = false;
      queue.deleting = true;
      tables_.queues.push_back(std::move(queue));
    }
  }

  void add_retired_shares(QueueId queue) {
    for (Share share : current_.shares) {
      if (share.queue != queue) continue;
      share.def.enabled = false;
      share.deleting = true;
      tables_.shares.push_back(std::move(share));
    }
  }

  const PolicyTables& current_;
  const PolicyDoc& doc_;
  bool keep_builtin_;
  PolicyTables tables_;
};

void note_builtin(const PolicyTables& current, const LiveJobs& live, PolicyChange& change) {
  if (!current.builtin || current.queues.empty()) return;
  change.changes.insert(
      change.changes.begin(),
      live.keeps_builtin()
          ? fmt::format("queue {}: disabled, the document takes the place of the built-in policy",
                        kDefaultName)
          : "policy default: replaced by the document");
  if (live.builtin.waiting == 0) return;
  change.issues.push_back(
      {false, "",
       fmt::format("the built-in queue {} has {}: active ones finish, waiting ones never start and "
                   "must be submitted anew or cancelled",
                   kDefaultName, describe_use(live.builtin))});
}

void note_deleted_shares(const PolicyTables& current, const std::map<ShareId, ShareUse>& uses,
                         PolicyChange& change) {
  for (const Share& share : current.shares) {
    if (change.tables.share(share.id) != nullptr) continue;
    change.deleted_shares.push_back(share.id);
    const auto use = uses.find(share.id);
    const Queue* queue = current.queue(share.queue);
    if (use == uses.end() || use->second.waiting + use->second.active == 0) continue;
    change.changes.push_back(fmt::format("share {}/{}: ends {}",
                                         queue != nullptr ? queue->def.name : "", share.def.name,
                                         describe_use(use->second)));
  }
}

}  // namespace

bool PolicyChange::has_errors() const {
  return std::ranges::any_of(issues, &PolicyIssue::is_error);
}

PolicyChange plan_policy_change(const PolicyTables& current, const ApplyPolicyCommand& command,
                                const std::vector<Node>& nodes,
                                const std::map<ShareId, ShareUse>& uses,
                                const PolicyLimits& limits) {
  PolicyChange change;
  change.tables = current;
  if (names_nothing(command)) {
    change.issues.push_back({false, "", "the document names nothing: nothing to change"});
    return change;
  }
  if (current.builtin && !command.partial && !command.doc.queues) {
    change.issues.push_back({true, "",
                             "the document takes the place of the whole built-in policy, and would "
                             "leave no queue: name job_queues in it"});
    return change;
  }
  const PolicyDoc base = base_document(current);
  const PolicyTarget target = compose_policy(base, command);
  change.issues = target.issues;
  if (change.has_errors()) return change;

  const LiveJobs live = count_live_jobs(current, uses);
  std::vector<PolicyIssue> found =
      check_policy(target.doc, limits.max_shares_per_queue, limits.max_units_per_share);
  const bool sound = std::ranges::none_of(found, &PolicyIssue::is_error);
  guard_deletions(current, base, target, command, found);
  guard_live_jobs(current, base, target.doc, live, found);
  if (sound) check_policy_nodes(target.doc, nodes, found);
  for (PolicyIssue& issue : found) {
    issue.path = target.command_path(issue.path);
    change.issues.push_back(std::move(issue));
  }
  change.changes = policy_diff(base, target.doc);
  note_builtin(current, live, change);
  if (change.has_errors()) return change;
  change.tables = TableBuilder(current, target.doc, live.keeps_builtin()).build();
  note_deleted_shares(current, uses, change);
  return change;
}

}  // namespace gpuq
