#pragma once
// The program behind main(): parse, run the command, return the exit status.
#include <string>
#include <vector>

#include "client/cli/job_options.h"
#include "client/cli/terminal.h"

namespace gpuq::cli {

/// `arguments`: without the program's name.
int run_program(std::vector<std::string> arguments, const Terminal& terminal,
                const Environment& environment);

}  // namespace gpuq::cli
