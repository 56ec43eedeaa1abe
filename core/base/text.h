#pragma once
// Small pure functions over text: patterns, validity checks, quoting for messages.
#include <cstddef>
#include <string>
#include <string_view>

namespace gpuq {

/// Whether all of `text` matches `pattern`: `*` stands for any run of bytes, `?` for one character
/// (a whole UTF-8 sequence); everything else for itself. Time at most |pattern| x |text|.
bool glob_match(std::string_view pattern, std::string_view text);

/// Position of the first byte that is not well-formed UTF-8 (overlong forms, surrogates and code
/// points above U+10FFFF are not); npos when all of `text` is.
std::size_t find_invalid_utf8(std::string_view text);
inline bool is_valid_utf8(std::string_view text) {
  return find_invalid_utf8(text) == std::string_view::npos;
}

/// Whether `text` holds an ASCII control character (tab and line ends included).
bool has_control_characters(std::string_view text);

/// Whether `name` may name a policy object: 1..128 characters of [A-Za-z0-9._-].
bool is_object_name(std::string_view name);

/// `text` in single quotes for a message of one line: at most 60 bytes of it, what can not be shown
/// as `\xNN`.
std::string quote(std::string_view text);

/// `text` with every control character as `\xNN`: one line, whatever it was.
std::string escape_controls(std::string_view text);

}  // namespace gpuq
