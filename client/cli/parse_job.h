#pragma once
// The options that `submit`, `run` and script lines have in common.
#include "client/cli/options.h"

namespace CLI {
class App;
}

namespace gpuq::cli {

/// `options` must live as long as `app` parses.
void add_job_options(CLI::App& app, JobOptions& options);

}  // namespace gpuq::cli
