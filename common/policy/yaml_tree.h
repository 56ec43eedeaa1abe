#pragma once
// A YAML document as a tree that knows where every value stands. Built from the YAML library's
// events, so that duplicate keys stay visible and nothing throws. Values; any thread.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/policy/file_issue.h"

namespace gpuq {

struct YamlNode;

struct YamlKey {
  std::string name;
  FilePosition at;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool plain = true;  ///< A scalar without quotes: may be a number or a boolean.
  FilePosition at;
  std::string scalar;
  std::vector<YamlNode> items;  ///< Of a list; of a map its values, beside `keys`.
  std::vector<YamlKey> keys;
};

/// Exactly one document. Nothing, with issues, for what is no YAML, more than kMaxPolicyFileBytes,
/// no UTF-8, empty, several documents, anchors and aliases, or nested deeper than 64.
std::optional<YamlNode> parse_yaml(std::string_view text, std::vector<FileIssue>& issues);

/// Where every value of the tree stands, by path ("a.b[2].c").
std::map<std::string, FilePosition> yaml_positions(const YamlNode& root);

/// The position of `path`, else of the nearest enclosing value that is known.
FilePosition find_position(const std::map<std::string, FilePosition>& positions, std::string path);

}  // namespace gpuq
