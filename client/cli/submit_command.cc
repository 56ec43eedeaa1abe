#include <ostream>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/job_source.h"

namespace gpuq::cli {

int submit(Context& context, const SubmitOptions& options) {
  v1::JobSpec spec;
  const int made = make_job(
      context,
      JobSource{options.job, options.file, options.script, options.command, options.strict}, spec);
  if (made != kDone) return made;
  auto client = context.client();
  if (!client) return context.fail(client.error());
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
