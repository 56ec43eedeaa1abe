#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/follow.h"
#include "client/cli/format.h"
#include "client/cli/selector.h"
#include "client/lib/status.h"

namespace gpuq::cli {

namespace {

constexpr std::size_t kBatch = 1000;

/// Asks on a terminal before several jobs are ended.
bool confirmed(const Context& context, std::size_t count) {
  if (count < 2 || isatty(STDIN_FILENO) == 0) return true;
  context.terminal().err << "Cancel " << count << " jobs? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

/// Reports each result; the exit status of the first error.
int report(const Context& context, const v1::CancelJobsResponse& response) {
  int code = kDone;
  for (const auto& result : response.results()) {
    if (context.json()) context.print_json(result);
    if (!result.has_error()) continue;
    const int failed =
        context.fail(client::error_from_code(result.error().code(), result.error().message()));
    if (code == kDone) code = failed;
  }
  return code;
}

int cancel_all(Context& context, client::Client& client, const std::vector<std::int64_t>& ids,
               const std::string& reason) {
  int code = kDone;
  for (std::size_t from = 0; from < ids.size(); from += kBatch) {
    v1::CancelJobsRequest request;
    request.set_reason(reason);
    const auto end = std::min(from + kBatch, ids.size());
    for (std::size_t i = from; i < end; ++i) request.add_job_ids(ids[i]);
    auto response = client.cancel_jobs(request);
    if (!response) return context.fail(response.error());
    code = std::max(code, report(context, *response));
  }
  return code;
}

}  // namespace

int cancel(Context& context, const CancelOptions& options) {
  if (auto done = check_selectors(options.jobs); !done) return context.fail(done.error());
  auto client = context.client();
  if (!client) return context.fail(client.error());
  auto ids = select_jobs(**client, options.jobs, SelectScope::kLeft);
  if (!ids) return context.fail(ids.error());
  if (ids->empty()) {
    context.note("nothing to cancel: they have ended");
    return kDone;
  }
  if (!options.yes && !confirmed(context, ids->size())) {
    context.note("nothing was cancelled");
    return kInterrupted;
  }
  const int code = cancel_all(context, **client, *ids, options.reason);
  if (code != kDone || !options.wait) return code;
  client::StreamStop stop;
  FollowHooks hooks;
  hooks.on_lost = [&](const Error& error) { context.note(error.message + "; trying again"); };
  auto ended = wait_for_end(**client, *ids, stop, hooks);
  return ended ? kDone : context.fail(ended.error());
}

namespace {

/// Sends `change` for each job; the exit status of the worst answer.
int update_all(Context& context, client::Client& client, const std::vector<std::int64_t>& ids,
               v1::UpdateJobRequest change) {
  int code = kDone;
  for (const auto id : ids) {
    change.set_job_id(id);
    auto updated = client.update_job(change);
    if (!updated) {
      code = std::max(code, context.fail(updated.error()));
    } else if (context.json()) {
      context.print_json(*updated);
    }
  }
  return code;
}

}  // namespace

int hold(Context& context, const HoldOptions& options) {
  if (auto done = check_selectors(options.jobs); !done) return context.fail(done.error());
  auto client = context.client();
  if (!client) return context.fail(client.error());
  const auto scope = options.release ? SelectScope::kLeft : SelectScope::kActive;
  auto ids = select_jobs(**client, options.jobs, scope);
  if (!ids) return context.fail(ids.error());
  if (ids->empty()) context.note("nothing to release: they have ended");
  v1::UpdateJobRequest change;
  change.set_hold(!options.release);
  return update_all(context, **client, *ids, change);
}

int update(Context& context, const UpdateOptions& options) {
  if (auto done = check_selectors(options.jobs); !done) return context.fail(done.error());
  v1::JobSpec wanted;
  JobOptions job;
  job.priority = options.priority;
  if (auto done = apply_options(job, context.environment(), wanted); !done) {
    return context.fail(done.error());
  }
  auto client = context.client();
  if (!client) return context.fail(client.error());
  auto ids = select_jobs(**client, options.jobs, SelectScope::kActive);
  if (!ids) return context.fail(ids.error());
  v1::UpdateJobRequest change;
  change.set_scheduling_priority(wanted.scheduling_priority());
  return update_all(context, **client, *ids, change);
}

}  // namespace gpuq::cli
