#pragma once
// The command line as data. The only part that knows the option parser.
#include <string>
#include <variant>
#include <vector>

#include "client/cli/options.h"
#include "core/base/result.h"

namespace gpuq::cli {

struct Invocation {
  GlobalOptions global;
  Command command;
};

/// Text that was asked for by --help or --version.
struct HelpText {
  std::string text;
};

/// `arguments`: without the program's name. kInvalidArgument: one sentence that says which
/// command's help to read.
Result<std::variant<Invocation, HelpText>> parse_command_line(std::vector<std::string> arguments);

/// Job options from a script's directive lines. `origin` stands in front of errors.
Result<JobOptions> parse_job_options(std::vector<std::string> arguments, const std::string& origin);

}  // namespace gpuq::cli
