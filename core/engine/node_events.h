#pragma once
// Shared steps of the handlers that listen to agents (core/engine only).
#include <cstdint>
#include <set>
#include <string>

#include "core/engine/transaction.h"

namespace gpuq {

/// AWS Batch's text for a preemption under `rule`.
const char* preemption_reason(PreemptRule rule);

/// Whether `report` speaks of a live attempt's instance that is placed on `node`.
bool is_ours(const State& state, NodeId node, const ReportedInstance& report);

/// Moves the attempt on by one report that is_ours(). Repeats and late reports change nothing.
void apply_report(Transaction& tx, const std::string& actor, const ReportedInstance& report,
                  StopCause agent_cause);

/// Ends `attempt` (a changed copy of the live record) as `end`.
void end_attempt_as(Transaction& tx, const std::string& actor, Attempt attempt,
                    const AttemptEnd& end);

/// stop_attempt() for `attempt`, a changed copy of the live record.
void stop_attempt_as(Transaction& tx, const std::string& actor, Attempt attempt, StopCause cause,
                     Duration grace, const std::string& reason, std::vector<Change> extra);

/// The instances of a live attempt on `node`, but for those in `there`, are gone: the attempt is
/// LOST at once, or, while other members of its gang run, when these have been stopped (N3, P10).
void lose_instances(Transaction& tx, const std::string& actor, AttemptId attempt, NodeId node,
                    const std::string& reason, const std::set<std::int32_t>& there = {});

/// The agent confirms the end of something given up: its devices are no longer charged (P9).
void release_charges(Transaction& tx, const std::string& actor, NodeId node,
                     const ReportedInstance& report);

/// Charges the devices of an ended attempt's instances to their nodes (P9).
void charge_devices(Transaction& tx, const std::string& actor, const Attempt& attempt);

}  // namespace gpuq
