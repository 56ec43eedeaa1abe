#pragma once
// What `gpuq simulate` prints of a run, for people and as JSON. Internal to client/cli.
#include <ostream>

#include "client/cli/terminal.h"
#include "core/sim/runner.h"

namespace gpuq::cli {

/// One run, as it is shown.
struct SimulatedRun {
  const sim::Scenario* scenario = nullptr;
  std::string policy;  ///< The file that the policy is from.
  sim::RunResult result;
};

/// One object a line: what happened, then the summary.
void print_run_json(std::ostream& out, const SimulatedRun& run);
void print_run_log(const Terminal& terminal, const sim::RunResult& result);
void print_run_summary(const Terminal& terminal, const sim::Summary& summary);
/// Both summaries, line by line.
void print_comparison(const Terminal& terminal, const SimulatedRun& before,
                      const SimulatedRun& after);

}  // namespace gpuq::cli
