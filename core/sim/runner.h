#pragma once
// ScenarioRunner: runs one Scenario in virtual time through the same Engine that the daemon runs,
// and checks what it expects. Behind `gpuq simulate` and the scenario tests. Single thread.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/sim/scenario.h"

namespace gpuq::sim {

/// One thing that happened, for people and for --json.
struct LogLine {
  Time at{};
  std::string event;  ///< "JOB_SUBMITTED", "ATTEMPT_RUNNING", ...
  std::string job;
  std::int32_t attempt = 0;  ///< Number within the job; 0 = none.
  std::string share;
  std::vector<std::string> nodes;
  std::string reason;  ///< Rule and numbers, or the end's reason.
};

/// An expectation that does not hold.
struct Failure {
  std::int32_t line = 0;  ///< In the scenario file.
  std::string message;    ///< What was expected and what was found instead.
};

/// The jobs of one priority in a share.
struct PrioritySummary {
  std::int32_t priority = 0;  ///< As submitted.
  std::int64_t jobs = 0;
  Duration wait_p50{0}, wait_p95{0}, wait_max{0};
};

struct ShareSummary {
  std::string share;
  std::int64_t jobs = 0;
  std::int64_t finished = 0;
  Duration wait_p50{0}, wait_p95{0}, wait_max{0};  ///< Submit to first start, of jobs that started.
  double used_unit_seconds = 0;                    ///< Held by running attempts.
  double borrowed_unit_seconds = 0;                ///< Of that, above the share's cap.
  double lost_unit_seconds = 0;                    ///< Work that preemptions threw away.
  std::vector<PrioritySummary> priorities;         ///< High first.
};

/// Means over equal spans of time: units held by each share, and jobs that wait.
struct Series {
  Duration span{0};
  std::vector<std::string> shares;
  std::vector<std::vector<double>> held;  ///< By span, then by share.
  std::vector<double> waiting;            ///< By span.
};

struct Summary {
  std::vector<ShareSummary> shares;
  Duration length{0};
  double utilisation = 0;    ///< Used over capacity, 0..1, over the whole run.
  double fragmentation = 0;  ///< Free GPUs on partly used nodes over capacity, 0..1.
  std::int64_t preemptions = 0;
};

struct RunResult {
  std::vector<LogLine> log;
  std::vector<Failure> failures;
  Summary summary;
  Series series;
};

struct RunOptions {
  std::size_t samples = 0;       ///< At most so many spans in `series`; 0 = none.
  bool check_invariants = true;  ///< After every event.
  bool keep_log = true;
};

/// Runs `scenario` to its last expectation and, when `to_the_end`, until nothing happens any more.
/// An error means that the scenario is wrong (a step names no such job, the policy is refused,
/// ...).
Result<RunResult> run_scenario(const Scenario& scenario, const RunOptions& options = {});

}  // namespace gpuq::sim
