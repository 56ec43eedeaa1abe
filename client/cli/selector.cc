#include "client/cli/selector.h"

#include <algorithm>
#include <limits>
#include <set>

#include "client/cli/values.h"
#include "core/model/array.h"

namespace gpuq::cli {

namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<std::int64_t>::max();
/// More jobs than anybody means by one word.
constexpr std::size_t kMaxSelected = 100'000;

Error no_id(const std::string& word) {
  return Error{ErrorCode::kInvalidArgument,
               "'" + word +
                   "' is no job: write an id (17), a member of an array (17.3, 17.3-9), a range "
                   "(1-10), last, name:GLOB or a UUID"};
}

bool is_uuid(const std::string& text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (text[i] == '-')) return false;
    if (!dash && std::isxdigit(static_cast<unsigned char>(text[i])) == 0) return false;
  }
  return true;
}

Error nothing(const std::string& what) {
  return Error{ErrorCode::kNotFound, what + ": see gpuq ls -a, or gpuq history for ended ones"};
}

v1::ListJobsRequest list_request(const JobSelector& selector, SelectScope scope) {
  v1::ListJobsRequest request;
  request.set_page_size(1000);
  request.set_order(v1::LIST_ORDER_NEWEST_FIRST);
  if (selector.kind != JobSelector::Kind::kName) {
    request.set_first_job_id(selector.first);
    request.set_last_job_id(selector.last);
    if (selector.kind == JobSelector::Kind::kMembers) request.set_array_job_id(selector.array);
  } else {
    request.set_mine(true);
    request.set_job_name(selector.text);
  }
  if (scope != SelectScope::kAll) {
    for (const auto state :
         {v1::JOB_STATE_SUBMITTED, v1::JOB_STATE_PENDING, v1::JOB_STATE_RUNNABLE,
          v1::JOB_STATE_SCHEDULED, v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING}) {
      request.add_states(state);
    }
  }
  return request;
}

/// Newest first.
Result<std::vector<std::int64_t>> matching(client::Client& client, const JobSelector& selector,
                                           SelectScope scope) {
  v1::ListJobsRequest request = list_request(selector, scope);
  std::vector<std::int64_t> ids;
  while (ids.size() < kMaxSelected) {
    auto page = client.list_jobs(request);
    if (!page) return page.error();
    for (const auto& job : page->jobs()) ids.push_back(job.job_id());
    if (page->next_page_token().empty()) break;
    request.set_page_token(page->next_page_token());
  }
  return ids;
}

Result<bool> any_matches(client::Client& client, const JobSelector& selector) {
  v1::ListJobsRequest request = list_request(selector, SelectScope::kAll);
  request.set_page_size(1);
  auto page = client.list_jobs(request);
  if (!page) return page.error();
  return !page->jobs().empty();
}

Result<std::int64_t> newest_own_job(client::Client& client) {
  v1::ListJobsRequest request;
  request.set_mine(true);
  request.set_page_size(1);
  request.set_order(v1::LIST_ORDER_NEWEST_FIRST);
  auto page = client.list_jobs(request);
  if (!page) return page.error();
  if (page->jobs().empty()) return nothing("you have no jobs");
  return page->jobs(0).job_id();
}

Result<v1::Job> get_by_id(client::Client& client, std::int64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  return client.get_job(request);
}

Result<v1::Job> get_by_uuid(client::Client& client, const std::string& uuid) {
  v1::GetJobRequest request;
  request.set_job_uuid(uuid);
  return client.get_job(request);
}

/// From indexes to job numbers; the members of `array` that have them.
Result<JobSelector> members_of(client::Client& client, const JobSelector& wanted,
                               const std::string& word) {
  auto job = get_by_id(client, wanted.first);
  if (!job) return job.error();
  if (!job->has_array()) {
    return Error{ErrorCode::kNotFound, "'" + word + "': job " + std::to_string(wanted.first) +
                                           " is no array: leave out what follows the point"};
  }
  const v1::ArrayRange& range = job->array().range();
  const std::int32_t step = std::max(range.step(), 1);
  const std::int32_t low = std::max(wanted.first_index, range.first());
  const std::int32_t high = std::min(wanted.last_index, range.last());
  JobSelector members = wanted;
  members.array = job->job_id();
  members.first = job->job_id() + 1 + (low - range.first() + step - 1) / step;
  members.last = job->job_id() + 1 + (high - range.first()) / step;
  if (low <= high && members.first <= members.last) return members;
  const JobArray known{JobId(), {range.first(), range.last(), step}};
  return Error{ErrorCode::kNotFound, "'" + word + "': array " + std::to_string(wanted.first) +
                                         " has no such member: its indexes are " +
                                         index_text(known.range)};
}

