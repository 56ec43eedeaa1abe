// What agents report about the instances of attempts.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/engine/node_events.h"
#include "core/engine/transaction.h"

namespace gpuq {

namespace {

bool every(const Attempt& attempt, InstanceState least) {
  return std::all_of(attempt.instances.begin(), attempt.instances.end(),
                     [&](const AttemptInstance& i) { return i.state >= least; });
}

void open_barrier(Transaction& tx, const Attempt& attempt) {
  const Fence fence = tx.fence(attempt.id);
  for (std::size_t i = 0; i < attempt.instances.size(); ++i) {
    if (attempt.instances[i].state != InstanceState::kPrepared) continue;
    const NodeId node = attempt.instances[i].use.node;
    const auto instance = static_cast<std::int32_t>(i);
    tx.effect(
        [fence, node, instance](AgentGateway& gateway) { gateway.go(fence, node, instance); });
  }
}

void progress(Transaction& tx, const std::string& actor, Attempt attempt, std::size_t instance,
              InstanceState to) {
  attempt.instances[instance].state = to;
  Job job = tx.state().job(attempt.job);
  EventType type = EventType::kAttemptStarting;
  if (attempt.state == JobState::kScheduled) attempt.state = JobState::kStarting;
  if (every(attempt, InstanceState::kRunning)) {
    attempt.state = JobState::kRunning;
    attempt.running_at = tx.now();
    type = EventType::kAttemptRunning;
    if (const auto timeout = tx.state().job_class(job.cls).timeout) {
      tx.wake_at(tx.now() + *timeout + tx.config().unconfirmed_stop_margin);
    }
  }
  job.state = attempt.state;
  Event event = tx.job_event(type, actor, job);
  if (attempt.instances.size() > 1) event.detail = fmt::format("instance {}", instance);
  event.changes.emplace_back(PutAttempt{attempt});
  event.changes.emplace_back(PutJob{job});
  tx.emit(std::move(event));
  const bool gang = attempt.instances.size() > 1;
  if (gang && !attempt.stopping() && every(attempt, InstanceState::kPrepared)) {
    open_barrier(tx, attempt);
  }
}

std::string exit_text(std::int32_t code) {
  if (code < 0) return "The exit status is unknown: the supervisor is gone";
  if (code > 128 && code <= 128 + 64) return fmt::format("Killed by signal {}", code - 128);
  return fmt::format("Exited with code {}", code);
}

std::string preemption_text(const State& state, const Attempt& attempt) {
  for (const Preemption* record : state.preemptions_of(attempt.job)) {
    if (record->attempt == attempt.id) return preemption_reason(record->rule);
  }
  return attempt.status_reason;  // Nobody asked: a lowered cap, with drain (P12).
}

/// The whole attempt has exited: which end is it? (P10, retry strategy.)
AttemptEnd judge(const State& state, const Attempt& attempt) {
  const auto any = [&](auto&& test) {
    return std::any_of(attempt.instances.begin(), attempt.instances.end(), test);
  };
  const bool signalled = any([](const AttemptInstance& i) { return i.signalled; });
  const bool start_failed = any([](const AttemptInstance& i) { return i.start_failed; });
  const bool unknown = any([](const AttemptInstance& i) { return i.exit_code < 0; });
  const bool all_zero = !any([](const AttemptInstance& i) { return i.exit_code != 0; });
  AttemptEnd end;
  end.exit_code = attempt.exit_code >= 0 ? attempt.exit_code : all_zero ? 0 : -1;
  end.reason = attempt.status_reason;
  if (attempt.lost_to_node) {
    end.outcome = AttemptOutcome::kLost;
    end.lost_to_node = true;
    return end;
  }
  const JobClass& cls = state.job_class(state.job(attempt.job).cls);
  const bool polite =
      all_zero && attempt.stop == StopCause::kPreempted && cls.exit_zero_after_stop_succeeds;
  if ((all_zero && !signalled) || polite) {
    end.outcome = AttemptOutcome::kSucceeded;
    end.reason.clear();
    return end;
  }
  const bool by_itself = !signalled && !start_failed && !unknown;
  const StopCause cause = by_itself ? StopCause::kNone : attempt.stop;
  switch (cause) {
    case StopCause::kPreempted:
      end.outcome = AttemptOutcome::kPreempted;
      end.reason = preemption_text(state, attempt);
      return end;
    case StopCause::kTerminated:
      end.outcome = AttemptOutcome::kTerminated;
      return end;
    case StopCause::kTimeout:
      end.outcome = AttemptOutcome::kTimedOut;
      end.reason = "Attempt duration exceeded its timeout";
      return end;
    case StopCause::kNodeDrain:
      end.outcome = AttemptOutcome::kLost;
      end.lost_to_node = true;
      end.reason = "Stopped because its node is being drained";
      return end;
    case StopCause::kNone:
    case StopCause::kGangMember:
      break;
  }
  end.outcome = AttemptOutcome::kFailed;
  if (start_failed) end.outcome = AttemptOutcome::kStartFailed;
  if (unknown && !start_failed && cause == StopCause::kNone) {
    end.outcome = AttemptOutcome::kLost;
    end.lost_to_node = true;
  }
  return end;
}

void exited(Transaction& tx, const std::string& actor, Attempt attempt,
            const ReportedInstance& report, StopCause agent_cause) {
  AttemptInstance& instance = attempt.instances[static_cast<std::size_t>(report.instance)];
  instance.state = InstanceState::kExited;
  instance.exit_code = report.exit_known ? report.exit_code : -1;
  instance.signalled = report.signalled_before_exit;
  instance.start_failed = report.start_failed;
  if (agent_cause == StopCause::kTimeout && !attempt.stopping()) {
    attempt.stop = StopCause::kTimeout;
    attempt.stop_at = tx.now();
    attempt.grace = grace_of(tx.state(), tx.state().job(attempt.job));
  }
  const bool bad = instance.exit_code != 0 || instance.start_failed;
  // The members stopped for it end with codes of their own, which say nothing about the job.
  const bool vanished = !report.exit_known && !report.start_failed && !attempt.stopping();
  attempt.lost_to_node = attempt.lost_to_node || vanished;
  if (bad && !attempt.stopping() && attempt.exit_code < 0) {
    attempt.exit_code = instance.exit_code;
    attempt.status_reason =
        report.status_reason.empty() ? exit_text(instance.exit_code) : report.status_reason;
    if (attempt.instances.size() > 1) {
      attempt.status_reason =
          fmt::format("instance {}: {}", report.instance, attempt.status_reason);
    }
  } else if (bad && attempt.exit_code < 0) {
    attempt.exit_code = instance.exit_code;
  }
  if (every(attempt, InstanceState::kExited)) {
    const AttemptEnd end = judge(tx.state(), attempt);
    end_attempt_as(tx, actor, std::move(attempt), end);
    return;
  }
  const Job& job = tx.state().job(attempt.job);
  if (bad && !attempt.stopping()) {
    const std::string reason = attempt.status_reason;
    const Duration grace = grace_of(tx.state(), job);
    stop_attempt_as(tx, actor, std::move(attempt), StopCause::kGangMember, grace, reason, {});
    return;
  }
  Event event = tx.job_event(EventType::kAttemptStopping, actor, job);
  event.detail = fmt::format("instance {} exited with {}", report.instance, instance.exit_code);
  event.changes.emplace_back(PutAttempt{std::move(attempt)});
  tx.emit(std::move(event));
}

}  // namespace

const char* preemption_reason(PreemptRule rule) {
  return rule == PreemptRule::kInShare
             ? "In-share preemption triggered by higher priority job"
             : "Cross-share preemption triggered to reclaim borrowed capacity";
}

bool is_ours(const State& state, NodeId node, const ReportedInstance& report) {
  const Attempt* attempt = state.find_attempt(report.attempt);
  if (attempt == nullptr || !attempt->live() || report.instance < 0) return false;
  const auto i = static_cast<std::size_t>(report.instance);
  return i < attempt->instances.size() && attempt->instances[i].use.node == node;
}

void apply_report(Transaction& tx, const std::string& actor, const ReportedInstance& report,
                  StopCause agent_cause) {
  const Attempt& attempt = tx.state().attempt(report.attempt);
  const auto i = static_cast<std::size_t>(report.instance);
  const InstanceState before = attempt.instances[i].state;
  if (before == InstanceState::kExited || report.state < before) return;
  if (report.state == InstanceState::kExited) {
    exited(tx, actor, attempt, report, agent_cause);
  } else if (report.state > before && report.state > InstanceState::kSent) {
    progress(tx, actor, attempt, i, report.state);
  }
}

Result<Reply> handle(Transaction& tx, const std::string& actor, const ReportCommand& command) {
  const Node* node = tx.state().find_node(command.node);
  if (node == nullptr) {
    return Error{ErrorCode::kNotFound, fmt::format("node '{}' is not registered", command.node)};
  }
  const ReportedInstance& report = command.report;
  if (is_ours(tx.state(), node->id, report)) {
    apply_report(tx, actor, report, command.agent_cause);
    return Reply{};
  }
  const NodeId id = node->id;
  const Fence fence = tx.fence(report.attempt);
  if (report.state == InstanceState::kExited) {
    release_charges(tx, actor, id, report);
    tx.effect([fence, id, instance = report.instance](AgentGateway& gateway) {
      gateway.forget(fence, id, instance);
    });
  } else {
    // It runs something that was given up: stop it, with the grace it would have had.
    StopOrder order{fence, id, report.instance, StopCause::kTerminated, tx.config().default_grace};
    tx.effect([order](AgentGateway& gateway) { gateway.stop(order); });
  }
  return Reply{};
}

}  // namespace gpuq
