#pragma once
// Directive lines of job scripts: `#GPUQ --gpus 2` and the common `#SBATCH` ones.
#include <string>
#include <vector>

#include "client/cli/options.h"
#include "core/base/result.h"

namespace gpuq::cli {

struct ScriptDirectives {
  JobOptions options;
  std::vector<std::string> warnings;  ///< One per line that can not be honoured, naming it.
};

/// Reads the comment lines at the top of `text`, up to the first command. `name` stands for the
/// file in messages. kInvalidArgument for a wrong #GPUQ line.
Result<ScriptDirectives> parse_script(const std::string& text, const std::string& name);

/// Splits a line into words as a shell does: blanks, '...', "...", backslash. No expansion.
/// kInvalidArgument for a quote that is not closed.
Result<std::vector<std::string>> split_words(const std::string& line);

/// What runs a script whose text is `text`: the interpreter with the text itself, so that a later
/// change of the file does not change the job; `path` with its interpreter when that takes no text.
/// `arguments` are appended.
std::vector<std::string> script_command(const std::string& text, const std::string& path,
                                        const std::vector<std::string>& arguments);

}  // namespace gpuq::cli
