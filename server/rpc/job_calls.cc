// Get, Update, Cancel and Explain.
#include "server/rpc/job_calls.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "server/rpc/convert_forecast.h"
#include "server/rpc/convert_job.h"
#include "server/rpc/job_uuid.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

constexpr int kMaxCancelled = 1'000;

// From the archive: on the pool, then on the engine's thread for the names.
void load_archived(ServiceContext& context, JobId id,
                   std::function<void(const State&, const ArchivedJob&, const ArchiveNames&)> use,
                   std::function<void(Error)> fail) {
  context.pool.post([&context, id, use = std::move(use), fail = std::move(fail)] {
    auto archived = context.history.archived(id);
    if (!archived) {
      return fail(archived.error().code == ErrorCode::kNotFound ? no_job(id) : archived.error());
    }
    auto names = context.history.names();
    if (!names) return fail(names.error());
    context.engine.query([use, job = std::move(*archived), names = std::move(*names)](
                             const State& state) { use(state, job, names); });
  });
}

void load_spec(ServiceContext& context, v1::Job& out, std::function<void(Result<>)> done) {
  context.pool.post([&context, &out, done = std::move(done)] {
    auto spec = context.history.spec(JobId(out.job_id()));
    done(spec ? fill_spec(*spec, out) : Result<>(spec.error()));
  });
}

}  // namespace

Error no_job(JobId id) {
  return {ErrorCode::kNotFound, fmt::format("there is no job {}", id.value)};
}

void load_job(ServiceContext& context, JobId id, v1::Job& out, std::function<void(Result<>)> done) {
  context.engine.query([&context, id, &out, done = std::move(done)](const State& state) {
    if (const Job* job = state.find_job(id)) {
      fill_job(state, *job, out);
      const JobArray* array = state.array_of(id);
      const std::string* spec = context.specs.find(array == nullptr ? id : array->id);
      if (spec != nullptr) return done(fill_spec(*spec, out));
      return load_spec(context, out, done);
    }
    load_archived(
        context, id,
        [&context, &out, done](const State& now, const ArchivedJob& job,
                               const ArchiveNames& names) {
          fill_job(now, job, names, out);
          load_spec(context, out, done);
        },
        done);
  });
}

void get_job(ServiceContext& context, GetJobCall* call) {
  JobId id(call->request.job_id());
  if (call->request.job_case() == v1::GetJobRequest::kJobUuid) {
    const auto known = job_of_uuid(context.store_id, call->request.job_uuid());
    if (!known) {
      return call->finish(
          Error{ErrorCode::kNotFound, "there is no job with UUID " + call->request.job_uuid()});
    }
    id = *known;
  }
  if (id.value <= 0) return call->finish(invalid("job_id is missing: give a job's number"));
  load_job(context, id, call->response, [call](const Result<>& done) { call->finish(done); });
}

void update_job(ServiceContext& context, UpdateJobCall* call) {
  const JobId id(call->request.job_id());
  if (id.value <= 0) return call->finish(invalid("job_id is missing: give a job's number"));
  if (!call->request.has_scheduling_priority() && !call->request.has_hold()) {
    return call->finish(invalid("nothing to change: give scheduling_priority or hold"));
  }
  UpdateJobCommand command{id, std::nullopt};
  if (call->request.has_scheduling_priority())
    command.priority = call->request.scheduling_priority();
  if (call->request.has_hold()) command.held = call->request.hold();
  if (auto fault =
          check_range("scheduling_priority", command.priority.value_or(0), 0, kMaxPriority);
      !fault.empty()) {
    return call->finish(invalid(std::move(fault)));
  }
  context.engine.post(
      Command{call->caller.user, command}, [&context, call, id](const Result<Reply>& reply) {
        if (!reply) return call->finish(reply.error());
        load_job(context, id, call->response, [call](const Result<>& done) { call->finish(done); });
      });
}

namespace {

// Cancel of several jobs: replies come one by one on the engine's thread; then the states are read.
class CancelRun : public std::enable_shared_from_this<CancelRun> {
 public:
  CancelRun(ServiceContext& context, CancelJobsCall* call) : context_(context), call_(call) {}

