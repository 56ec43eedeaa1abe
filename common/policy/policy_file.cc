#include "common/policy/policy_file.h"

#include "common/policy/policy_reader.h"
#include "core/model/policy_check.h"

namespace gpuq {

namespace {

/// A server may allow more than the default limits: those are checked there alone.
constexpr std::int32_t kNoLimit = 1'000'000;

bool names_every_kind(const PolicyDoc& doc) {
  return doc.units && doc.environments && doc.policies && doc.queues;
}

}  // namespace

FileIssue ParsedPolicy::locate(const PolicyIssue& issue) const {
  const FilePosition at = find_position(positions, issue.path);
  return {at.line, at.column, issue.path, issue.message, issue.is_error};
}

ParsedPolicy parse_policy_text(std::string_view text) {
  ParsedPolicy parsed;
  const auto root = parse_yaml(text, parsed.issues);
  if (!root) return parsed;
  parsed.positions = yaml_positions(*root);
  parsed.doc = read_policy(*root, "", parsed.issues);
  // What refers to a kind that the file leaves out can only be judged beside the server's policy.
  if (names_every_kind(parsed.doc) && !has_errors(parsed.issues)) {
    for (const PolicyIssue& issue : check_policy(parsed.doc, kNoLimit, kNoLimit)) {
      // Warnings are the server's to give: it sees the nodes too.
      if (issue.is_error) parsed.issues.push_back(parsed.locate(issue));
    }
  }
  return parsed;
}

Result<ParsedPolicy> parse_policy_file(const std::string& path) {
  const auto text = read_policy_file(path);
  if (!text) return text.error();
  ParsedPolicy parsed = parse_policy_text(*text);
  if (has_errors(parsed.issues)) return as_error(parsed.issues, path);
  return parsed;
}

}  // namespace gpuq
