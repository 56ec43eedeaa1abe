#pragma once
// Durations, memory sizes and amounts as people write them. Pure; every error names the value and
// says what to write instead.
#include <string>
#include <string_view>

#include "core/base/amount.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace gpuq {

/// Longest duration that any setting takes: 3650 days.
inline constexpr Duration kMaxDuration{std::chrono::hours(24 * 3650)};

/// "500ms", "10s", "15m", "2h", "1d", "1h30m" (units descending, each once), "90" (seconds),
/// "1-02:00:00", "1-02:00", "1-02" (days-hours...), "02:00:00", "10:30" (minutes:seconds).
Result<Duration> parse_duration(std::string_view text);

/// The shortest of the forms with units: "1h30m", "90s" as "1m30s", "0s", "1d". Negative ones get
/// a sign.
std::string format_duration(Duration duration);

/// MiB, rounded up. "16G", "16GiB", "16GB", "512M", "1.5T", "4096" (MiB); case does not matter, all
/// suffixes are powers of 1024. At most 1,000,000,000 MiB.
Result<std::int64_t> parse_memory(std::string_view text);

/// "16GiB", "1536MiB": the largest suffix that keeps the number whole.
std::string format_memory(std::int64_t mib);

/// "8", "0.25": not negative, at most three decimals, at most 1,000,000,000 units. Exact.
Result<Amount> parse_amount(std::string_view text);

/// Decimal integer with an optional minus, within [min, max].
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t min, std::int64_t max);

}  // namespace gpuq
