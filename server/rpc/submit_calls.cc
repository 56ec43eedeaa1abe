// Submit and SubmitBatch.
#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/engine/transaction.h"
#include "server/rpc/convert_forecast.h"
#include "server/rpc/convert_job.h"
#include "server/rpc/convert_submit.h"
#include "server/rpc/job_calls.h"
#include "server/rpc/job_uuid.h"
#include "server/rpc/message_hash.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

// One command for one entry of a request; the caller adds more jobs or none.
Result<SubmitCommand> to_command(const v1::SubmitRequest& request, const std::string& user) {
  auto job = to_job_request(request.spec());
  if (!job) return job.error();
  if (auto fault = check_client_token(request.client_token()); !fault.empty()) {
    return invalid(std::move(fault));
  }
  SubmitCommand command;
  command.user = user;
  command.jobs.push_back(std::move(*job));
  command.client_token = request.client_token();
  if (!command.client_token.empty()) command.body_hash = stable_hash(request.spec());
  return command;
}

void fill(ServiceContext& context, JobId job, std::string name, v1::SubmitResponse& out) {
  out.set_job_id(job.value);
  out.set_job_uuid(job_uuid(context.store_id, job));
  out.set_job_name(std::move(name));
}

void fill(const Error& error, v1::CallError& out) {
  out.set_code(to_grpc(error.code));
  out.set_message(error.message);
}

// A whole batch on its way: entries without token go as one command first; where that one is
// refused, or has tokens, each goes alone, so that each gets a result of its own. What an answer
// needs of an entry stays here, its request moves to the engine.
class Batch : public std::enable_shared_from_this<Batch> {
 public:
  Batch(ServiceContext& context, SubmitBatchCall* call) : context_(context), call_(call) {}

  void run() {
    const int jobs = call_->request.jobs_size();
    std::vector<int> plain;
    SubmitCommand together;
    together.user = call_->caller.user;
    together.jobs.reserve(static_cast<std::size_t>(jobs));
    entries_.reserve(static_cast<std::size_t>(jobs));
    for (int i = 0; i < jobs; ++i) {
      v1::SubmitResult& result = *call_->response.add_results();
      Entry& entry = entries_.emplace_back();
      auto command = to_command(call_->request.jobs(i), call_->caller.user);
      if (!command) {
        fill(command.error(), *result.mutable_error());
        continue;
      }
      entry = {command->jobs.front().name, command->jobs.front().spec};
      if (!command->client_token.empty()) {
        alone_.push_back(i);
        continue;
      }
      plain.push_back(i);
      together.jobs.push_back(std::move(command->jobs.front()));
    }
    pending_ = 1;
    if (!plain.empty()) {
      post_together(std::move(plain), std::move(together));
    } else {
      post_alone();
    }
  }

 private:
  struct Entry {
    std::string name;
    SharedBytes spec;
  };

  void post_together(std::vector<int> entries, SubmitCommand command) {
    context_.engine.post(
        Command{command.user, std::move(command)},
        [self = shared_from_this(), entries = std::move(entries)](Result<Reply> reply) {
          self->together_done(entries, std::move(reply));
        });
  }

  void together_done(const std::vector<int>& entries, Result<Reply> reply) {
    if (reply) {
      for (std::size_t n = 0; n < entries.size(); ++n) accept(entries[n], reply->jobs[n]);
    } else if (reply.error().code == ErrorCode::kUnavailable ||
               reply.error().code == ErrorCode::kResourceExhausted || entries.size() == 1) {
      for (const int i : entries) refuse(i, reply.error());
    } else {
      alone_.insert(alone_.end(), entries.begin(), entries.end());
    }
    post_alone();
  }

  void post_alone() {
    std::ranges::sort(alone_);
    pending_ += alone_.size();
    for (const int i : alone_) {
      // It was converted once without a fault, and the request is as it was.
      auto command = to_command(call_->request.jobs(i), call_->caller.user);
      context_.engine.post(Command{command->user, std::move(*command)},
                           [self = shared_from_this(), i](Result<Reply> reply) {
                             if (reply) {
                               self->accept(i, reply->jobs.front());
                             } else {
                               self->refuse(i, reply.error());
                             }
                             self->one_done();
                           });
    }
    one_done();
  }

  void accept(int i, JobId job) {
    Entry& entry = entries_[static_cast<std::size_t>(i)];
    context_.specs.put(job, std::move(entry.spec));
    fill(context_, job, std::move(entry.name), *call_->response.mutable_results(i)->mutable_job());
  }

