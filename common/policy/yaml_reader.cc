#include "common/policy/yaml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text.h"

namespace gpuq {

namespace {

using Kind = YamlNode::Kind;

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return quote(node.scalar);
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "";
}

std::string join_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

/// A scalar's text. Numbers and booleans must stand without quotes.
const std::string* scalar_of(const YamlNode& node, const std::string& path, bool must_be_plain,
                             const char* wanted, std::vector<FileIssue>& issues) {
  if (node.kind != Kind::kScalar) {
    add_error(node, path, fmt::format("expected {}, found {}", wanted, describe(node)), issues);
    return nullptr;
  }
  if (must_be_plain && !node.plain) {
    add_error(node, path,
              fmt::format("expected {}, found the text {}: remove the quotes", wanted,
                          quote(node.scalar)),
              issues);
    return nullptr;
  }
  return &node.scalar;
}

}  // namespace

void add_error(const YamlNode& node, const std::string& path, std::string message,
               std::vector<FileIssue>& issues) {
  issues.push_back({node.at.line, node.at.column, path, std::move(message), true});
}

std::optional<std::string> read_text(const YamlNode& node, const std::string& path,
                                     std::vector<FileIssue>& issues) {
  const std::string* text = scalar_of(node, path, false, "a text", issues);
  return text != nullptr ? std::optional(*text) : std::nullopt;
}

std::optional<Amount> read_amount(const YamlNode& node, const std::string& path,
                                  std::vector<FileIssue>& issues) {
  const std::string* text = scalar_of(node, path, true, "a number", issues);
  if (text == nullptr) return std::nullopt;
  auto amount = parse_amount(*text);
  if (amount) return *amount;
  add_error(node, path, amount.error().message, issues);
  return std::nullopt;
}

std::optional<std::int64_t> read_integer(const YamlNode& node, const std::string& path,
                                         std::int64_t min, std::int64_t max,
                                         std::vector<FileIssue>& issues) {
  const std::string* text = scalar_of(node, path, true, "a whole number", issues);
  if (text == nullptr) return std::nullopt;
  auto value = parse_integer(*text, min, max);
  if (value) return *value;
  add_error(node, path, value.error().message, issues);
  return std::nullopt;
}

std::vector<std::string> read_texts(const YamlNode& node, const std::string& path,
                                    std::vector<FileIssue>& issues) {
  std::vector<std::string> texts;
  if (node.kind != Kind::kList) {
    add_error(node, path, fmt::format("expected a list, found {}", describe(node)), issues);
    return texts;
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    auto text = read_text(node.items[i], fmt::format("{}[{}]", path, i), issues);
    if (text) texts.push_back(std::move(*text));
  }
  return texts;
}

MapReader::MapReader(const YamlNode& node, std::string path, std::vector<FileIssue>& issues)
    : node_(node), path_(std::move(path)), issues_(issues) {
  if (node.kind != Kind::kMap) {
    error_here(fmt::format("expected a map, found {}", describe(node)));
    return;
  }
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const YamlKey& key = node.keys[i];
    const auto [it, fresh] = index_.emplace(key.name, i);
    if (fresh) continue;
    issues_.push_back(
        {key.at.line, key.at.column, path_of(key.name),
         fmt::format("duplicate key, first given in line {}", node.keys[it->second].at.line),
         true});
  }
}

const YamlNode* MapReader::find(const std::string& key) {
  known_.insert(key);
  const auto it = index_.find(key);
  return it != index_.end() ? &node_.items[it->second] : nullptr;
}

bool MapReader::has(const std::string& key) const { return index_.contains(key); }

bool MapReader::require(const std::string& key) {
  known_.insert(key);
  if (has(key)) return true;
  if (node_.kind == Kind::kMap) error_here(fmt::format("needs the key '{}'", key));
  return false;
}

std::optional<std::string> MapReader::read_scalar(const std::string& key, bool must_be_plain,
                                                  const char* wanted) {
  const YamlNode* node = find(key);
  if (node == nullptr) return std::nullopt;
  const std::string* text = scalar_of(*node, path_of(key), must_be_plain, wanted, issues_);
  return text != nullptr ? std::optional(*text) : std::nullopt;
}

bool MapReader::text(const std::string& key, std::string& out) {
  auto text = read_scalar(key, false, "a text");
  if (text) out = std::move(*text);
  return text.has_value();
}

bool MapReader::text(const std::string& key, std::optional<std::string>& out) {
  auto text = read_scalar(key, false, "a text");
  if (text) out = std::move(*text);
  return text.has_value();
}

