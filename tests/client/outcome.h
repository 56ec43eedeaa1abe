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

template <typename Environment>
Outcome run_captured(std::vector<std::string> words, const Environment& environment) {
  std::ostringstream out;
  std::ostringstream err;
  Outcome outcome;
  outcome.code = run_program(std::move(words), Terminal{out, err}, environment);
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

}  // namespace gpuq::cli
