#pragma once
// Policy files: the YAML that administrators keep, to a PolicyDoc and back. Pure; any thread.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/policy/file_issue.h"
#include "core/model/policy.h"

namespace gpuq {

struct ParsedPolicy {
  PolicyDoc doc;  ///< Incomplete where `issues` has errors.
  std::vector<FileIssue> issues;
  std::map<std::string, FilePosition> positions;  ///< Of every value, by path.

  /// An issue that the server found, with its place in this file.
  [[nodiscard]] FileIssue locate(const PolicyIssue& issue) const;
};

/// Shape, types, ranges, unknown and duplicate keys, duplicate and malformed names: all at once. Of
/// references, only what the file itself decides: a kind that it does not name is left to the
/// server.
ParsedPolicy parse_policy_text(std::string_view text);

/// parse_policy_text of a file. The Error is what read_policy_file says, or all errors of the file.
Result<ParsedPolicy> parse_policy_file(const std::string& path);

/// The document as a policy file that parses to the same document.
std::string to_yaml(const PolicyDoc& doc);

}  // namespace gpuq
