#include "common/policy/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "core/base/text.h"

namespace gpuq {

namespace {

constexpr std::int64_t kMaxMemoryMib = 1'000'000'000;
constexpr std::int64_t kMaxUnits = 1'000'000'000;

struct DurationUnit {
  std::string_view name;
  std::int64_t ms;
};
constexpr std::array<DurationUnit, 5> kDurationUnits{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// All of `text` as digits; nullopt otherwise and beyond 64 bits.
std::optional<std::int64_t> digits(std::string_view text) {
  std::int64_t value = 0;
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::size_t count_digits(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

/// `count` x `unit_ms` + `sum`, or nullopt beyond kMaxDuration.
std::optional<std::int64_t> add_bounded(std::int64_t sum, std::int64_t count,
                                        std::int64_t unit_ms) {
  if (count > kMaxDuration.count() / unit_ms) return std::nullopt;
  sum += count * unit_ms;
  return sum > kMaxDuration.count() ? std::nullopt : std::optional(sum);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

enum class Bad { kSyntax, kTooLong };

struct Parsed {
  std::int64_t ms = 0;
  std::optional<Bad> bad;
};

/// [days-]hours[:minutes[:seconds]] with days, hours:minutes:seconds or minutes:seconds without.
Parsed parse_clock(std::string_view text) {
  std::int64_t sum = 0;
  const std::size_t dash = text.find('-');
  const bool with_days = dash != std::string_view::npos;
  if (with_days) {
    const auto days = digits(text.substr(0, dash));
    if (!days) return {0, Bad::kSyntax};
    const auto total = add_bounded(0, *days, 86'400'000);
    if (!total) return {0, Bad::kTooLong};
    sum = *total;
    text.remove_prefix(dash + 1);
  }
  const auto parts = split(text, ':');
  if (parts.size() > 3 || (!with_days && parts.size() < 2)) return {0, Bad::kSyntax};
  std::size_t unit = with_days || parts.size() == 3 ? 1 : 2;  // Of kDurationUnits: hours, minutes.
  for (std::size_t i = 0; i < parts.size(); ++i, ++unit) {
    const auto value = digits(parts[i]);
    const std::int64_t bound = unit == 1 ? (with_days ? 23 : INT64_MAX) : (i == 0 ? INT64_MAX : 59);
    if (!value || *value > bound) return {0, Bad::kSyntax};
    const auto total = add_bounded(sum, *value, kDurationUnits[unit].ms);
    if (!total) return {0, Bad::kTooLong};
    sum = *total;
  }
  return {sum, {}};
}

/// "1h30m": numbers with units, largest first, each unit once.
Parsed parse_with_units(std::string_view text) {
  std::int64_t sum = 0;
  std::size_t next_unit = 0;
  while (!text.empty()) {
    const std::size_t length = count_digits(text);
    const std::string_view number = text.substr(0, length);
    if (number.empty()) return {0, Bad::kSyntax};
    text.remove_prefix(length);
    const auto name_end = std::ranges::find_if(text, is_digit);
    const std::string_view name = text.substr(0, static_cast<std::size_t>(name_end - text.begin()));
    text.remove_prefix(name.size());
    while (next_unit < kDurationUnits.size() && kDurationUnits[next_unit].name != name) ++next_unit;
    if (next_unit == kDurationUnits.size()) return {0, Bad::kSyntax};
    const auto value = digits(number);
    const auto total =
        value ? add_bounded(sum, *value, kDurationUnits[next_unit].ms) : std::nullopt;
    if (!total) return {0, Bad::kTooLong};
    sum = *total;
    ++next_unit;
  }
  return {sum, {}};
}

/// A decimal as `scale`-ths: "1.5" with scale 1000 is 1500. nullopt: no decimal, or out of bounds.
struct Decimal {
  std::int64_t whole = 0;
  std::int64_t fraction = 0;  ///< Of 1000.
  bool too_fine = false;
};
std::optional<Decimal> parse_decimal(std::string_view text) {
  const std::size_t length = count_digits(text);
  const auto whole = digits(text.substr(0, length));
  if (!whole) return std::nullopt;
  Decimal result{*whole, 0, false};
  if (length == text.size()) return result;
  std::string_view rest = text.substr(length);
  if (rest.front() != '.' || rest.size() < 2 || count_digits(rest.substr(1)) != rest.size() - 1) {
    return std::nullopt;
  }
  rest.remove_prefix(1);
  while (rest.size() > 3 && rest.back() == '0') rest.remove_suffix(1);
  result.too_fine = rest.size() > 3;
  for (std::size_t i = 0; i < 3; ++i) {
    result.fraction = result.fraction * 10 + (i < rest.size() ? rest[i] - '0' : 0);
  }
  return result;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  Parsed parsed;
  if (!text.empty() && count_digits(text) == text.size()) {
    const auto seconds = digits(text);
    const auto total = seconds ? add_bounded(0, *seconds, 1000) : std::nullopt;
    parsed = total ? Parsed{*total, {}} : Parsed{0, Bad::kTooLong};
  } else if (text.empty() || text.front() == '-') {
    parsed.bad = Bad::kSyntax;
  } else if (text.find_first_of(":-") != std::string_view::npos) {
    parsed = parse_clock(text);
  } else {
    parsed = parse_with_units(text);
  }
  if (!parsed.bad) return Duration(parsed.ms);
  if (*parsed.bad == Bad::kTooLong) {
    return invalid(fmt::format("duration {} is too long: at most 3650d", quote(text)));
  }
  return invalid(fmt::format(
      "{} is no duration: write 90 (seconds), 500ms, 15m, 1h30m, 2d or 1-02:00:00", quote(text)));
}

std::string format_duration(Duration duration) {
  std::int64_t ms = duration.count();
  if (ms == 0) return "0s";
  std::string text = ms < 0 ? "-" : "";
  // Negative remainders keep INT64_MIN safe, which has no positive counterpart.
  for (const auto& [name, unit_ms] : kDurationUnits) {
    const std::int64_t count = ms / unit_ms;
    if (count == 0) continue;
    text += fmt::format("{}{}", count < 0 ? -count : count, name);
    ms -= count * unit_ms;
  }
  return text;
}

Result<std::int64_t> parse_memory(std::string_view text) {
  const auto suffix_at = std::ranges::find_if(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
  const std::size_t length = static_cast<std::size_t>(suffix_at - text.begin());
  std::string suffix;
  for (const char c : text.substr(length)) {
    suffix += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  const auto number = parse_decimal(text.substr(0, length));
  constexpr std::array<std::string_view, 4> kSuffixes{"k", "m", "g", "t"};
  std::size_t power = 1;
  if (!suffix.empty()) {
    power = static_cast<std::size_t>(
        std::ranges::find(kSuffixes, std::string_view(suffix).substr(0, 1)) - kSuffixes.begin());
    const std::string_view tail = std::string_view(suffix).substr(1);
    if (tail != "" && tail != "b" && tail != "ib") power = kSuffixes.size();
  }
  if (!number || number->too_fine || power == kSuffixes.size()) {
    return invalid(
        fmt::format("{} is no memory size: write 512MiB, 16G, 1.5T or 4096 (MiB)", quote(text)));
  }
  __extension__ using Wide = __int128;
  const Wide thousandths_kib = (static_cast<Wide>(number->whole) * 1000 + number->fraction)
                               << (10 * power);
  const Wide mib = (thousandths_kib + 1'024'000 - 1) / 1'024'000;
  if (mib > kMaxMemoryMib) {
    return invalid(
        fmt::format("memory {} is too large: at most {} MiB", quote(text), kMaxMemoryMib));
  }
  return static_cast<std::int64_t>(mib);
}

std::string format_memory(std::int64_t mib) {
  if (mib != 0 && mib % (1024 * 1024) == 0) return fmt::format("{}TiB", mib / (1024 * 1024));
  if (mib != 0 && mib % 1024 == 0) return fmt::format("{}GiB", mib / 1024);
  return fmt::format("{}MiB", mib);
}

Result<Amount> parse_amount(std::string_view text) {
  if (text.size() > 1 && text.front() == '-' && parse_decimal(text.substr(1))) {
    return invalid(fmt::format("{} is negative: write 0 or more", quote(text)));
  }
  const auto number = parse_decimal(text);
  if (!number) {
    if (!text.empty() && count_digits(text) == text.size()) {
      return invalid(fmt::format("{} is too large: at most {}", quote(text), kMaxUnits));
    }
    return invalid(fmt::format("{} is no amount: write a number such as 8 or 0.25", quote(text)));
  }
  if (number->too_fine) {
    return invalid(fmt::format("{} is too fine: at most three decimals", quote(text)));
  }
  if (number->whole > kMaxUnits || (number->whole == kMaxUnits && number->fraction > 0)) {
    return invalid(fmt::format("{} is too large: at most {}", quote(text), kMaxUnits));
  }
  return Amount(number->whole * 1000 + number->fraction);
}

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t min, std::int64_t max) {
  const bool negative = !text.empty() && text.front() == '-';
  const std::string_view magnitude = negative ? text.substr(1) : text;
  if (magnitude.empty() || count_digits(magnitude) != magnitude.size()) {
    return invalid(fmt::format("{} is no whole number: write {} to {}", quote(text), min, max));
  }
  const auto value = digits(magnitude);
  const std::int64_t signed_value = value ? (negative ? -*value : *value) : 0;
  if (!value || signed_value < min || signed_value > max) {
    return invalid(fmt::format("{} is out of range: write {} to {}", quote(text), min, max));
  }
  return signed_value;
}

}  // namespace gpuq
