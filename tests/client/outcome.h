#pragma once
// One run of the gpuq command line in this process: its exit code and what it printed.
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/program.h"

namespace gpuq::cli {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

/// What is printed goes to `out`; Outcome::out stays empty.
template <typename Environment>
Outcome run_printing_to(std::ostream& out, std::vector<std::string> words,
                        const Environment& environment) {
  std::ostringstream err;
  Outcome outcome;
  outcome.code = run_program(std::move(words), Terminal{out, err}, environment);
  outcome.err = err.str();
  return outcome;
}

template <typename Environment>
Outcome run_captured(std::vector<std::string> words, const Environment& environment) {
  std::ostringstream out;
  Outcome outcome = run_printing_to(out, std::move(words), environment);
  outcome.out = out.str();
  return outcome;
}

}  // namespace gpuq::cli
