#pragma once
// Typed, strict reading of a YAML map: every wrong type, range, duplicate and unknown key becomes
// an issue with its place, and reading goes on. Used by all file formats of this folder.
//
//   MapReader map(node, "job_queues[0]", issues);
//   map.text("name", queue.name);                 // absent: `queue.name` stays
//   map.integer("priority", queue.priority, 0, 1000);
//   map.finish();                                 // unknown keys
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/policy/units.h"
#include "common/policy/yaml_tree.h"

namespace gpuq {

class MapReader {
 public:
  /// `node` and `issues` must outlive the reader. What is no map is an issue and reads as empty.
  MapReader(const YamlNode& node, std::string path, std::vector<FileIssue>& issues);

  /// The value of `key`, which becomes a known key; null if absent or duplicate.
  const YamlNode* find(const std::string& key);
  [[nodiscard]] bool has(const std::string& key) const;
  /// An issue if `key` is absent. Call before or after reading it.
  bool require(const std::string& key);

  // Each reads `key` into `out` if it is there and right, and says whether it did.
  bool text(const std::string& key, std::string& out);
  bool text(const std::string& key, std::optional<std::string>& out);
  bool boolean(const std::string& key, bool& out);
  bool amount(const std::string& key, Amount& out);
  bool duration(const std::string& key, Duration& out, Duration max = kMaxDuration);
  bool duration(const std::string& key, std::optional<Duration>& out, Duration max = kMaxDuration);
  bool memory_mib(const std::string& key, std::int64_t& out);
  bool texts(const std::string& key, std::vector<std::string>& out);
  bool text_map(const std::string& key, std::map<std::string, std::string>& out);

  template <typename Int>
  bool integer(const std::string& key, Int& out, Int min,
               Int max = std::numeric_limits<Int>::max()) {
    const auto value = read_integer(key, min, max);
    if (value) out = static_cast<Int>(*value);
    return value.has_value();
  }
  template <typename Int>
  bool integer(const std::string& key, std::optional<Int>& out, Int min,
               Int max = std::numeric_limits<Int>::max()) {
    const auto value = read_integer(key, min, max);
    if (value) out = static_cast<Int>(*value);
    return value.has_value();
  }
  /// One of `words`, exactly as written.
  template <typename Enum>
  bool word(const std::string& key, Enum& out,
            std::initializer_list<std::pair<const char*, Enum>> words) {
    std::vector<std::string> names;
    for (const auto& [name, value] : words) names.emplace_back(name);
    const auto index = read_word(key, names);
    if (index) out = (words.begin() + static_cast<std::ptrdiff_t>(*index))->second;
    return index.has_value();
  }

  /// Calls `each(item, path)` for the items of the list `key`.
  bool list(const std::string& key,
            const std::function<void(const YamlNode&, const std::string&)>& each);
  /// Calls `each(name, value, path)` for the entries of the map `key`, in file order.
  bool entries(
      const std::string& key,
      const std::function<void(const std::string&, const YamlNode&, const std::string&)>& each);

  /// Issues for the keys that nobody asked for.
  void finish();

  void error(const std::string& key, std::string message);  ///< At the value of `key`.
  void error_here(std::string message);                     ///< At the map itself.
  [[nodiscard]] std::string path_of(const std::string& key) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const YamlNode& node() const { return node_; }

 private:
  std::optional<std::string> read_scalar(const std::string& key, bool must_be_plain,
                                         const char* wanted);
  std::optional<std::int64_t> read_integer(const std::string& key, std::int64_t min,
                                           std::int64_t max);
  std::optional<std::size_t> read_word(const std::string& key,
                                       const std::vector<std::string>& names);

  const YamlNode& node_;
  std::string path_;
  std::vector<FileIssue>& issues_;
  std::map<std::string, std::size_t> index_;
  std::set<std::string> known_;
};

/// The text of a scalar; an issue and nullopt for anything else.
std::optional<std::string> read_text(const YamlNode& node, const std::string& path,
                                     std::vector<FileIssue>& issues);
std::optional<Amount> read_amount(const YamlNode& node, const std::string& path,
                                  std::vector<FileIssue>& issues);
std::optional<std::int64_t> read_integer(const YamlNode& node, const std::string& path,
                                         std::int64_t min, std::int64_t max,
                                         std::vector<FileIssue>& issues);
std::vector<std::string> read_texts(const YamlNode& node, const std::string& path,
                                    std::vector<FileIssue>& issues);
void add_error(const YamlNode& node, const std::string& path, std::string message,
               std::vector<FileIssue>& issues);

}  // namespace gpuq
