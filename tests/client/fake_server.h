#pragma once
// A server that keeps jobs in memory and ends them when told: enough to test what the commands do
// with a connection. Listens on a unix socket in a folder of its own.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "gpuq/v1/job.grpc.pb.h"
#include "gpuq/v1/policy.grpc.pb.h"

namespace gpuq::cli {

/// Every queue but "none", and the shares that it is told.
class FakePolicy final : public v1::PolicyService::Service {
 public:
  std::set<std::string> shares;

  grpc::Status Get(grpc::ServerContext*, const v1::GetPolicyObjectRequest* request,
                   v1::PolicyObject* reply) override {
    if (request->ref().name() == "none") return {grpc::NOT_FOUND, "no queue"};
    reply->mutable_job_queue()->set_job_queue_name(request->ref().name());
    return grpc::Status::OK;
  }
  grpc::Status List(grpc::ServerContext*, const v1::ListPolicyObjectsRequest*,
                    v1::ListPolicyObjectsResponse* reply) override {
    for (const auto& name : shares) {
      reply->add_objects()->mutable_quota_share()->set_quota_share_name(name);
    }
    return grpc::Status::OK;
  }
};

class FakeServer final : public v1::JobService::Service {
 public:
  explicit FakeServer(const std::string& socket) : target_("unix:" + socket) { start(); }
  ~FakeServer() override { stop(); }

  [[nodiscard]] const std::string& target() const { return target_; }

  void start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    builder.RegisterService(&policy);
    const std::lock_guard lock(mutex_);
    stopping_ = false;
    server_ = builder.BuildAndStart();
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (server_) server_->Shutdown();
    server_.reset();
  }

  /// What happens to every job at once when it is submitted; default: it stays RUNNABLE.
  std::function<void(v1::Job&)> on_submit;
  std::map<std::pair<std::int64_t, v1::LogStream>, std::string> output;
  std::int64_t dropped = 0;  ///< Of the beginning of every output.
  FakePolicy policy;

  std::int64_t add(const v1::JobSpec& spec) {
    const std::lock_guard lock(mutex_);
    v1::Job job;
    job.set_job_id(static_cast<std::int64_t>(jobs_.size()) + 1);
    *job.mutable_spec() = spec;
    job.set_state(v1::JOB_STATE_RUNNABLE);
    job.set_attempt_count(1);
    if (on_submit) on_submit(job);
    jobs_[job.job_id()] = job;
    changed_.notify_all();
    return job.job_id();
  }
  void end(std::int64_t id, v1::JobState state, int code) {
    const std::lock_guard lock(mutex_);
    jobs_[id].set_state(state);
    jobs_[id].set_final_exit_code(code);
    changed_.notify_all();
  }
  /// Waits until somebody watches.
  void wait_for_watcher() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return watchers_ > 0; });
  }
  [[nodiscard]] v1::Job job(std::int64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? v1::Job() : found->second;
  }

  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                      v1::SubmitResponse* reply) override {
    if (request->spec().job_queue() == "none") return {grpc::NOT_FOUND, "no queue 'none'"};
    reply->set_job_id(add(request->spec()));
    return grpc::Status::OK;
  }
  grpc::Status Get(grpc::ServerContext*, const v1::GetJobRequest* request,
                   v1::Job* reply) override {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(request->job_id());
    if (found == jobs_.end())
      return {grpc::NOT_FOUND, "no job " + std::to_string(request->job_id())};
    *reply = found->second;
    return grpc::Status::OK;
  }
  grpc::Status List(grpc::ServerContext*, const v1::ListJobsRequest* request,
                    v1::ListJobsResponse* reply) override {
    const std::lock_guard lock(mutex_);
    // Pages by id, newest first; the token is the last id given.
    const auto before =
        request->page_token().empty() ? std::int64_t{1} << 40 : std::stoll(request->page_token());
    for (auto it = jobs_.rbegin(); it != jobs_.rend(); ++it) {
      const auto& [id, stored] = *it;
      const bool in_range = request->first_job_id() == 0 ||
                            (id >= request->first_job_id() && id <= request->last_job_id());
      const auto& states = request->states();
      const bool in_state =
          states.empty() || std::count(states.begin(), states.end(), stored.state()) > 0;
      if (id >= before || !in_range || !in_state) continue;
      if (reply->jobs_size() == request->page_size()) {
        reply->set_next_page_token(std::to_string(reply->jobs().rbegin()->job_id()));
        break;
      }
      auto* job = reply->add_jobs();
      job->set_job_id(id);
      job->set_state(stored.state());
      job->set_job_name(stored.spec().job_name());
    }
    return grpc::Status::OK;
  }
  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelJobsRequest* request,
                      v1::CancelJobsResponse* reply) override {
    for (const auto id : request->job_ids()) {
      auto* result = reply->add_results();
      result->set_job_id(id);
      if (job(id).job_id() == 0) {
        result->mutable_error()->set_code(grpc::NOT_FOUND);
        result->mutable_error()->set_message("no job " + std::to_string(id));
      } else {
        end(id, v1::JOB_STATE_FAILED, 143);
      }
    }
    return grpc::Status::OK;
  }
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::WatchResponse>* writer) override {
    v1::WatchResponse first;
    first.set_resume_token("0");
    writer->Write(first);
    std::unique_lock lock(mutex_);
    ++watchers_;
    changed_.notify_all();
    std::set<std::int64_t> told;
    while (!stopping_ && !context->IsCancelled()) {
      for (const auto id : request->job_ids()) {
        const auto found = jobs_.find(id);
        if (found == jobs_.end() || found->second.state() < v1::JOB_STATE_SUCCEEDED) continue;
        if (!told.insert(id).second) continue;
        v1::WatchResponse response = first;
        response.mutable_event()->set_type(v1::EVENT_TYPE_JOB_ENDED);
        response.mutable_event()->set_job_id(id);
        response.mutable_event()->set_job_state(found->second.state());
        writer->Write(response);
      }
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    --watchers_;
    return stopping_ ? grpc::Status(grpc::UNAVAILABLE, "stopping") : grpc::Status::OK;
  }
  grpc::Status ReadLogs(grpc::ServerContext* context, const v1::ReadLogsRequest* request,
                        grpc::ServerWriter<v1::LogChunk>* writer) override {
    std::unique_lock lock(mutex_);
    const auto& text = output[{request->job_id(), request->stream()}];
    v1::LogChunk chunk;
    chunk.set_attempt(1);
    const auto size = static_cast<std::int64_t>(text.size());
    const std::int64_t from = request->offset() < 0 ? size + request->offset() : request->offset();
    chunk.set_offset(std::min(std::max(from, dropped), size));
    chunk.set_data(text.substr(static_cast<std::size_t>(chunk.offset())));
    if (!chunk.data().empty()) writer->Write(chunk);
    while (request->follow() && !stopping_ && !context->IsCancelled() &&
           jobs_[request->job_id()].state() < v1::JOB_STATE_SUCCEEDED) {
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    return stopping_ ? grpc::Status(grpc::UNAVAILABLE, "stopping") : grpc::Status::OK;
  }

 private:
  std::string target_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, v1::Job> jobs_;
  std::unique_ptr<grpc::Server> server_;
  bool stopping_ = false;
  int watchers_ = 0;
};

}  // namespace gpuq::cli
