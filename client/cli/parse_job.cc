#include "client/cli/parse_job.h"

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "client/cli/parse.h"

namespace gpuq::cli {

namespace {

void text(CLI::App& app, const char* name, std::optional<std::string>& into, const char* type,
          const char* help) {
  app.add_option(name, into, help)->type_name(type)->group("Job");
}

void texts(CLI::App& app, const char* name, std::vector<std::string>& into, const char* type,
           const char* help) {
  app.add_option(name, into, help)->type_name(type)->allow_extra_args(false)->group("Job");
}

}  // namespace

void add_job_options(CLI::App& app, JobOptions& o) {
  text(app, "--name,-n", o.name, "NAME", "Name of the job (default: the program's)");
  text(app, "--queue,-q", o.queue, "QUEUE", "Job queue");
  text(app, "--share,-s", o.share, "SHARE", "Quota share of the queue");
  text(app, "--priority,-p", o.priority, "N", "0..9999 within the share, higher first (default 0)");
  text(app, "--gpus,-g", o.gpus, "N", "GPUs per instance; a part of one as 0.25");
  texts(app, "--unit,-u", o.units, "UNIT",
        "Capacity unit; several times in order of preference (default: cpu)");
  text(app, "--count", o.count, "N", "Units per instance, with --unit (default 1)");
  text(app, "--instances,-i", o.instances, "N",
       "Instances that start together, each with all it asks for (default 1)");
  text(app, "--cpus,-c", o.cpus, "N", "CPUs per instance beside the units");
  text(app, "--mem,-m", o.memory, "SIZE", "Memory per instance: 16G, 512GiB");
  text(app, "--image", o.image, "IMAGE", "Container image");
  text(app, "--workdir,-w", o.workdir, "DIR", "Working directory (default: the present one)");
  text(app, "--timeout,-t", o.timeout, "TIME",
       "Time limit of an attempt: 90 (seconds), 90m, 1h30m, 1-02:00:00");
  text(app, "--expect", o.expect, "TIME",
       "How long it should run, for forecasts (gpuq why); it is not ended by this");
  text(app, "--grace", o.grace, "TIME", "From SIGTERM to SIGKILL (default: the share's, else 30s)");
  text(app, "--retries", o.retries, "N", "Start it again after a failure, 0..9 times (default 0)");
  text(app, "--retry-backoff", o.retry_backoff, "TIME",
       "Wait before the first retry, then twice as long each time, up to 10m (default: none)");
  texts(app, "--retry-on", o.retry_on, "exit:CODE,...",
        "Only failures with these exit codes are retried");
  text(app, "--preemption-retries", o.preemption_retries, "N",
       "Fail on the preemption after this many (default: no limit)");
  text(app, "--exit-zero-after-stop", o.exit_zero_after_stop, "MEANING",
       "PREEMPTED (saved, runs again; default) or SUCCEEDED");
  texts(app, "--env,-e", o.env, "NAME[=VALUE]",
        "Environment variable; without a value the present one");
  texts(app, "--label,-l", o.labels, "KEY=VALUE", "Label");
  texts(app, "--after", o.after, "ok:ID,any:ID,fail:ID",
        "Start it when these jobs, or members (17.3), have succeeded, ended or failed");
  texts(app, "--after-ok", o.after_ok, "ID,...", "Start it when these jobs have succeeded");
  text(app, "--array,-a", o.array, "FIRST-LAST[:STEP][%LIMIT]",
       "One job for each index, in GPUQ_ARRAY_INDEX; at most LIMIT of them at a time");
  app.add_flag("--hold", o.hold, "Submit it held: it waits for gpuq release")->group("Job");
  app.add_flag("--no-preempt", o.no_preempt, "Never give way to other jobs")->group("Job");
}

Result<JobOptions> parse_job_options(std::vector<std::string> arguments,
                                     const std::string& origin) {
  JobOptions options;
  CLI::App app("job options", origin);
  app.set_help_flag();
  add_job_options(app, options);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Error& error) {
    return Error{ErrorCode::kInvalidArgument, origin + ": " + error.what()};
  }
  return options;
}

}  // namespace gpuq::cli
