#include "common/policy/file_issue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/base/text.h"

namespace gpuq {

namespace {
constexpr std::size_t kMaxShown = 100;
}

std::string to_string(const FileIssue& issue, std::string_view file_name) {
  std::string text(file_name);
  if (issue.line > 0) text += fmt::format(":{}", issue.line);
  if (issue.line > 0 && issue.column > 0) text += fmt::format(":{}", issue.column);
  text += ": ";
  if (!issue.is_error) text += "warning: ";
  if (!issue.path.empty()) text += issue.path + ": ";
  return escape_controls(text + issue.message);
}

bool has_errors(const std::vector<FileIssue>& issues) {
  return std::ranges::any_of(issues, &FileIssue::is_error);
}

Error as_error(std::vector<FileIssue> issues, std::string_view file_name) {
  std::erase_if(issues, [](const FileIssue& issue) { return !issue.is_error; });
  std::ranges::stable_sort(issues, [](const FileIssue& a, const FileIssue& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(issues.size(), kMaxShown); ++i) {
    if (!text.empty()) text += '\n';
    text += to_string(issues[i], file_name);
  }
  if (issues.size() > kMaxShown) {
    text +=
        fmt::format("\n{}: {} more errors", escape_controls(file_name), issues.size() - kMaxShown);
  }
  return {ErrorCode::kInvalidArgument, std::move(text)};
}

Result<std::string> read_policy_file(const std::string& path) {
  const std::string shown = path.empty() ? "''" : escape_controls(path);
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (status.type() == std::filesystem::file_type::not_found) {
    return Error{ErrorCode::kNotFound, fmt::format("{}: no such file", shown)};
  }
  if (std::filesystem::is_directory(status)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: is a folder, not a file", shown)};
  }
  std::ifstream in(path, std::ios::binary);
  std::string text;
  char buffer[65536];
  while (in.read(buffer, sizeof(buffer)) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxPolicyFileBytes) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: larger than {} MiB", shown, kMaxPolicyFileBytes >> 20)};
    }
  }
  if (!in.eof()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: can not be read, check its permissions", shown)};
  }
  return text;
}

}  // namespace gpuq
