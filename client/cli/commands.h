#pragma once
// The commands. Each returns the exit status and has written its errors. One thread; some start
// threads that end before they return.
#include "client/cli/context.h"
#include "client/cli/options.h"

namespace gpuq::cli {

int submit(Context& context, const SubmitOptions& options);
int run(Context& context, const RunOptions& options);
int list(Context& context, const ListOptions& options);
int show(Context& context, const ShowOptions& options);
int why(Context& context, const WhyOptions& options);
int logs(Context& context, const LogsOptions& options);
int wait(Context& context, const WaitOptions& options);
int cancel(Context& context, const CancelOptions& options);
int update(Context& context, const UpdateOptions& options);
int hold(Context& context, const HoldOptions& options);
int status(Context& context, const StatusOptions& options);
int apply(Context& context, const ApplyOptions& options);
int node(Context& context, const NodeOptions& options);
int simulate(Context& context, const SimulateOptions& options);
int print_version(Context& context, const VersionOptions& options);

}  // namespace gpuq::cli
