#include "server/rpc/text_check.h"

#include <fmt/format.h>

#include "core/base/text.h"

namespace gpuq::rpc {

std::string check_name(const char* field, std::string_view name) {
  if (name.empty()) return fmt::format("{} is empty: give a name", field);
  if (name.size() > 128) {
    return fmt::format("{} {} has {} characters: at most 128", field, quote(name), name.size());
  }
  if (!is_object_name(name)) {
    return fmt::format("{} {} may only hold letters, digits, '_', '.' and '-'", field, quote(name));
  }
  return "";
}

std::string check_line(const char* field, std::string_view text, std::size_t max) {
  if (text.size() > max) {
    return fmt::format("{} {} is {} bytes long: at most {}", field, quote(text), text.size(), max);
  }
  if (has_control_characters(text)) {
    return fmt::format("{} {} holds control characters: remove them", field, quote(text));
  }
  return "";
}

std::string check_range(const char* field, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return "";
  return fmt::format("{} is {}: must be {} to {}", field, value, min, max);
}

std::string one_line(const std::string& text) {
  return text.size() <= 500 && !has_control_characters(text) ? text : quote(text);
}

}  // namespace gpuq::rpc
