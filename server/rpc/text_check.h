#pragma once
// Checks of the shape of text in requests. Each returns one sentence that names field and value, or
// an empty string when all is well. Pure.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace gpuq::rpc {

/// 1..128 of [A-Za-z0-9_.-]: names of queues, shares, units, nodes.
std::string check_name(const char* field, std::string_view name);
/// At most `max` bytes without control characters.
std::string check_line(const char* field, std::string_view text, std::size_t max);
/// What an agent says for people: as it is if it is one line of at most 500 bytes, else quoted.
std::string one_line(const std::string& text);
std::string check_range(const char* field, std::int64_t value, std::int64_t min, std::int64_t max);

}  // namespace gpuq::rpc
