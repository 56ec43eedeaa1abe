#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

#include "client/cli/alarm.h"
#include "client/cli/commands.h"
#include "client/cli/follow.h"
#include "client/cli/format.h"
#include "client/cli/selector.h"
#include "common/policy/units.h"

namespace gpuq::cli {

namespace {

int report(const Context& context, const std::vector<v1::Job>& jobs) {
  int code = kDone;
  for (const auto& job : jobs) {
    code = std::max(code, exit_code(job));
    if (context.json()) {
      context.print_json(job);
    } else if (job.state() != v1::JOB_STATE_SUCCEEDED) {
      context.note("job " + format_id(job) + " " + format_state(job.state()) +
                   (job.status_reason().empty() ? "" : ": " + job.status_reason()));
    }
  }
  return code;
}

int report_timeout(const Context& context, const std::vector<v1::Job>& jobs,
                   const std::string& timeout) {
  std::string waiting;
  int count = 0;
  for (const auto& job : jobs) {
    if (is_terminal(job.state())) continue;
    if (++count <= 10) waiting += " " + format_id(job);
  }
  context.note("after " + timeout + " " + std::to_string(count) + " of " +
               std::to_string(jobs.size()) + " jobs have not ended:" + waiting +
               (count > 10 ? " ..." : ""));
  return kTimedOut;
}

}  // namespace

int wait(Context& context, const WaitOptions& options) {
  if (auto done = check_selectors(options.jobs); !done) return context.fail(done.error());
  std::optional<Duration> timeout;
  if (!options.timeout.empty()) {
    auto parsed = gpuq::parse_duration(options.timeout);
    if (!parsed) {
      return context.fail(Error{parsed.error().code, "--timeout: " + parsed.error().message});
    }
    timeout = *parsed;
  }
  auto client = context.client();
  if (!client) return context.fail(client.error());
  auto ids = select_jobs(**client, options.jobs, SelectScope::kAll);
  if (!ids) return context.fail(ids.error());
  client::StreamStop stop;
  std::atomic<bool> timed_out = false;
  std::optional<Alarm> alarm;
  if (timeout) {
    alarm.emplace(*timeout, [&] {
      timed_out = true;
      stop.stop();
    });
  }
  FollowHooks hooks;
  hooks.on_lost = [&](const Error& error) { context.note(error.message + "; trying again"); };
  auto jobs = wait_for_end(**client, *ids, stop, hooks);
  if (!jobs) return context.fail(jobs.error());
  const bool ended = std::all_of(jobs->begin(), jobs->end(),
                                 [](const v1::Job& job) { return is_terminal(job.state()); });
  if (timed_out && !ended) return report_timeout(context, *jobs, options.timeout);
  return report(context, *jobs);
}

}  // namespace gpuq::cli
