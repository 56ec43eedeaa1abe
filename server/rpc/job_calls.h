#pragma once
// The calls of JobService, apart from its class: see job_service.cc for the names on the wire.
#include "gpuq/v1/job.pb.h"
#include "server/rpc/unary_call.h"

namespace gpuq::rpc {

using SubmitCall = UnaryCall<v1::SubmitRequest, v1::SubmitResponse>;
using SubmitBatchCall = UnaryCall<v1::SubmitBatchRequest, v1::SubmitBatchResponse>;
using TrySubmitCall = UnaryCall<v1::SubmitRequest, v1::TrySubmitResponse>;
using GetJobCall = UnaryCall<v1::GetJobRequest, v1::Job>;
using ListJobsCall = UnaryCall<v1::ListJobsRequest, v1::ListJobsResponse>;
using UpdateJobCall = UnaryCall<v1::UpdateJobRequest, v1::Job>;
using CancelJobsCall = UnaryCall<v1::CancelJobsRequest, v1::CancelJobsResponse>;
using ExplainCall = UnaryCall<v1::ExplainRequest, v1::ExplainResponse>;

void submit(ServiceContext& context, SubmitCall* call);
void submit_batch(ServiceContext& context, SubmitBatchCall* call);
void try_submit(ServiceContext& context, TrySubmitCall* call);
void get_job(ServiceContext& context, GetJobCall* call);
void list_jobs(ServiceContext& context, ListJobsCall* call);
void update_job(ServiceContext& context, UpdateJobCall* call);
void cancel_jobs(ServiceContext& context, CancelJobsCall* call);
void explain(ServiceContext& context, ExplainCall* call);

/// Server streams; they delete themselves.
grpc::ServerWriteReactor<v1::WatchResponse>* watch(ServiceContext& context,
                                                   grpc::CallbackServerContext* call,
                                                   const v1::WatchRequest& request);
grpc::ServerWriteReactor<v1::LogChunk>* read_logs(ServiceContext& context,
                                                  grpc::CallbackServerContext* call,
                                                  const v1::ReadLogsRequest& request);

/// Fills `out` with the job whole, from memory or the archive, then calls `done` on the engine's
/// thread or the pool.
void load_job(ServiceContext& context, JobId id, v1::Job& out, std::function<void(Result<>)> done);
/// kNotFound "there is no job 17".
Error no_job(JobId id);

}  // namespace gpuq::rpc
