#pragma once
// Scenario files: YAML to sim::Scenario. One node `pool` and a policy of one queue `q`, environment
// `pool` and unit `gpu` stand in for what the short form leaves out.
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/sim/scenario.h"

namespace gpuq {

struct ScenarioOptions {
  /// Jobs come from elsewhere too: names that no submit of the file has are no error.
  bool other_jobs = false;
};

/// The scenario of the file at `path`. Errors: NOT_FOUND, or INVALID_ARGUMENT with one line
/// "FILE:LINE:COLUMN: PATH: message" for everything that is wrong in it.
Result<sim::Scenario> parse_scenario_file(const std::string& path,
                                          const ScenarioOptions& options = {});

/// The same for a text; `file_name` is for messages, and its folder for a relative `policy_file`.
Result<sim::Scenario> parse_scenario_text(std::string_view text, const std::string& file_name,
                                          const ScenarioOptions& options = {});

/// Whether the text is meant to be a scenario: a map with the key `scenario`.
bool is_scenario_text(std::string_view text);

}  // namespace gpuq
