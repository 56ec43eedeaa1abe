#include "client/cli/values.h"

#include <charconv>
#include <utility>

#include "common/policy/units.h"

namespace gpuq::cli {

namespace {

constexpr std::int64_t kMaxMilli = 1'000'000'000;

}  // namespace

Result<Duration> parse_slurm_time(const std::string& text) {
  const bool minutes = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const bool clock = text.find_first_not_of("0123456789:-") == std::string::npos;
  if (!clock || text.empty()) {
    return invalid("'" + text + "' is no time: write 90 (minutes), 10:30, 01:30:00 or 1-12");
  }
  return gpuq::parse_duration(minutes ? text + "m" : text);
}

Result<std::int64_t> parse_milli(const std::string& text) {
  auto amount = gpuq::parse_amount(text);
  if (!amount) return amount.error();
  if (amount->milli == 0) return invalid("'" + text + "' must be more than 0");
  if (amount->milli > kMaxMilli) return invalid("'" + text + "' is too many: at most 1000000");
  if (amount->milli > 1000 && amount->milli % 1000 != 0) {
    return invalid("'" + text + "' is neither whole nor a part of one: write 2 or 0.25");
  }
  return amount->milli;
}

Result<std::int64_t> parse_integer(const std::string& what, const std::string& text,
                                   std::int64_t min, std::int64_t max) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, value);
  if (text.empty() || at != end || code != std::errc() || value < min || value > max) {
    return invalid(what + " '" + text + "' is not a whole number from " + std::to_string(min) +
                   " to " + std::to_string(max));
  }
  return value;
}

namespace {

/// Length of the well-formed sequence at `at`, 0 if there is none.
std::size_t sequence_length(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = at + 1; i < at + length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(at + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || outside ? 0 : length;
}

}  // namespace

bool is_text(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

bool glob_match(const std::string& pattern, const std::string& text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string::npos;
  std::size_t mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace gpuq::cli
