#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "client/cli/alarm.h"
#include "client/cli/commands.h"
#include "client/cli/follow.h"
#include "client/cli/format.h"
#include "client/cli/interrupt.h"
#include "client/cli/job_source.h"
#include "client/cli/output.h"

namespace gpuq::cli {

namespace {

/// Instances whose output is shown; two connections' worth of streams each.
constexpr std::int32_t kMaxShown = 16;
/// After this time a job that still waits says why.
constexpr Duration kHintDelay{1'000};
/// For the last output after the end.
constexpr Duration kOutputGrace{15'000};

/// A submitted job that this program stands for.
class Run {
 public:
  Run(Context& context, client::Client& client, std::int64_t id, bool quiet)
      : context_(context), client_(client), id_(id), quiet_(quiet) {}

  void cancel() {
    context_.note("cancelling job " + std::to_string(id_) + "; Ctrl-C again leaves it alone");
    v1::CancelJobsRequest request;
    request.add_job_ids(id_);
    request.set_reason("Cancelled by Ctrl-C in gpuq run");
    bool told = false;
    // An order that its giver saw given must not be forgotten because the server was away.
    do {
      auto done = client_.cancel_jobs(request);
      if (done) return;
      if (!may_pass(done.error())) {
        context_.fail(done.error());
        return;
      }
      if (!std::exchange(told, true)) {
        context_.note(done.error().message + "; cancelling as soon as it can be told");
      }
      client_.wait_connected(Duration(2'000));
    } while (!over_.wait(kRetryPause));
  }

  /// Ends a cancel() that goes on trying.
  void over() { over_.stop(); }

  int follow(std::int32_t instances) {
    OutputFollower output(client_, context_.terminal().out, context_.terminal().err);
    for (std::int32_t i = 0; i < std::min(instances, kMaxShown); ++i) {
      for (const auto stream : {v1::LOG_STREAM_STDOUT, v1::LOG_STREAM_STDERR}) {
        OutputSource source;
        source.job_id = id_;
        source.instance = i;
        source.stream = stream;
        if (instances > 1) source.prefix = "[" + std::to_string(i) + "] ";
        output.start(source);
      }
    }
    const Alarm hint(kHintDelay, [this] { say_why(); });
    client::StreamStop stop;
    auto jobs = wait_for_end(client_, {id_}, stop, hooks());
    if (!jobs) return context_.fail(jobs.error());
    if (auto done = output.finish(kOutputGrace); !done) {
      context_.note("output not complete: " + done.error().message);
    }
    return end(jobs->front());
  }

 private:
  FollowHooks hooks() {
    FollowHooks hooks;
    hooks.on_lost = [this](const Error& error) {
      context_.note(error.message + "; the job goes on, trying again");
    };
    hooks.on_event = [this](const v1::Event& event) { say_event(event); };
    return hooks;
  }

  void say_event(const v1::Event& event) {
    if (quiet_) return;
    if (event.type() == v1::EVENT_TYPE_ATTEMPT_RUNNING && !event.node_names().empty()) {
      context_.note("job " + std::to_string(id_) + " runs on " + format_nodes(event.node_names()));
    } else if (event.type() == v1::EVENT_TYPE_ATTEMPT_STOPPING &&
               event.preemption_rule() != v1::PREEMPTION_RULE_UNSPECIFIED) {
      context_.note("job " + std::to_string(id_) + " gives way to job " +
                    std::to_string(event.by_job_id()) + "; it will run again");
    }
  }

  void say_why() {
    if (quiet_) return;
    v1::GetJobRequest request;
    request.set_job_id(id_);
    auto job = client_.get_job(request);
    if (!job || !is_waiting(job->state()) || job->reason().code().empty()) return;
    context_.note("job " + std::to_string(id_) + " waits: " + job->reason().code() + ": " +
                  job->reason().message());
  }

  int end(const v1::Job& job) {
    const int code = exit_code(job);
    if (code != kDone && !quiet_) {
      context_.note("job " + std::to_string(id_) + " " + format_state(job.state()) +
                    (job.status_reason().empty() ? "" : ": " + job.status_reason()));
    }
    return code;
  }

  Context& context_;
  client::Client& client_;
  std::int64_t id_;
  bool quiet_;
  client::StreamStop over_;
};

}  // namespace

int run(Context& context, const RunOptions& options) {
  v1::JobSpec spec;
  const int made = make_job(
      context, JobSource{options.job, {}, options.script, options.command, options.strict}, spec);
  if (made != kDone) return made;
  if (spec.has_array()) {
    return context.fail(invalid(
        "gpuq run follows one job and takes no array: use gpuq submit --array, then gpuq wait"));
  }
  // Ctrl-C before there is a job waits for it, so that none is left behind.
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Run> job;
  bool settled = false;
  std::atomic<bool> interrupted = false;
  const InterruptWatcher watcher([&] {
    interrupted = true;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return settled; });
    if (job) job->cancel();
  });
  const auto settle = [&](const v1::SubmitResponse* reply, client::Client* client) {
    const std::lock_guard lock(mutex);
    if (reply != nullptr) job.emplace(context, *client, reply->job_id(), options.quiet);
    settled = true;
    changed.notify_all();
  };
  auto client = context.client();
  auto reply = client ? submit_job(**client, spec, "") : Result<v1::SubmitResponse>(client.error());
  settle(reply ? &*reply : nullptr, client ? *client : nullptr);
  if (!reply) return context.fail(reply.error());
  if (!options.quiet) context.note("job " + std::to_string(reply->job_id()));
  const auto& resources = spec.resources();
  const int code = job->follow(resources.has_instances() ? resources.instances() : 1);
  job->over();
  return interrupted ? kInterrupted : code;
}

}  // namespace gpuq::cli
