#include "server/rpc/parse_error.h"

#include <google/protobuf/stubs/logging.h>

#include "common/runtime/log.h"
#include "core/base/text.h"

namespace gpuq::rpc {

namespace {

thread_local std::string last_bad_field;

// "String field 'gpuq.v1.JobSpec.command' contains invalid UTF-8 data when parsing ..."
void handle_log(google::protobuf::LogLevel level, const char*, int, const std::string& message) {
  const auto begin = message.find("String field '");
  if (begin != std::string::npos && message.find("invalid UTF-8") != std::string::npos) {
    const auto name = begin + 14;
    last_bad_field = message.substr(name, message.find('\'', name) - name);
    return;
  }
  if (level >= google::protobuf::LOGLEVEL_ERROR) log_error("protobuf: {}", quote(message));
}

}  // namespace

void catch_parse_errors() { google::protobuf::SetLogHandler(handle_log); }

void clear_parse_error() { last_bad_field.clear(); }

Error parse_error(const std::string& message_name) {
  if (!last_bad_field.empty()) {
    const std::string field = last_bad_field.substr(last_bad_field.rfind('.') + 1);
    return {ErrorCode::kInvalidArgument, field + " is not valid UTF-8 text: encode it as UTF-8"};
  }
  return {ErrorCode::kInvalidArgument, "the request is no valid " + message_name + " message"};
}

}  // namespace gpuq::rpc
