#include <ostream>

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
  if (context.json()) {
    context.print_json(*reply);
  } else {
    context.terminal().out << reply->job_id() << std::endl;
  }
  if (!options.wait) return kDone;
  WaitOptions waiting;
  waiting.jobs = {std::to_string(reply->job_id())};
  return wait(context, waiting);
}

}  // namespace gpuq::cli