/// The ids that one selector stands for.
Result<std::vector<std::int64_t>> resolve(client::Client& client, const JobSelector& selector,
                                          const std::string& word, SelectScope scope) {
  using Kind = JobSelector::Kind;
  if (selector.kind == Kind::kId) return std::vector<std::int64_t>{selector.first};
  if (selector.kind == Kind::kLast) {
    auto id = newest_own_job(client);
    if (!id) return id.error();
    return std::vector<std::int64_t>{*id};
  }
  if (selector.kind == Kind::kUuid) {
    auto job = get_by_uuid(client, selector.text);
    if (!job) return job.error();
    return std::vector<std::int64_t>{job->job_id()};
  }
  JobSelector mass = selector;
  if (selector.kind == Kind::kMembers) {
    auto members = members_of(client, selector, word);
    if (!members) return members.error();
    if (!selector.is_mass()) return std::vector<std::int64_t>{members->first};
    mass = *members;
  }
  auto ids = matching(client, mass, scope);
  if (!ids || !ids->empty()) return ids;
  if (scope == SelectScope::kLeft) {
    auto ended = any_matches(client, mass);
    if (!ended) return ended.error();
    if (*ended) return ids;
  }
  return nothing(std::string("no ") + (scope == SelectScope::kActive ? "active " : "") +
                 "job matches '" + word + "'");
}

}  // namespace

namespace {

/// "17.3" or "17.3-9"; `selector` holds the attempt.
Result<JobSelector> parse_members(const std::string& base, const std::string& word,
                                  JobSelector selector) {
  const auto dot = base.find('.');
  const std::string indexes = base.substr(dot + 1);
  const auto dash = indexes.find('-');
  const bool single = dash == std::string::npos;
  const auto array = parse_integer("id", base.substr(0, dot), 1, kMaxId);
  const auto first = parse_integer("index", indexes.substr(0, dash), 0, kMaxArrayIndex);
  const auto last =
      single ? first : parse_integer("index", indexes.substr(dash + 1), 0, kMaxArrayIndex);
  if (!array || !first || !last || (!single && selector.attempt != 0)) return no_id(word);
  if (*last < *first) {
    return Error{ErrorCode::kInvalidArgument,
                 "range '" + word + "' ends before it begins: write the smaller index first"};
  }
  selector.kind = JobSelector::Kind::kMembers;
  selector.first = selector.last = *array;
  selector.first_index = static_cast<std::int32_t>(*first);
  selector.last_index = static_cast<std::int32_t>(*last);
  return selector;
}

}  // namespace

Result<JobSelector> parse_selector(const std::string& word) {
  using Kind = JobSelector::Kind;
  JobSelector selector;
  if (word.rfind("name:", 0) == 0 && word.size() > 5) {
    selector.kind = Kind::kName;
    selector.text = word.substr(5);
    return selector;
  }
  if (is_uuid(word)) {
    selector.kind = Kind::kUuid;
    selector.text = word;
    std::transform(word.begin(), word.end(), selector.text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return selector;
  }
  std::string base = word;
  if (const auto hash = word.find('#'); hash != std::string::npos) {
    auto attempt = parse_integer("attempt", word.substr(hash + 1), 1, 1'000'000'000);
    if (!attempt) return no_id(word);
    selector.attempt = static_cast<std::int32_t>(*attempt);
    base = word.substr(0, hash);
  }
  if (base == "last") {
    selector.kind = Kind::kLast;
    return selector;
  }
  if (base.find('.') != std::string::npos) return parse_members(base, word, selector);
  const auto dash = base.find('-');
  const auto first = parse_integer("id", base.substr(0, dash), 1, kMaxId);
  if (!first || (dash != std::string::npos && selector.attempt != 0)) return no_id(word);
  selector.first = selector.last = *first;
  if (dash == std::string::npos) return selector;
  const auto last = parse_integer("id", base.substr(dash + 1), 1, kMaxId);
  if (!last) return no_id(word);
  if (*last < *first) {
    return Error{ErrorCode::kInvalidArgument,
                 "range '" + word + "' ends before it begins: write the smaller id first"};
  }
  selector.kind = Kind::kRange;
  selector.last = *last;
  return selector;
}

Result<> check_selectors(const std::vector<std::string>& words) {
  for (const auto& word : words) {
    if (auto selector = parse_selector(word); !selector) return selector.error();
  }
  return {};
}

Result<std::vector<std::int64_t>> select_jobs(client::Client& client,
                                              const std::vector<std::string>& words,
                                              SelectScope scope) {
  std::set<std::int64_t> ids;
  for (const auto& word : words) {
    auto selector = parse_selector(word);
    if (!selector) return selector.error();
    if (selector->attempt != 0) {
      return Error{ErrorCode::kInvalidArgument,
                   "'" + word + "' names an attempt: this command takes whole jobs"};
    }
    auto found = resolve(client, *selector, word, scope);
    if (!found) return found.error();
    ids.insert(found->begin(), found->end());
  }
  return std::vector<std::int64_t>(ids.begin(), ids.end());
}

Result<SelectedJob> select_job(client::Client& client, const std::string& word) {
  auto selector = parse_selector(word);
  if (!selector) return selector.error();
  auto ids = resolve(client, *selector, word, SelectScope::kAll);
  if (!ids) return ids.error();
  auto job = get_by_id(client, *std::max_element(ids->begin(), ids->end()));
  if (!job) return job.error();
  return SelectedJob{std::move(*job), selector->attempt, ids->size()};
}

Result<> check_attempt(const v1::Job& job, std::int32_t attempt) {
  const auto count = job.attempt_count();
  if (attempt <= count) return {};
  return Error{ErrorCode::kNotFound, "job " + std::to_string(job.job_id()) + " has " +
                                         std::to_string(count) +
                                         (count == 1 ? " attempt" : " attempts") +
                                         ", there is no number " + std::to_string(attempt)};
}

}  // namespace gpuq::cli
