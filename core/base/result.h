#pragma once
// Result<T>: a value or an Error, shaped like std::expected. Errors are for callers who can react;
// nothing in gpuq throws across a module border.
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/base/check.h"

namespace gpuq {

/// The closed set of error codes. A code exists only because some caller reacts to it; one file of
/// the server maps them to gRPC and HTTP, one file of the client to exit codes.
enum class ErrorCode {
  kInvalidArgument,     ///< The request is wrong whatever the state: change it.
  kNotFound,            ///< The named object does not exist.
  kAlreadyExists,       ///< The name or client token is taken.
  kFailedPrecondition,  ///< Right request, wrong state (disabled queue, ended job, ...).
  kPermissionDenied,    ///< The caller lacks a right; the message names it.
  kUnauthenticated,     ///< Nobody knows who calls.
  kResourceExhausted,   ///< A queue, limit or disk is full: try later.
  kUnavailable,         ///< The server is not there, read-only or stopping: try later.
  kNeverFits,           ///< No state of the cluster could ever place this.
  kOutOfRange,          ///< A token or offset points before what is kept.
  kAborted,             ///< The epoch or fence is not ours any more.
  kDataLoss,            ///< What is on disk contradicts itself.
  kInternal,            ///< A fault of the environment nobody planned for.
};

/// Short stable name, e.g. "INVALID_ARGUMENT".
const char* to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  ///< One sentence: what is wrong, the value, what to do.
};

/// kInvalidArgument with that message.
inline Error invalid(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

template <typename T = void>
class [[nodiscard]] Result {
 public:
  using Value = T;
  Result(T value) : data_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : data_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool has_value() const { return data_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() {
    GPUQ_CHECK_MSG(has_value(), has_value() ? "" : error().message);
    return std::get<0>(data_);
  }
  const T& value() const {
    GPUQ_CHECK_MSG(has_value(), has_value() ? "" : error().message);
    return std::get<0>(data_);
  }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  [[nodiscard]] const Error& error() const { return std::get<1>(data_); }
  [[nodiscard]] Error& error() { return std::get<1>(data_); }

 private:
  std::variant<T, Error> data_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace gpuq
