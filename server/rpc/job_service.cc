// JobService: names on the wire and the right that each needs.
#include "gpuq/v1/job.grpc.pb.h"
#include "server/rpc/job_calls.h"
#include "server/rpc/services.h"

namespace gpuq::rpc {

namespace {

using Service = v1::JobService;
using Base = Service::WithRawCallbackMethod_Submit<
    Service::WithRawCallbackMethod_SubmitBatch<Service::WithRawCallbackMethod_Get<
        Service::WithRawCallbackMethod_List<Service::WithCallbackMethod_Watch<
            Service::WithRawCallbackMethod_Update<Service::WithRawCallbackMethod_Cancel<
                Service::WithRawCallbackMethod_Explain<Service::WithRawCallbackMethod_TrySubmit<
                    Service::WithCallbackMethod_ReadLogs<Service::Service>>>>>>>>>>;

class JobServiceImpl final : public Base {
 public:
  explicit JobServiceImpl(ServiceContext& context) : context_(context) {}

  using Call = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;
  using Verb = auth::Verb;

  grpc::ServerUnaryReactor* Submit(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kSubmitJob, submit);
  }
  grpc::ServerUnaryReactor* SubmitBatch(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kSubmitJob, submit_batch);
  }
  grpc::ServerUnaryReactor* TrySubmit(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kSubmitJob, try_submit);
  }
  grpc::ServerUnaryReactor* Get(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadJob, get_job);
  }
  grpc::ServerUnaryReactor* List(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadJob, list_jobs);
  }
  grpc::ServerUnaryReactor* Update(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kUpdateJob, update_job);
  }
  grpc::ServerUnaryReactor* Cancel(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kCancelJob, cancel_jobs);
  }
  grpc::ServerUnaryReactor* Explain(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadJob, explain);
  }
  grpc::ServerWriteReactor<v1::WatchResponse>* Watch(Call* call,
                                                     const v1::WatchRequest* in) override {
    return watch(context_, call, *in);
  }
  grpc::ServerWriteReactor<v1::LogChunk>* ReadLogs(Call* call,
                                                   const v1::ReadLogsRequest* in) override {
    return read_logs(context_, call, *in);
  }

 private:
  ServiceContext& context_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_job_service(ServiceContext& context) {
  return std::make_unique<JobServiceImpl>(context);
}

}  // namespace gpuq::rpc
