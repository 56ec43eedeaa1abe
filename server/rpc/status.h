#pragma once
// The one place that maps error codes to gRPC status codes.
#include <grpcpp/support/status.h>

#include "core/base/result.h"

namespace gpuq::rpc {

grpc::StatusCode to_grpc(ErrorCode code);
grpc::Status to_status(const Error& error);

}  // namespace gpuq::rpc
