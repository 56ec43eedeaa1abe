#pragma once
// Trace files: a table of jobs, as an accounting system exports it, added to a scenario's timeline.
//
// CSV with a heading. Columns, in any order; the first is required:
//   submit_s   seconds since the beginning of the run, a decimal number with up to three places
//   job        name; default `trace-N`, N the row from 1
//   queue, share, unit   names; default as in a submit of a scenario
//   gpus       units an instance, a decimal number; default 1
//   instances, priority, cpus   whole numbers
//   runtime_s, timeout_s, grace_s, checkpoint_s, start_delay_s   seconds
//   preemptible   true or false
// An empty field stands for the default. Any other column is an error that names it.
#include <istream>
#include <string>

#include "core/base/result.h"
#include "core/sim/scenario.h"

namespace gpuq {

/// Adds the rows of the file at `path` to `scenario`, whose timeline stays in order of time.
/// A row without runtime has the scenario's default. Errors: NOT_FOUND; INVALID_ARGUMENT with a
/// line "FILE:LINE: message" for each wrong row, the first 20 of them; then nothing is added.
Result<void> add_trace_file(const std::string& path, sim::Scenario& scenario);

/// The same for an open stream; `file_name` is for messages.
Result<void> add_trace(std::istream& in, const std::string& file_name, sim::Scenario& scenario);

}  // namespace gpuq
