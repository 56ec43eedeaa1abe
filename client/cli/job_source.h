#pragma once
// The job that `submit` and `run` send: from a command, a script or a file, with every layer of
// options on top of it.
#include <optional>
#include <string>
#include <vector>

#include "client/cli/context.h"
#include "client/cli/options.h"

namespace gpuq::cli {

struct JobSource {
  const JobOptions& options;
  std::optional<std::string> file;
  const std::vector<std::string>& script;
  const std::vector<std::string>& command;
  bool strict = false;
};

/// Fills the empty `spec`. Like a command: returns an exit status and has written its errors, and
/// warnings about script lines.
int make_job(Context& context, const JobSource& source, v1::JobSpec& spec);

/// Submits `spec` with `token`, a new one if empty; the token makes it safe to try once more when
/// the connection is lost in between.
Result<v1::SubmitResponse> submit_job(client::Client& client, const v1::JobSpec& spec,
                                      const std::string& token);

}  // namespace gpuq::cli
