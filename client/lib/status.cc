#include "client/lib/status.h"

#include <grpcpp/support/status.h>

#include <string_view>
#include <utility>

namespace gpuq::client {

namespace {

ErrorCode error_code(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return ErrorCode::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND:
      return ErrorCode::kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
      return ErrorCode::kAlreadyExists;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return ErrorCode::kFailedPrecondition;
    case grpc::StatusCode::PERMISSION_DENIED:
      return ErrorCode::kPermissionDenied;
    case grpc::StatusCode::UNAUTHENTICATED:
      return ErrorCode::kUnauthenticated;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return ErrorCode::kResourceExhausted;
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
      return ErrorCode::kUnavailable;
    case grpc::StatusCode::OUT_OF_RANGE:
      return ErrorCode::kOutOfRange;
    case grpc::StatusCode::ABORTED:
      return ErrorCode::kAborted;
    case grpc::StatusCode::DATA_LOSS:
      return ErrorCode::kDataLoss;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

Error error_from_code(int code, std::string message) {
  const auto status_code = static_cast<grpc::StatusCode>(code);
  if (message.empty()) {
    message = "the server gave no reason (gRPC status " + std::to_string(code) + ")";
  }
  if (status_code == grpc::StatusCode::UNIMPLEMENTED) {
    message = "the server does not know this call (" + message + "): update gpuqd";
  }
  return Error{error_code(status_code), std::move(message)};
}

Error error_from_status(const grpc::Status& status) {
  return error_from_code(status.error_code(), status.error_message());
}

std::optional<Error> foreign_server_error(const std::string& target, const grpc::Status& status) {
  const auto foreign = [&target](const std::string& what) {
    return Error{ErrorCode::kUnavailable,
                 "what answers at " + target + " is no gpuq server" + what + ": set GPUQ_SERVER"};
  };
  const std::string& said = status.error_message();
  // gRPC's own words for an HTTP answer without a gRPC status, which none of our servers sends.
  static constexpr std::string_view kPrefix = "Received http2 header with status: ";
  if (said.rfind(kPrefix, 0) == 0)
    return foreign(" (HTTP status " + said.substr(kPrefix.size()) + ")");
  // Nor do they send this one: gRPC sets it where an answer is none, or breaks off.
  if (status.error_code() == grpc::StatusCode::UNKNOWN)
    return foreign(", or broke off (" + said + ")");
  return std::nullopt;
}

Error unreachable_error(const std::string& target, const std::string& detail) {
  std::string message =
      "server not reachable at " + target + ": start it with gpuqd or set GPUQ_SERVER";
  if (!detail.empty()) message += " (" + detail + ")";
  return Error{ErrorCode::kUnavailable, std::move(message)};
}

}  // namespace gpuq::client
