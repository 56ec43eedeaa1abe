#include "core/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {

namespace {

constexpr std::size_t kMaxQuoted = 60;

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

bool is_control(unsigned byte) { return byte < 0x20 || byte == 0x7f; }

/// Length of the well-formed UTF-8 sequence at `i`; 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const unsigned lead = byte_at(text, i);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() - i < length) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte_at(text, i + k) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte_at(text, i + 1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second > 0x9f;
  const bool too_large = lead == 0xf4 && second > 0x8f;
  return overlong || surrogate || too_large ? 0 : length;
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // The last `*` passed; all before it has matched.
  std::size_t resume = 0;                     // Where that `*` may take one byte more.
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == '?') {
      t += std::max<std::size_t>(1, utf8_length(text, t));
      ++p;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text,
                             [](char c) { return is_control(static_cast<unsigned char>(c)); });
}

bool is_object_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string escape_controls(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_control(byte_at(text, i))) {
      out += fmt::format("\\x{:02x}", byte_at(text, i));
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string quote(std::string_view text) {
  std::string out = "'";
  std::size_t i = 0;
  while (i < text.size() && i < kMaxQuoted) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0 || is_control(byte_at(text, i))) {
      out += fmt::format("\\x{:02x}", byte_at(text, i++));
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  if (i < text.size()) out += "...";
  return out + "'";
}

}  // namespace gpuq
