#pragma once
// What was wrong with a request that could not be parsed. protobuf tells the field with text that
// is not UTF-8 only to its log: the words are caught there, for the thread that parses.
#include <string>

#include "core/base/result.h"

namespace gpuq::rpc {

/// Catches protobuf's log lines from now on, in the whole program. Once, at start.
void catch_parse_errors();
/// Forgets what this thread's last parse left.
void clear_parse_error();
/// kInvalidArgument with the field where it is known.
Error parse_error(const std::string& message_name);

}  // namespace gpuq::rpc
