#include "common/runtime/config_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "common/runtime/files.h"

namespace gpuq {
namespace {

struct Problem {
  int line = 0;
  std::string text;
};

std::optional<Duration> unit_of(const std::string& unit) {
  using namespace std::chrono_literals;
  if (unit == "ms") return 1ms;
  if (unit == "s") return 1s;
  if (unit == "m" || unit == "min") return 1min;
  if (unit == "h") return 1h;
  if (unit == "d") return 24h;
  return std::nullopt;
}

template <typename T>
std::optional<T> number(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

}  // namespace

struct ConfigReader::Section {
  YAML::Node node;
  std::string path;  // "" or "log."
  std::set<std::string> known;
};

struct ConfigReader::File {
  std::string name;
  std::vector<Problem> problems;
  std::vector<std::shared_ptr<Section>> sections;

  std::shared_ptr<Section> add(const YAML::Node& node, std::string path) {
    auto section = std::make_shared<Section>();
    if (node) section->node.reset(node);
    add_repeated(node, path);
    section->path = std::move(path);
    sections.push_back(section);
    return section;
  }
  // Which of two values counts would be anybody's guess.
  void add_repeated(const YAML::Node& map, const std::string& path) {
    if (!map || !map.IsMap()) return;
    std::set<std::string> keys;
    for (const auto& entry : map) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (!keys.insert(key).second) add_problem(entry.first, path + key + ": is there twice");
    }
  }
  void add_problem(const YAML::Node& at, const std::string& text) {
    problems.push_back({at.Mark().line + 1, text});
  }
};

namespace {

// operator[] of a non-const node would add the key.
YAML::Node lookup(const YAML::Node& map, const std::string& key) {
  return map.IsMap() ? map[key] : YAML::Node(YAML::NodeType::Undefined);
}

bool present(const YAML::Node& node) { return node.IsDefined() && !node.IsNull(); }

}  // namespace

ConfigReader::ConfigReader(std::shared_ptr<File> file, std::shared_ptr<Section> section)
    : file_(std::move(file)), section_(std::move(section)) {}

Result<ConfigReader> ConfigReader::load(const std::string& path) {
  auto text = read_file(path);
  if (!text) return text.error();
  return parse(*text, path);
}

Result<ConfigReader> ConfigReader::parse(const std::string& text, const std::string& name) {
  auto file = std::make_shared<File>();
  file->name = name;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      return Error{ErrorCode::kInvalidArgument, name + ":" +
                                                    std::to_string(documents[1].Mark().line + 1) +
                                                    ": a second document: put all keys into one"};
    }
    const YAML::Node root = documents.empty() ? YAML::Node() : documents.front();
    if (!root.IsMap() && !root.IsNull()) {
      return Error{ErrorCode::kInvalidArgument, name + ":1: the file must be a map of keys"};
    }
    auto section = file->add(root, "");
    return ConfigReader(file, section);
  } catch (const YAML::Exception& e) {
    return Error{ErrorCode::kInvalidArgument,
                 name + ":" + std::to_string(e.mark.line + 1) + ": no valid YAML: " + e.msg};
  }
}

bool ConfigReader::has(const std::string& key) const {
  return present(lookup(section_->node, key));
}

bool ConfigReader::is_map(const std::string& key) const {
  return lookup(section_->node, key).IsDefined() && lookup(section_->node, key).IsMap();
}

bool ConfigReader::is_scalar(const std::string& key) const {
  return lookup(section_->node, key).IsDefined() && lookup(section_->node, key).IsScalar();
}

void ConfigReader::fail(const std::string& key, const std::string& message) {
  const YAML::Node at = lookup(section_->node, key);
  file_->add_problem(at.IsDefined() ? at : section_->node, section_->path + key + ": " + message);
}

void ConfigReader::read(const std::string& key, std::string& out) {
  section_->known.insert(key);
  const YAML::Node node = lookup(section_->node, key);
  if (!present(node)) return;
  if (!node.IsScalar()) return fail(key, "must be one value");
  out = node.Scalar();
}

void ConfigReader::read(const std::string& key, bool& out) {
  std::string text;
  read(key, text);
  if (!is_scalar(key)) return;
  if (!YAML::convert<bool>::decode(lookup(section_->node, key), out)) {
    fail(key, "'" + text + "' must be true or false");
  }
}

void ConfigReader::read(const std::string& key, std::int64_t& out, std::int64_t min,
                        std::int64_t max) {
  std::string text;
  read(key, text);
  if (!is_scalar(key)) return;
  const auto value = number<std::int64_t>(text);
  if (!value || *value < min || *value > max) {
    return fail(key, "'" + text + "' must be a whole number from " + std::to_string(min) + " to " +
                         std::to_string(max));
  }
  out = *value;
}

void ConfigReader::read(const std::string& key, Duration& out, Duration min, Duration max) {
  std::string text;
  read(key, text);
  if (!is_scalar(key)) return;
  const auto value = parse_config_duration(text);
  if (!value) return fail(key, value.error().message);
  if (*value < min || *value > max) {
    return fail(key, "'" + text + "' must be from " + std::to_string(min.count()) + "ms to " +
                         std::to_string(max.count()) + "ms");
  }
  out = *value;
}

