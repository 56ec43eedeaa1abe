#include "common/policy/policy_file.h"

#include <algorithm>

#include "common/policy/policy_reader.h"
#include "core/model/policy_check.h"

namespace gpuq {

namespace {

bool names_every_kind(const PolicyDoc& doc) {
  return doc.units && doc.environments && doc.policies && doc.queues;
}

bool is_inside(const std::string& path, const std::string& outer) {
  return path.starts_with(outer) &&
         (path.size() == outer.size() || path[outer.size()] == '.' || path[outer.size()] == '[');
}

/// Whether an issue leaves it open what objects there are, so that references can not be judged.
bool hides_objects(const FileIssue& issue) {
  return issue.path.find('.') == std::string::npos || issue.path.ends_with(".name");
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
  if (!names_every_kind(parsed.doc)) return parsed;
  const std::vector<FileIssue> shape = parsed.issues;
  if (std::ranges::any_of(shape, hides_objects)) return parsed;
  for (const PolicyIssue& issue : check_policy(parsed.doc, kNoLimit, kNoLimit)) {
    // A value that is already complained about counts for nothing; and warnings are the server's to
    // give, which sees the nodes too.
    const bool follows = std::ranges::any_of(shape, [&](const FileIssue& first) {
      return is_inside(first.path, issue.path) || is_inside(issue.path, first.path);
    });
    if (issue.is_error && !follows) parsed.issues.push_back(parsed.locate(issue));
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
