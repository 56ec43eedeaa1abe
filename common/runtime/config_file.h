#pragma once
// Reads a daemon's YAML configuration with errors that name file, line and key.
//
//   auto file = ConfigReader::load(path);                 // error: unreadable or no YAML
//   file->read("listen", config.listen);                  // absent keys leave the default alone
//   file->section("log").read("level", level);
//   if (auto done = file->finish(); !done) ...             // first wrong value or unknown key of
//   the whole file
//
// Readers of one file share their errors and keep the file alive; copies are cheap.
// One thread.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"

namespace gpuq {

class ConfigReader {
 public:
  /// NOT_FOUND if there is no such file, INVALID_ARGUMENT if it is no YAML map. An empty file is an
  /// empty map.
  static Result<ConfigReader> load(const std::string& path);
  /// `name` stands for the file name in errors.
  static Result<ConfigReader> parse(const std::string& text, const std::string& name);

  [[nodiscard]] bool has(const std::string& key) const;
  /// Whether `key` is there and is a map / a plain value.
  [[nodiscard]] bool is_map(const std::string& key) const;
  [[nodiscard]] bool is_scalar(const std::string& key) const;

  void read(const std::string& key, std::string& out);
  void read(const std::string& key, bool& out);
  /// Values outside [min, max] are errors.
  void read(const std::string& key, std::int64_t& out, std::int64_t min, std::int64_t max);
  /// "250ms", "30s", "5m", "1h30m", "2d"; a bare number is seconds.
  void read(const std::string& key, Duration& out, Duration min, Duration max);
  /// "16GiB", "512MiB", "4KiB" or bytes.
  void read_size(const std::string& key, std::int64_t& bytes, std::int64_t min, std::int64_t max);
  /// A list of plain values, or one plain value.
  void read(const std::string& key, std::vector<std::string>& out);
  /// A map of plain values.
  void read(const std::string& key, std::map<std::string, std::string>& out);
  /// The map under `key`; an empty one if it is not there.
  ConfigReader section(const std::string& key);
  /// The maps of the list under `key`.
  std::vector<ConfigReader> sections(const std::string& key);

  /// Adds "FILE:LINE: KEY: message" for a key that this reader has seen.
  void fail(const std::string& key, const std::string& message);
  /// First error of the file by line, or success. Call once, after all reads, on any reader of the
  /// file.
  [[nodiscard]] Result<void> finish() const;

 private:
  struct File;
  struct Section;
  ConfigReader(std::shared_ptr<File> file, std::shared_ptr<Section> section);

  std::shared_ptr<File> file_;
  std::shared_ptr<Section> section_;
};

/// As in configuration files. INVALID_ARGUMENT for anything else, negative or beyond 10,000 days.
Result<Duration> parse_config_duration(const std::string& text);
/// Bytes, as in configuration files. INVALID_ARGUMENT for anything else or beyond 2^60.
Result<std::int64_t> parse_config_size(const std::string& text);

}  // namespace gpuq