  void run() {
    const auto& request = call_->request;
    const std::string reason = request.reason().empty() ? "Cancelled by USER" : request.reason();
    pending_ = request.job_ids_size();
    for (const std::int64_t id : request.job_ids()) {
      v1::CancelResult& result = *call_->response.add_results();
      result.set_job_id(id);
      context_.engine.post(Command{call_->caller.user, CancelCommand{JobId(id), reason}},
                           [self = shared_from_this(), &result](const Result<Reply>& reply) {
                             if (!reply) {
                               result.mutable_error()->set_code(to_grpc(reply.error().code));
                               result.mutable_error()->set_message(reply.error().message);
                             }
                             if (--self->pending_ == 0) self->read_states();
                           });
    }
  }

 private:
  void read_states() {
    context_.engine.query([self = shared_from_this()](const State& state) {
      bool archived = false;
      for (v1::CancelResult& result : *self->call_->response.mutable_results()) {
        if (const Job* job = state.find_job(JobId(result.job_id()))) {
          result.set_state(to_proto(state.shown_state(*job)));
        } else {
          archived = true;
        }
      }
      if (!archived) return self->call_->finish();
      self->context_.pool.post([self] { self->read_archived(); });
    });
  }

  // An ended job that has left memory is no error: it stays as it is.
  void read_archived() {
    for (v1::CancelResult& result : *call_->response.mutable_results()) {
      if (result.state() != v1::JOB_STATE_UNSPECIFIED) continue;
      auto archived = context_.history.archived(JobId(result.job_id()));
      if (!archived) continue;
      result.clear_error();
      result.set_state(to_proto(archived->job.state));
    }
    call_->finish();
  }

  ServiceContext& context_;
  CancelJobsCall* call_;
  std::atomic<int> pending_{0};
};

}  // namespace

void cancel_jobs(ServiceContext& context, CancelJobsCall* call) {
  const int count = call->request.job_ids_size();
  if (count == 0) return call->finish(invalid("job_ids is empty: name at least one job"));
  if (count > kMaxCancelled) {
    return call->finish(
        invalid(fmt::format("job_ids has {} entries: at most {} in a call", count, kMaxCancelled)));
  }
  if (auto fault = check_line("reason", call->request.reason(), 1024); !fault.empty()) {
    return call->finish(invalid(std::move(fault)));
  }
  std::make_shared<CancelRun>(context, call)->run();
}

namespace {

// What it waits for is answered in any case; that there is no forecast is a part of the answer.
void answer_with_forecast(ServiceContext& context, const State& state, const Job& job,
                          ExplainCall* call) {
  v1::JobForecast& out = *call->response.mutable_forecast();
  if (job.held) {
    fill_held(state, job, out);
    return call->finish();
  }
  if (const JobArray* array = state.find_array(job.id)) {
    out.set_message(fmt::format("an array has no start of its own: ask for a member, such as {}.{}",
                                job.id.value, array->range.first));
    return call->finish();
  }
  if (job.over_array_limit) {
    out.set_message("the limit of its array keeps it back, and forecasts look at no limits");
    return call->finish();
  }
  context.forecasts.ask(
      state, job.id, [&context, call, &out, id = job.id](Result<Forecasts::SharedForecast> made) {
        if (made) {
          fill_forecast(context.engine.state().policy(), **made, id, out);
        } else {
          out.set_message(made.error().message);
        }
        call->finish();
      });
}

}  // namespace

void explain(ServiceContext& context, ExplainCall* call) {
  const JobId id(call->request.job_id());
  if (id.value <= 0) return call->finish(invalid("job_id is missing: give a job's number"));
  context.engine.query([&context, call, id](const State& state) {
    if (const Job* job = state.find_job(id)) {
      fill_explanation(state, *job, call->response);
      if (call->request.forecast() && job->state <= JobState::kRunnable) {
        return answer_with_forecast(context, state, *job, call);
      }
      return call->finish();
    }
    load_archived(
        context, id,
        [call](const State& now, const ArchivedJob& job, const ArchiveNames& names) {
          fill_summary(now, job, names, *call->response.mutable_job());
          call->finish();
        },
        [call](const Error& error) { call->finish(error); });
  });
}

}  // namespace gpuq::rpc