void ConfigReader::read_size(const std::string& key, std::int64_t& bytes, std::int64_t min,
                             std::int64_t max) {
  std::string text;
  read(key, text);
  if (!is_scalar(key)) return;
  const auto value = parse_config_size(text);
  if (!value) return fail(key, value.error().message);
  if (*value < min || *value > max) {
    return fail(key, "'" + text + "' must be from " + std::to_string(min) + " to " +
                         std::to_string(max) + " bytes");
  }
  bytes = *value;
}

void ConfigReader::read(const std::string& key, std::vector<std::string>& out) {
  section_->known.insert(key);
  const YAML::Node node = lookup(section_->node, key);
  if (!present(node)) return;
  std::vector<std::string> values;
  if (node.IsScalar()) values.push_back(node.Scalar());
  if (node.IsMap()) return fail(key, "must be a list of values");
  for (const auto& item : node) {
    if (!item.IsScalar()) return fail(key, "must be a list of plain values");
    values.push_back(item.Scalar());
  }
  out = std::move(values);
}

void ConfigReader::read(const std::string& key, std::map<std::string, std::string>& out) {
  section_->known.insert(key);
  const YAML::Node node = lookup(section_->node, key);
  if (!present(node)) return;
  if (!node.IsMap()) return fail(key, "must be a map of names and values");
  std::map<std::string, std::string> values;
  for (const auto& item : node) {
    if (!item.first.IsScalar() || !item.second.IsScalar()) {
      return fail(key, "must be a map of plain values");
    }
    values[item.first.Scalar()] = item.second.Scalar();
  }
  out = std::move(values);
}

ConfigReader ConfigReader::section(const std::string& key) {
  section_->known.insert(key);
  const YAML::Node node = lookup(section_->node, key);
  if (present(node) && !node.IsMap()) fail(key, "must be a map of keys");
  const bool usable = present(node) && node.IsMap();
  return {file_, file_->add(usable ? node : YAML::Node(), section_->path + key + ".")};
}

std::vector<ConfigReader> ConfigReader::sections(const std::string& key) {
  section_->known.insert(key);
  std::vector<ConfigReader> out;
  const YAML::Node node = lookup(section_->node, key);
  if (!present(node)) return out;
  if (!node.IsSequence()) {
    fail(key, "must be a list");
    return out;
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    const std::string path = section_->path + key + "[" + std::to_string(i) + "].";
    if (node[i].IsMap()) {
      out.push_back({file_, file_->add(node[i], path)});
    } else {
      file_->add_problem(node[i], path + " must be a map of keys");
    }
  }
  return out;
}

Result<void> ConfigReader::finish() const {
  std::vector<Problem> problems = file_->problems;
  for (const auto& section : file_->sections) {
    for (const auto& item : section->node) {
      const std::string key = item.first.IsScalar() ? item.first.Scalar() : "?";
      if (section->known.count(key) != 0) continue;
      std::string text = section->path + key + ": unknown key; known here:";
      for (const auto& known : section->known) text += " " + known;
      problems.push_back({item.first.Mark().line + 1, text});
    }
  }
  if (problems.empty()) return {};
  const auto first =
      std::min_element(problems.begin(), problems.end(),
                       [](const Problem& a, const Problem& b) { return a.line < b.line; });
  return Error{ErrorCode::kInvalidArgument,
               file_->name + ":" + std::to_string(first->line) + ": " + first->text};
}

Result<std::int64_t> parse_config_size(const std::string& text) {
  static const std::map<std::string, int> kShifts{{"", 0},     {"B", 0},  {"KiB", 10}, {"K", 10},
                                                  {"MiB", 20}, {"M", 20}, {"GiB", 30}, {"G", 30},
                                                  {"TiB", 40}, {"T", 40}};
  const auto unit_at = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = number<std::uint64_t>(text.substr(0, unit_at));
  const auto shift = kShifts.find(text.substr(unit_at));
  if (!count || shift == kShifts.end() || *count > ((std::uint64_t{1} << 60) >> shift->second)) {
    return Error{ErrorCode::kInvalidArgument,
                 "'" + text + "' is no size; write it like 16GiB, 512MiB or 4096"};
  }
  return static_cast<std::int64_t>(*count << shift->second);
}

Result<Duration> parse_config_duration(const std::string& text) {
  constexpr Duration kLongest = std::chrono::hours(240'000);
  const Error wrong{ErrorCode::kInvalidArgument,
                    "'" + text + "' is no duration; write it like 30s, 5m or 1h30m"};
  if (const auto seconds = number<std::uint32_t>(text)) {
    const Duration value = std::chrono::seconds(*seconds);
    if (value > kLongest) return wrong;
    return value;
  }
  Duration total{0};
  std::size_t at = 0;
  while (at < text.size()) {
    const auto unit_at = text.find_first_not_of("0123456789", at);
    if (unit_at == std::string::npos || unit_at == at) return wrong;
    const auto next = std::min(text.find_first_of("0123456789", unit_at), text.size());
    const auto count = number<std::uint32_t>(text.substr(at, unit_at - at));
    const auto unit = unit_of(text.substr(unit_at, next - unit_at));
    if (!count || !unit) return wrong;
    total += *unit * static_cast<std::int64_t>(*count);
    if (total > kLongest) return wrong;
    at = next;
  }
  if (text.empty()) return wrong;
  return total;
}

}  // namespace gpuq
