#pragma once
// Logging of a daemon, to stderr. Thread-safe. Messages of operators' interest at info, single
// events at debug; error = a person must act. No secrets and no job environment.
//
//   log_info("node {} registered with {} devices", name, count);
#include <fmt/core.h>

#include <string>
#include <utility>

#include "core/base/result.h"

namespace gpuq {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };

/// Where nothing is set: info, text. `program` becomes part of every line. Call before threads
/// start.
void init_logging(const std::string& program, LogLevel level, LogFormat format);
/// "debug", "info", "warning", "error" or "off".
Result<LogLevel> parse_log_level(const std::string& text);
/// "text" or "json".
Result<LogFormat> parse_log_format(const std::string& text);

bool log_enabled(LogLevel level);
void log_line(LogLevel level, fmt::string_view format, fmt::format_args args);

template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kDebug)) {
    log_line(LogLevel::kDebug, format, fmt::make_format_args(args...));
  }
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kInfo, format, fmt::make_format_args(args...));
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarning, format, fmt::make_format_args(args...));
}
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kError, format, fmt::make_format_args(args...));
}

}  // namespace gpuq
