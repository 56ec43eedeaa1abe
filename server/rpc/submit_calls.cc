// Submit and SubmitBatch.
#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

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
// refused, or has tokens, each goes alone, so that each gets a result of its own.
class Batch : public std::enable_shared_from_this<Batch> {
 public:
  Batch(ServiceContext& context, SubmitBatchCall* call) : context_(context), call_(call) {}

  void run() {
    std::vector<int> plain;
    for (int i = 0; i < call_->request.jobs_size(); ++i) {
      v1::SubmitResult& result = *call_->response.add_results();
      commands_.push_back(to_command(call_->request.jobs(i), call_->caller.user));
      if (!commands_.back()) {
        fill(commands_.back().error(), *result.mutable_error());
      } else if (commands_.back()->client_token.empty()) {
        plain.push_back(i);
      } else {
        alone_.push_back(i);
      }
    }
    pending_ = 1;
    if (!plain.empty()) {
      post_together(std::move(plain));
    } else {
      post_alone();
    }
  }

 private:
  void post_together(std::vector<int> entries) {
    SubmitCommand command;
    command.user = call_->caller.user;
    command.jobs.reserve(entries.size());
    for (const int i : entries) command.jobs.push_back(commands_[index(i)]->jobs.front());
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
      SubmitCommand command = *commands_[index(i)];
      context_.engine.post(Command{command.user, std::move(command)},
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
    JobRequest& request = commands_[index(i)]->jobs.front();
    context_.specs.put(job, std::move(request.spec));
    fill(context_, job, std::move(request.name),
         *call_->response.mutable_results(i)->mutable_job());
  }

  void refuse(int i, const Error& error) {
    fill(error, *call_->response.mutable_results(i)->mutable_error());
  }

  void one_done() {
    if (--pending_ == 0) call_->finish();
  }

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  ServiceContext& context_;
  SubmitBatchCall* call_;
  std::vector<Result<SubmitCommand>> commands_;
  std::vector<int> alone_;
  std::atomic<std::size_t> pending_{0};
};

}  // namespace

void submit(ServiceContext& context, SubmitCall* call) {
  auto command = to_command(call->request, call->caller.user);
  if (!command) return call->finish(command.error());
  const JobRequest& job = command->jobs.front();
  context.engine.post(
      Command{call->caller.user, *command},
      [&context, call, name = job.name, spec = job.spec](Result<Reply> reply) mutable {
        if (!reply) return call->finish(reply.error());
        const JobId id = reply->jobs.front();
        if (!reply->repeated_token) context.specs.put(id, std::move(spec));
        fill(context, id, std::move(name), call->response);
        call->finish();
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