bool MapReader::boolean(const std::string& key, bool& out) {
  const auto text = read_scalar(key, true, "true or false");
  if (!text) return false;
  if (*text != "true" && *text != "false") {
    error(key, fmt::format("expected true or false, found {}", quote(*text)));
    return false;
  }
  out = *text == "true";
  return true;
}

bool MapReader::amount(const std::string& key, Amount& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return false;
  const auto amount = read_amount(*node, path_of(key), issues_);
  if (amount) out = *amount;
  return amount.has_value();
}

bool MapReader::duration(const std::string& key, std::optional<Duration>& out, Duration max) {
  const auto text = read_scalar(key, false, "a duration");
  if (!text) return false;
  const auto duration = parse_duration(*text);
  if (!duration) {
    error(key, duration.error().message);
    return false;
  }
  if (*duration > max) {
    error(key,
          fmt::format("duration {} is too long: at most {}", quote(*text), format_duration(max)));
    return false;
  }
  out = *duration;
  return true;
}

bool MapReader::duration(const std::string& key, Duration& out, Duration max) {
  std::optional<Duration> value;
  if (!duration(key, value, max)) return false;
  out = *value;
  return true;
}

bool MapReader::memory_mib(const std::string& key, std::int64_t& out) {
  const auto text = read_scalar(key, false, "a memory size");
  if (!text) return false;
  const auto mib = parse_memory(*text);
  if (!mib) {
    error(key, mib.error().message);
    return false;
  }
  out = *mib;
  return true;
}

bool MapReader::texts(const std::string& key, std::vector<std::string>& out) {
  const YamlNode* node = find(key);
  if (node == nullptr) return false;
  out = read_texts(*node, path_of(key), issues_);
  return node->kind == Kind::kList;
}

bool MapReader::text_map(const std::string& key, std::map<std::string, std::string>& out) {
  return entries(key, [&](const std::string& name, const YamlNode& value, const std::string& path) {
    auto text = read_text(value, path, issues_);
    if (text) out[name] = std::move(*text);
  });
}

std::optional<std::int64_t> MapReader::read_integer(const std::string& key, std::int64_t min,
                                                    std::int64_t max) {
  const YamlNode* node = find(key);
  if (node == nullptr) return std::nullopt;
  return gpuq::read_integer(*node, path_of(key), min, max, issues_);
}

std::optional<std::size_t> MapReader::read_word(const std::string& key,
                                                const std::vector<std::string>& names) {
  const std::string wanted = fmt::format("{}", fmt::join(names, names.size() == 2 ? " or " : ", "));
  const auto text = read_scalar(key, false, wanted.c_str());
  if (!text) return std::nullopt;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == *text) return i;
  }
  error(key, fmt::format("expected {}, found {}", wanted, quote(*text)));
  return std::nullopt;
}

bool MapReader::list(const std::string& key,
                     const std::function<void(const YamlNode&, const std::string&)>& each) {
  const YamlNode* node = find(key);
  if (node == nullptr) return false;
  if (node->kind != Kind::kList) {
    error(key, fmt::format("expected a list, found {}", describe(*node)));
    return false;
  }
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    each(node->items[i], fmt::format("{}[{}]", path_of(key), i));
  }
  return true;
}

bool MapReader::entries(
    const std::string& key,
    const std::function<void(const std::string&, const YamlNode&, const std::string&)>& each) {
  const YamlNode* node = find(key);
  if (node == nullptr) return false;
  MapReader map(*node, path_of(key), issues_);
  for (const YamlKey& entry : node->keys) {
    const YamlNode* value = map.known_.contains(entry.name) ? nullptr : map.find(entry.name);
    if (value != nullptr) each(entry.name, *value, map.path_of(entry.name));
  }
  return node->kind == Kind::kMap;
}

void MapReader::finish() {
  for (const auto& [name, i] : index_) {
    if (known_.contains(name)) continue;
    const FilePosition at = node_.keys[i].at;
    issues_.push_back(
        {at.line, at.column, path_,
         fmt::format("unknown key {}; known here: {}", quote(name), fmt::join(known_, ", ")),
         true});
  }
}

void MapReader::error(const std::string& key, std::string message) {
  const auto it = index_.find(key);
  add_error(it != index_.end() ? node_.items[it->second] : node_, path_of(key), std::move(message),
            issues_);
}

void MapReader::error_here(std::string message) {
  add_error(node_, path_, std::move(message), issues_);
}

std::string MapReader::path_of(const std::string& key) const { return join_path(path_, key); }

}  // namespace gpuq
