#pragma once
// What a failed call means to the person who made it.
#include <optional>
#include <string>

#include "core/base/result.h"

namespace grpc {
class Status;
}

namespace gpuq::client {

/// Translates a status that the server sent. `status` must not be OK.
Error error_from_status(const grpc::Status& status);

/// The same for a call result of a batch; `code` is a google.rpc.Code other than 0.
Error error_from_code(int code, std::string message);

/// kUnavailable if what `target` gave is no answer of a gpuq server. `status` must not be OK.
std::optional<Error> foreign_server_error(const std::string& target, const grpc::Status& status);

/// No server answers at `target`. `detail`: what the transport said, may be empty.
Error unreachable_error(const std::string& target, const std::string& detail);

}  // namespace gpuq::client
