#pragma once
// What a command finds in its environment.
#include <string>
#include <vector>

#include "agent/types.h"

namespace gpuq::agent {

/// The account that jobs run under, and the directories of one instance.
struct EnvironmentFacts {
  std::string user;
  std::string home;
  std::string shell;
  std::string path;              ///< PATH where the job sets none.
  std::string lang;              ///< LANG where the job sets none; empty = not set.
  std::string temporary_dir;     ///< Private to the instance.
  std::string checkpoint_dir;    ///< The same for every attempt of the job.
  std::string stop_reason_file;  ///< Written before the first signal.
  std::string tag;               ///< Marks the instance's processes.
};

/// NAME=VALUE lines: the account's basics, then the job's own, then what gpuq defines (which the
/// job cannot override).
std::vector<std::string> make_environment(const StartOrder& order, const EnvironmentFacts& facts);

}  // namespace gpuq::agent
