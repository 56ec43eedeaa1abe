#include "common/runtime/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>

namespace gpuq {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

std::shared_ptr<spdlog::logger> make_logger(const std::string& program) {
  auto logger =
      std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %L %n: %v");
  return logger;
}

struct Logging {
  std::shared_ptr<spdlog::logger> logger = make_logger("gpuq");
  LogFormat format = LogFormat::kText;
};

Logging& logging() {
  static Logging instance;
  return instance;
}

// JSON string contents; control characters become \u00XX.
std::string json_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void init_logging(const std::string& program, LogLevel level, LogFormat format) {
  logging().logger = make_logger(program);
  logging().logger->set_level(to_spdlog(level));
  logging().format = format;
  if (format == LogFormat::kJson) {
    logging().logger->set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","program":"%n","message":"%v"})");
  }
}

Result<LogLevel> parse_log_level(const std::string& text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  if (text == "off") return LogLevel::kOff;
  return Error{ErrorCode::kInvalidArgument,
               "log level '" + text + "' is unknown; use debug, info, warning, error or off"};
}

Result<LogFormat> parse_log_format(const std::string& text) {
  if (text == "text") return LogFormat::kText;
  if (text == "json") return LogFormat::kJson;
  return Error{ErrorCode::kInvalidArgument,
               "log format '" + text + "' is unknown; use text or json"};
}

bool log_enabled(LogLevel level) { return logging().logger->should_log(to_spdlog(level)); }

void log_line(LogLevel level, fmt::string_view format, fmt::format_args args) {
  if (!log_enabled(level)) return;
  std::string message = fmt::vformat(format, args);
  if (logging().format == LogFormat::kJson) message = json_escaped(message);
  logging().logger->log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace gpuq
