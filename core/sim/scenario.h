#pragma once
// Scenario: one cluster, one policy, a timeline and what must hold, as plain data. Parsed from YAML
// by common/policy, run by ScenarioRunner in virtual time. Values; any thread.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/engine/command.h"
#include "core/model/policy.h"

namespace gpuq::sim {

/// A job of the timeline: what the scheduler gets, and how its attempts behave.
struct SubmitStep {
  JobRequest request;  ///< `name` = the scenario's job name; queue may be "" (the only queue).
  Duration runtime{std::chrono::hours(1)};  ///< Of an attempt that nobody stops.
  Duration start_delay{0};                  ///< Time in STARTING.
  std::string user = "simulate";
  /// J3: on jobs submitted before, by name; `request.depends_on` is empty.
  std::vector<std::pair<std::string, DependencyCondition>> depends_on;
  std::optional<Duration> checkpoint;  ///< A new attempt goes on from the last multiple.
};
/// How a scenario names the member of an array job with that index: "sweep.3".
inline std::string member_name(const std::string& array, std::int32_t index) {
  return array + "." + std::to_string(index);
}

struct UpdateStep {
  std::string job;
  std::int32_t priority = 0;
};
struct TerminateStep {
  std::string job;
};
struct HoldStep {
  std::string job;
  bool held = true;  ///< False: release.
};
enum class NodeStepState : std::uint8_t { kUp, kDown, kCordoned, kDraining };
struct NodeStep {
  std::string node;
  NodeStepState state = NodeStepState::kUp;
};
/// Changes the named share: only the set fields.
struct ShareStep {
  std::string share;
  std::optional<Amount> capacity;  ///< Of the short form's unit.
  std::optional<SharingStrategy> strategy;
  std::optional<std::int32_t> borrow_limit;
  std::optional<bool> in_share_preemption;
  std::optional<Duration> min_runtime;
  std::optional<Duration> head_wait_limit;
  std::optional<Duration> grace;
  std::optional<UserOrder> user_order;
  std::optional<bool> enabled;
  bool drain = false;  ///< P12
};
struct FailStep {
  std::string job;
  std::int32_t exit_code = 1;
};
struct RestartStep {};

struct TimelineStep {
  Time at{};
  std::int32_t line = 0;  ///< In the file, for messages.
  bool traced = false;    ///< The file is Scenario::trace_file.
  std::variant<SubmitStep, UpdateStep, TerminateStep, HoldStep, NodeStep, ShareStep, FailStep,
               RestartStep>
      what;
};

struct PreemptedBy {
  std::string job;
  PreemptRule rule = PreemptRule::kCrossShare;
};

/// What a forecast says of a job: a start, or "UNKNOWN" (F3), "NEVER" or "LATER" (F4).
struct Foretold {
  std::optional<Time> at;
  std::string word;
};

/// What must hold at `at` (after everything of that instant), or over the whole run when unset.
struct Expectation {
  std::optional<Time> at;
  std::int32_t line = 0;
  std::optional<std::vector<std::string>> running;  ///< The exact set.
  std::vector<std::string> pending, runnable, starting, not_running, succeeded, failed;
  std::map<std::string, std::string> reason;  ///< Job -> reason code text.
  std::map<std::string, Foretold> forecast;   ///< By job; only with `at`.
  std::map<std::string, std::int32_t> preempted;
  std::map<std::string, PreemptedBy> preempted_by;  ///< The latest preemption.
  std::map<std::string, Amount> held;               ///< Share ("queue/share" where ambiguous).
  std::map<std::string, std::vector<std::string>> placed;  ///< Node names, any order.
  std::vector<std::string> started_order;                  ///< Of first starts; subsequence of all.
};

struct Scenario {
  std::string title;
  std::string file;        ///< For messages.
  std::string trace_file;  ///< Likewise; "" = no table of jobs was added.
  std::vector<std::string> rules;
  std::vector<Node> nodes;    ///< name, labels, cpus, memory_mib, devices filled.
  PolicyDoc policy;           ///< Complete.
  Duration default_grace{0};  ///< Stands for P9's 30 s.
  Duration default_runtime{std::chrono::hours(1)};
  std::vector<TimelineStep> timeline;  ///< In order of time, file order within one.
  std::vector<Expectation> expect;     ///< In order of time; those without `at` last.
};

}  // namespace gpuq::sim
