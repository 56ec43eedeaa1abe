#pragma once
// Which jobs a word on the command line means: 17, 17#2, 17.3, 17.3-9, 1-10, last, name:sweep*, or
// a UUID.
#include <cstdint>
#include <string>
#include <vector>

#include "client/lib/client.h"
#include "core/base/result.h"

namespace gpuq::cli {

struct JobSelector {
  enum class Kind { kId, kMembers, kRange, kLast, kName, kUuid };
  Kind kind = Kind::kId;
  std::int64_t first = 0;        ///< kId, kRange, kMembers (the array); >= 1
  std::int64_t last = 0;         ///< kId: = first; kRange: >= first
  std::int64_t array = 0;        ///< kMembers, once they are known: then first and last are theirs.
  std::int32_t first_index = 0;  ///< kMembers
  std::int32_t last_index = 0;   ///< kMembers; >= first_index
  std::int32_t attempt = 0;      ///< "17#2", "last#2": 2; 0 = not given.
  std::string text;              ///< kName: the glob; kUuid: in lower case.

  /// May stand for several jobs.
  [[nodiscard]] bool is_mass() const {
    return kind == Kind::kRange || kind == Kind::kName || first_index != last_index;
  }
};

Result<JobSelector> parse_selector(const std::string& word);

/// The first word that is no selector, as an error: to be asked before a server is.
Result<> check_selectors(const std::vector<std::string>& words);

enum class SelectScope {
  kAll,     ///< Names and ranges: whatever state.
  kActive,  ///< Names and ranges: only jobs that have not ended.
  kLeft,    ///< As kActive; a word whose jobs have all ended stands for none of them.
};

/// Ids in ascending order, each once. `last` and names look at the caller's own jobs only.
/// kNotFound when a word matches nothing; plain ids are not looked up.
Result<std::vector<std::int64_t>> select_jobs(client::Client& client,
                                              const std::vector<std::string>& words,
                                              SelectScope scope);

struct SelectedJob {
  v1::Job job;
  std::int32_t attempt = 0;  ///< 0 = not given.
  std::size_t matches = 1;   ///< Of a name or range; `job` is the newest of them.
};

Result<SelectedJob> select_job(client::Client& client, const std::string& word);

/// kNotFound unless `job` has that attempt; 0 stands for none in particular.
Result<> check_attempt(const v1::Job& job, std::int32_t attempt);

}  // namespace gpuq::cli
