#include <algorithm>
#include <cctype>
#include <ostream>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/format.h"
#include "client/cli/selector.h"
#include "common/runtime/clocks.h"
#include "core/base/text.h"

namespace gpuq::cli {

namespace {

constexpr std::int64_t kPage = 1000;

constexpr v1::JobState kActiveStates[] = {v1::JOB_STATE_SUBMITTED, v1::JOB_STATE_PENDING,
                                          v1::JOB_STATE_RUNNABLE,  v1::JOB_STATE_SCHEDULED,
                                          v1::JOB_STATE_STARTING,  v1::JOB_STATE_RUNNING};
constexpr v1::JobState kEndedStates[] = {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED};

Result<> add_states(const ListOptions& options, v1::ListJobsRequest& request) {
  for (const auto& word : options.states) {
    std::string upper = word;
    std::transform(word.begin(), word.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    if (!v1::JobState_Parse("JOB_STATE_" + upper, &state) || state == v1::JOB_STATE_UNSPECIFIED) {
      return invalid("--state '" + word +
                     "' is none of SUBMITTED, PENDING, RUNNABLE, SCHEDULED, STARTING, RUNNING, "
                     "SUCCEEDED, FAILED");
    }
    request.add_states(state);
  }
  if (!options.states.empty() || !options.array.empty()) return {};
  if (options.history) {
    for (const auto state : kEndedStates) request.add_states(state);
  } else {
    for (const auto state : kActiveStates) request.add_states(state);
  }
  return {};
}

/// The members in the order of their indexes, whoever's and in whatever state.
Result<> add_array(const ListOptions& options, v1::ListJobsRequest& request) {
  if (options.array.empty()) return {};
  const auto selector = parse_selector(options.array);
  if (!selector) return selector.error();
  if (selector->kind != JobSelector::Kind::kId || selector->attempt != 0) {
    return invalid("--array '" + options.array + "' is not the id of an array");
  }
  request.set_array_job_id(selector->first);
  request.set_order(v1::LIST_ORDER_OLDEST_FIRST);
  request.set_mine(false);
  return {};
}

Result<v1::ListJobsRequest> make_request(const ListOptions& options) {
  v1::ListJobsRequest request;
  request.set_user(options.user);
  request.set_mine(!options.everybody && options.user.empty());
  request.set_job_queue(options.queue);
  request.set_quota_share_name(options.share);
  request.set_job_name(options.name);
  request.set_order(v1::LIST_ORDER_NEWEST_FIRST);
  if (auto done = add_array(options, request); !done) return done.error();
  for (const auto& label : options.labels) {
    const auto equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid("--label '" + label + "' is not KEY=VALUE");
    }
    (*request.mutable_labels())[label.substr(0, equals)] = label.substr(equals + 1);
  }
  if (auto done = add_states(options, request); !done) return done.error();
  return request;
}

struct Listing {
  std::vector<v1::JobSummary> jobs;
  bool more = false;
};

Result<Listing> fetch(client::Client& client, v1::ListJobsRequest request, std::int64_t limit) {
  Listing listing;
  for (;;) {
    const auto have = static_cast<std::int64_t>(listing.jobs.size());
    request.set_page_size(static_cast<std::int32_t>(std::min(kPage, limit - have)));
    auto page = client.list_jobs(request);
    if (!page) return page.error();
    for (auto& job : *page->mutable_jobs()) listing.jobs.push_back(std::move(job));
    listing.more = !page->next_page_token().empty();
    const bool full = static_cast<std::int64_t>(listing.jobs.size()) >= limit;
    if (!listing.more || full) return listing;
    request.set_page_token(page->next_page_token());
  }
}

/// An empty list is an error where the filter names a queue or share that is not there.
Result<> check_filter(client::Client& client, const ListOptions& options) {
  if (!options.queue.empty()) {
    v1::GetPolicyObjectRequest request;
    request.mutable_ref()->set_kind(v1::POLICY_KIND_JOB_QUEUE);
    request.mutable_ref()->set_name(options.queue);
    auto found = client.get(request);
    if (!found && found.error().code == ErrorCode::kNotFound) {
      return Error{ErrorCode::kNotFound, "there is no queue " + quote(options.queue)};
    }
  }
  if (options.share.empty()) return {};
  v1::ListPolicyObjectsRequest request;
  request.set_kind(v1::POLICY_KIND_QUOTA_SHARE);
  request.set_job_queue(options.queue);
  auto shares = client.list(request);
  if (!shares) return {};  // The list itself was answered: empty it is.
  for (const auto& object : shares->objects()) {
    if (object.quota_share().quota_share_name() == options.share) return {};
  }
  return Error{ErrorCode::kNotFound,
               "there is no share " + quote(options.share) +
                   (options.queue.empty() ? "" : " in queue " + quote(options.queue))};
}

Colour state_colour(const v1::JobSummary& job) {
  if (job.stopping()) return Colour::kYellow;
  switch (job.state()) {
    case v1::JOB_STATE_RUNNING:
    case v1::JOB_STATE_SUCCEEDED:
      return Colour::kGreen;
    case v1::JOB_STATE_FAILED:
      return Colour::kRed;
    default:
      return Colour::kNone;
  }
}

std::string state_text(const v1::JobSummary& job) {
  std::string text = format_state(job.state());
  if (job.stopping()) text += " (stopping)";
  return text;
}

/// How long it has been where it is: waiting, running, or the run's length.
std::string time_text(const v1::JobSummary& job, std::int64_t now_ms) {
  if (is_terminal(job.state())) {
    return job.started_at_ms() == 0 ? ""
                                    : format_duration(job.stopped_at_ms() - job.started_at_ms());
  }
  const bool running = job.state() == v1::JOB_STATE_RUNNING && job.started_at_ms() != 0;
  return format_duration(now_ms - (running ? job.started_at_ms() : job.created_at_ms()));
}

/// What a person wants to know next: why it waits, where it runs, how it ended.
std::string detail_text(const v1::JobSummary& job);

std::string array_text(v1::JobSummary job) {
  const std::string counts = format_array(job.array());
  job.clear_array();
  const bool waits = !job.reason().code().empty();
  if (waits) job.set_state(v1::JOB_STATE_RUNNABLE);
  const std::string rest = waits || is_terminal(job.state()) ? detail_text(job) : "";
  return rest.empty() ? counts : counts + "; " + rest;
}

std::string detail_text(const v1::JobSummary& job) {
  if (job.has_array()) return array_text(job);
  if (is_waiting(job.state())) {
    if (job.reason().code().empty()) return job.status_reason();
    return job.reason().code() + ": " + job.reason().message();
  }
  if (is_terminal(job.state())) {
    const std::string code = job.has_final_exit_code() && job.final_exit_code() != 0
                                 ? "exit " + std::to_string(job.final_exit_code())
                                 : "";
    if (job.status_reason().empty()) return code;
    return code.empty() ? job.status_reason() : code + ": " + job.status_reason();
  }
  std::string text = format_nodes(job.node_names());
  if (job.borrowing()) text += " (borrowing)";
  if (!job.status_reason().empty()) text += (text.empty() ? "" : " ") + job.status_reason();
  return text;
}

void print(const Context& context, const std::vector<v1::JobSummary>& jobs, bool everybody) {
  using Align = Table::Align;
  std::vector<Table::Column> columns = {{"ID", Align::kRight}, {"NAME"}};
  if (everybody) columns.push_back({"USER"});
  columns.insert(columns.end(), {{"QUEUE/SHARE"},
                                 {"PRIO", Align::kRight},
                                 {"STATE"},
                                 {"UNITS"},
                                 {"TIME", Align::kRight},
                                 {"WHERE / WHY"}});
  Table table(columns);
  const std::int64_t now_ms = wall_now_ms();
  for (const auto& job : jobs) {
    std::vector<std::string> cells = {format_id(job), cut_text(job.job_name(), 32)};
    if (everybody) cells.push_back(job.user());
    const std::size_t state_column = cells.size() + 2;
    cells.insert(
        cells.end(),
        {job.job_queue() + "/" + job.quota_share_name(), std::to_string(job.scheduling_priority()),
         state_text(job), format_request(job.instances(), job.count_milli(), job.capacity_unit()),
         time_text(job, now_ms), detail_text(job)});
    table.add(std::move(cells), state_column, state_colour(job));
  }
  table.print(context.terminal());
}

}  // namespace

int list(Context& context, const ListOptions& options) {
  auto request = make_request(options);
  if (!request) return context.fail(request.error());
  auto client = context.client();
  if (!client) return context.fail(client.error());
  auto listing = fetch(**client, *request, options.limit);
  if (!listing) return context.fail(listing.error());
  if (listing->jobs.empty()) {
    if (auto done = check_filter(**client, options); !done) return context.fail(done.error());
  }
  if (context.json()) {
    for (const auto& job : listing->jobs) context.print_json(job);
  } else if (listing->jobs.empty()) {
    context.note(std::string("no ") + (options.history ? "ended " : "") + "jobs" +
                 (request->mine() ? " of yours; -a shows everybody's" : ""));
  } else {
    print(context, listing->jobs, options.everybody);
  }
  if (listing->more) {
    context.note("there are more than these " + std::to_string(listing->jobs.size()) +
                 " jobs: narrow the list or raise --limit");
  }
  return kDone;
}

}  // namespace gpuq::cli
