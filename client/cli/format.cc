#include "client/cli/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/amount.h"
#include "core/model/array.h"

namespace gpuq::cli {

std::string format_duration(std::int64_t ms) {
  const std::int64_t seconds = std::max<std::int64_t>(ms, 0) / 1000;
  const std::int64_t minutes = seconds / 60;
  const std::int64_t hours = minutes / 60;
  if (minutes == 0) return fmt::format("{}s", seconds);
  if (hours == 0) return fmt::format("{}m{:02}s", minutes, seconds % 60);
  if (hours < 24) return fmt::format("{}h{:02}m", hours, minutes % 60);
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

std::string format_ago(std::int64_t at_ms, std::int64_t now_ms) {
  return at_ms == 0 ? "" : format_duration(now_ms - at_ms) + " ago";
}

std::string format_rfc3339(std::int64_t at_ms) {
  if (at_ms == 0) return "";
  using std::chrono::floor;
  const std::chrono::sys_time<std::chrono::milliseconds> at{std::chrono::milliseconds(at_ms)};
  const auto day = floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

std::string format_milli(std::int64_t milli) { return to_string(Amount(milli)); }

std::string format_memory(std::int64_t mib) {
  if (mib >= 1024 && mib % 1024 == 0) return fmt::format("{} GiB", mib / 1024);
  return fmt::format("{} MiB", mib);
}

std::string format_state(v1::JobState state) {
  return state == v1::JOB_STATE_UNSPECIFIED ? "" : v1::JobState_Name(state).substr(10);
}

std::string format_state(v1::AttemptState state) {
  return state == v1::ATTEMPT_STATE_UNSPECIFIED ? "" : v1::AttemptState_Name(state).substr(14);
}

std::string format_request(std::int32_t instances, std::int64_t count_milli,
                           const std::string& unit) {
  const std::string count = format_milli(count_milli) + (unit.empty() ? "" : " " + unit);
  return instances > 1 ? fmt::format("{}x{}", instances, count) : count;
}

std::string format_nodes(const google::protobuf::RepeatedPtrField<std::string>& names) {
  constexpr int kShown = 3;
  std::string text;
  for (int i = 0; i < std::min(names.size(), kShown); ++i) {
    if (i > 0) text += ',';
    text += names[i];
  }
  if (names.size() > kShown) text += fmt::format("+{}", names.size() - kShown);
  return text;
}

std::string format_command(const google::protobuf::RepeatedPtrField<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += ' ';
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyz"
                                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-./=:,@%+") == std::string::npos;
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

std::string format_array(const v1::ArrayInfo& array) {
  const v1::ArrayRange& range = array.range();
  std::string text =
      to_string(ArrayRange{range.first(), range.last(), std::max(range.step(), 1), range.limit()});
  const v1::ArrayCounts& members = array.members();
  const std::pair<std::int32_t, const char*> counts[] = {
      {members.running(), "running"},     {members.starting(), "starting"},
      {members.scheduled(), "scheduled"}, {members.runnable(), "runnable"},
      {members.pending(), "pending"},     {members.succeeded(), "succeeded"},
      {members.failed(), "failed"}};
  const char* separator = ": ";
  for (const auto& [count, state] : counts) {
    if (count == 0) continue;
    text += fmt::format("{}{} {}", separator, count, state);
    separator = ", ";
  }
  return text;
}

bool is_terminal(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED;
}

bool is_waiting(v1::JobState state) {
  return state == v1::JOB_STATE_SUBMITTED || state == v1::JOB_STATE_PENDING ||
         state == v1::JOB_STATE_RUNNABLE;
}

}  // namespace gpuq::cli
