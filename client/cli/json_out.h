#pragma once
// Messages as JSON with a stable schema: every key is always there, in the order of the .proto
// file, named as there except that
//   - a time (`..._at_ms`, `since_ms`, ...) loses `_ms` and is RFC 3339 text, null if it has not
//   happened,
//   - an amount (`..._milli`) loses `_milli` and is a number of whole units (0.25), null for "no
//   bound",
//   - an enum is its name without the prefix, null when unspecified.
// A message, optional value or oneof member that is absent is null; maps are objects.
#include <string>

namespace google::protobuf {
class Message;
}

namespace gpuq::cli {

/// One line without the line break. Text that is not UTF-8 is shown with replacement characters.
std::string to_json(const google::protobuf::Message& message);

}  // namespace gpuq::cli
