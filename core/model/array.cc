#include "core/model/array.h"

#include <fmt/format.h>

#include <charconv>

#include "core/base/text.h"

namespace gpuq {

namespace {

/// Takes the digits at the front of `text`; nullopt where there are none or too many.
std::optional<std::int32_t> take_number(std::string_view& text) {
  std::int32_t value = 0;
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// Takes `mark` and the number behind it; leaves `value` alone where there is no mark.
bool take_part(std::string_view& text, char mark, std::int32_t& value) {
  if (text.empty() || text.front() != mark) return true;
  text.remove_prefix(1);
  const auto number = take_number(text);
  value = number.value_or(0);
  return number.has_value();
}

}  // namespace

std::optional<JobId> JobArray::member_at_index(std::int32_t index) const {
  if (index < range.first || index > range.last) return std::nullopt;
  if ((index - range.first) % range.step != 0) return std::nullopt;
  return member((index - range.first) / range.step);
}

JobState MemberCounts::state() const {
  for (const JobState state : {JobState::kRunning, JobState::kStarting, JobState::kScheduled,
                               JobState::kRunnable, JobState::kPending}) {
    if (in(state) > 0) return state;
  }
  return in(JobState::kFailed) > 0 ? JobState::kFailed : JobState::kSucceeded;
}

Result<void> check_array(const ArrayRange& range) {
  if (range.first < 0 || range.last > kMaxArrayIndex) {
    return invalid(fmt::format("array {}: indexes are 0 to {}", to_string(range), kMaxArrayIndex));
  }
  if (range.last < range.first) {
    return invalid(fmt::format("array {}: the last index is below the first: write {}-{}",
                               to_string(range), range.last, range.first));
  }
  if (range.step < 1) {
    return invalid(fmt::format("array {}: the step is 1 or more", to_string(range)));
  }
  if (range.size() > kMaxArraySize) {
    return invalid(fmt::format("array {} has {} members: at most {} are allowed, submit several",
                               to_string(range), range.size(), kMaxArraySize));
  }
  if (range.limit < 0) {
    return invalid(
        fmt::format("array {}: the limit is 1 or more, leave it out for none", to_string(range)));
  }
  return {};
}

Result<ArrayRange> parse_array(std::string_view text) {
  const Error no_array = invalid(
      fmt::format("array {}: write FIRST-LAST, FIRST-LAST:STEP or FIRST-LAST%LIMIT, for instance "
                  "0-99%10",
                  quote(std::string(text))));
  std::string_view rest = text;
  const auto first = take_number(rest);
  if (!first) return no_array;
  ArrayRange range{*first, *first};
  std::int32_t limit = -1;
  if (!take_part(rest, '-', range.last) || !take_part(rest, ':', range.step) ||
      !take_part(rest, '%', limit) || !rest.empty()) {
    return no_array;
  }
  if (limit == 0) {
    return invalid(fmt::format("array {}: with the limit 0 no member ever starts: 1 or more",
                               quote(std::string(text))));
  }
  range.limit = limit < 0 ? 0 : limit;
  if (auto checked = check_array(range); !checked) return checked.error();
  return range;
}

std::string index_text(const ArrayRange& range) {
  std::string text = fmt::format("{}-{}", range.first, range.last);
  if (range.step != 1) text += fmt::format(":{}", range.step);
  return text;
}

std::string to_string(const ArrayRange& range) {
  std::string text = index_text(range);
  if (range.limit != 0) text += fmt::format("%{}", range.limit);
  return text;
}

}  // namespace gpuq