  void refuse(int i, const Error& error) {
    fill(error, *call_->response.mutable_results(i)->mutable_error());
  }

  void one_done() {
    if (--pending_ == 0) call_->finish();
  }

  ServiceContext& context_;
  SubmitBatchCall* call_;
  std::vector<Entry> entries_;
  std::vector<int> alone_;
  std::atomic<std::size_t> pending_{0};
};

}  // namespace

void submit(ServiceContext& context, SubmitCall* call) {
  auto command = to_command(call->request, call->caller.user);
  if (!command) return call->finish(command.error());
  std::string name = command->jobs.front().name;
  SharedBytes spec = command->jobs.front().spec;
  context.engine.post(Command{call->caller.user, std::move(*command)},
                      [&context, call, name = std::move(name),
                       spec = std::move(spec)](Result<Reply> reply) mutable {
                        if (!reply) return call->finish(reply.error());
                        const JobId id = reply->jobs.front();
                        if (!reply->repeated_token) context.specs.put(id, std::move(spec));
                        fill(context, id, std::move(name), call->response);
                        call->finish();
                      });
}

namespace {

// What one TrySubmit has of its own; shared by the threads that it passes through, one at a time.
struct Trial {
  SubmitCommand command;
  Result<> refused;
};

// On a forecast thread: the copy answers as the engine itself would.
void try_in_copy(Trial& trial, sim::ForecastRun& run, const sim::ForecastLimits& limits,
                 v1::TrySubmitResponse& out) {
  auto reply = run.ask(Command{trial.command.user, trial.command});
  if (!reply) {
    trial.refused = reply.error();
    return;
  }
  const JobId id = reply->jobs.front();
  Borrowers borrowers(run.state());
  fill_summary(run.state(), run.state().job(id), borrowers, *out.mutable_job());
  out.mutable_job()->clear_job_id();
  out.mutable_job()->clear_job_uuid();
  out.mutable_job()->clear_reason();  // No pass has looked yet.
  fill_forecast(run.state().policy(), run.run(limits, id), id, *out.mutable_forecast());
}

}  // namespace

void try_submit(ServiceContext& context, TrySubmitCall* call) {
  auto command = to_command(call->request, call->caller.user);
  if (!command) return call->finish(command.error());
  command->client_token.clear();
  // Of an array its first member is tried.
  if (auto& array = command->jobs.front().array) {
    if (auto checked = check_array(*array); !checked) return call->finish(checked.error());
    array.reset();
  }
  auto trial = std::make_shared<Trial>(Trial{std::move(*command), {}});
  context.engine.query([&context, call, trial](const State& state) {
    // The copy does not hold what has ended.
    JobRequest& job = trial->command.jobs.front();
    auto dependencies = open_dependencies(state, job.depends_on);
    if (!dependencies) return call->finish(dependencies.error());
    if (!dependencies->never.empty()) {
      call->response.mutable_forecast()->set_outcome(v1::FORECAST_OUTCOME_NEVER);
      call->response.mutable_forecast()->set_message(dependencies->never);
      return call->finish();
    }
    job.depends_on.clear();
    std::vector<JobId> also;
    for (const Dependency& on : dependencies->open) {
      // The copy knows members of arrays as jobs of their own, and no arrays.
      if (state.find_array(on.job) != nullptr || state.job(on.job).over_array_limit) {
        call->response.mutable_forecast()->set_outcome(v1::FORECAST_OUTCOME_UNKNOWN);
        call->response.mutable_forecast()->set_message(fmt::format(
            "it is not foretold when job {} ends, which is an array or waits for its limit",
            on.job.value));
        return call->finish();
      }
      job.depends_on.push_back({on.job, on.condition});
      also.push_back(on.job);
    }
    context.forecasts.run_alone(
        state, std::move(also),
        [call, trial](sim::ForecastRun& run, const sim::ForecastLimits& limits) {
          try_in_copy(*trial, run, limits, call->response);
        },
        [call, trial](const Result<>& done) { call->finish(done ? trial->refused : done); });
  });
}

void submit_batch(ServiceContext& context, SubmitBatchCall* call) {
  const int jobs = call->request.jobs_size();
  if (jobs == 0) return call->finish(invalid("jobs is empty: give at least one"));
  if (jobs > kMaxBatchJobs) {
    return call->finish(
        invalid(fmt::format("jobs has {} entries: at most {} in a call", jobs, kMaxBatchJobs)));
  }
  std::make_shared<Batch>(context, call)->run();
}

}  // namespace gpuq::rpc
