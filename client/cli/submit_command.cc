#include <ostream>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/forecast_text.h"
#include "client/cli/format.h"
#include "client/cli/job_source.h"
#include "common/runtime/clocks.h"

namespace gpuq::cli {

namespace {

void print_trial(Context& context, const v1::TrySubmitResponse& trial) {
  std::ostream& out = context.terminal().out;
  const auto& job = trial.job();
  if (!job.job_name().empty()) {
    out << "Job " << one_line(job.job_name()) << " would be accepted: "
        << format_request(job.instances(), job.count_milli(), job.capacity_unit()) << ", queue "
        << job.job_queue() << ", share " << job.quota_share_name() << ", priority "
        << job.scheduling_priority() << ".\n";
  }
  print_forecast(out, trial.forecast(), wall_now_ms());
  out << "Nothing was submitted.\n";
}

// Asked of the server in every respect: nothing that it refuses is called fine here.
int dry_run(Context& context, client::Client& client, const v1::JobSpec& spec) {
  v1::SubmitRequest request;
  *request.mutable_spec() = spec;
  auto trial = client.try_submit(request);
  if (!trial) return context.fail(trial.error());
  if (context.json()) {
    context.print_json(*trial);
  } else {
    print_trial(context, *trial);
  }
  return never_fits(trial->forecast()) ? kNeverFits : kDone;
}

}  // namespace

int submit(Context& context, const SubmitOptions& options) {
  v1::JobSpec spec;
  const int made = make_job(
      context,
      JobSource{options.job, options.file, options.script, options.command, options.strict}, spec);
  if (made != kDone) return made;
  auto client = context.client();
  if (!client) return context.fail(client.error());
  if (options.dry_run) return dry_run(context, **client, spec);
  auto reply = submit_job(**client, spec, options.client_token);
  if (!reply) return context.fail(reply.error());
  const std::string id = std::to_string(reply->job_id());
  if (context.json()) {
    context.print_json(*reply);
  } else {
    context.terminal().out << id << '\n';
  }
  if (!context.flush_output("job " + id + " is submitted, but its id")) return kFailed;
  if (!options.wait) return kDone;
  WaitOptions waiting;
  waiting.jobs = {id};
  return wait(context, waiting);
}

}  // namespace gpuq::cli
