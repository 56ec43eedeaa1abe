#pragma once
// A hash of a message's content that does not depend on the order of map entries, nor on the build.
#include <google/protobuf/message_lite.h>

#include <cstdint>

namespace gpuq::rpc {

std::uint64_t stable_hash(const google::protobuf::MessageLite& message);

}  // namespace gpuq::rpc
