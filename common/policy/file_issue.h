#pragma once
// What is wrong in a file that a person wrote, and where. All issues of a file are collected and
// shown at once.
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace gpuq {

/// Files larger than this are refused unread.
inline constexpr std::size_t kMaxPolicyFileBytes = std::size_t{4} << 20;

struct FilePosition {
  int line = 0;    ///< From 1; 0 = the file as a whole.
  int column = 0;  ///< From 1; 0 = unknown.
  bool operator==(const FilePosition&) const = default;
};

struct FileIssue {
  int line = 0;
  int column = 0;
  std::string path;     ///< Of the value: "job_queues[0].quota_shares[1].name"; "" = the document.
  std::string message;  ///< One sentence without the place.
  bool is_error = true;
};

/// "FILE:LINE:COLUMN: PATH: message", with "warning: " before warnings.
std::string to_string(const FileIssue& issue, std::string_view file_name);

bool has_errors(const std::vector<FileIssue>& issues);

/// All errors in one INVALID_ARGUMENT, one line each, in order of position; the first 100 of them.
Error as_error(std::vector<FileIssue> issues, std::string_view file_name);

/// The whole file. NOT_FOUND: no such file; INVALID_ARGUMENT: a folder, unreadable, or larger than
/// kMaxPolicyFileBytes.
Result<std::string> read_policy_file(const std::string& path);

}  // namespace gpuq
