// List: a page from memory, merged with what the archive has of the same range.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "server/rpc/convert_job.h"
#include "server/rpc/job_calls.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

constexpr std::int32_t kDefaultPage = 100;
constexpr std::int32_t kMaxPage = 1'000;
constexpr int kMaxIds = 1'000;
constexpr int kExaminedPerTurn = 5'000;  // jobs looked at in one turn of the core loop

JobState core_state(int state) { return static_cast<JobState>(state); }

Error no_array(JobId id) {
  return invalid(fmt::format("array_job_id: job {} is no array", id.value));
}

class ListRun : public std::enable_shared_from_this<ListRun> {
 public:
  ListRun(ServiceContext& context, ListJobsCall* call)
      : context_(context), call_(call), request_(call->request) {}

  Result<> prepare() {
    for (const std::string& fault :
         {check_range("page_size", request_.page_size(), 0, kMaxPage),
          check_line("user", request_.user(), 256),
          check_line("job_name", request_.job_name(), 256),
          check_range("job_ids entries", request_.job_ids_size(), 0, kMaxIds)}) {
      if (!fault.empty()) return invalid(fault);
    }
    if (request_.mine() && !request_.user().empty()) {
      return invalid("mine excludes user: give one of both");
    }
    for (const int state : request_.states()) {
      if (state < v1::JOB_STATE_SUBMITTED || state > v1::JOB_STATE_FAILED) {
        return invalid(fmt::format("states holds {}, which is no job state", state));
      }
      states_ |= 1U << static_cast<unsigned>(state);
    }
    if (states_ == 0) states_ = ~0U;
    newest_first_ = request_.order() != v1::LIST_ORDER_OLDEST_FIRST;
    limit_ = request_.page_size() == 0 ? kDefaultPage : request_.page_size();
    user_ = request_.mine() ? call_->caller.user : request_.user();
    for (const std::int64_t id : request_.job_ids()) ids_.insert(JobId(id));
    first_ = std::max<std::int64_t>(request_.first_job_id(), 1);
    last_ = request_.last_job_id() > 0 ? request_.last_job_id()
                                       : std::numeric_limits<std::int64_t>::max();
    return read_token();
  }

  void run() {
    if (request_.array_job_id() == 0) return next_turn();
    context_.engine.query([self = shared_from_this()](const State& state) {
      const JobId id(self->request_.array_job_id());
      const JobArray* array = state.find_array(id);
      if (array != nullptr) return self->list_members(*array);
      if (state.find_job(id) != nullptr) return self->call_->finish(no_array(id));
      self->context_.pool.post([self] { self->list_archived_members(); });
    });
  }

 private:
  Result<> read_token() {
    const std::string& token = request_.page_token();
    if (token.empty()) return {};
    std::int64_t after = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), after);
    if (error != std::errc() || end != token.data() + token.size() || after <= 0) {
      return invalid("page_token " + quote(token) + " is none of this service");
    }
    if (newest_first_) {
      last_ = std::min(last_, after - 1);
    } else {
      first_ = std::max(first_, after + 1);
    }
    return {};
  }

  void list_members(const JobArray& array) {
    first_ = std::max(first_, array.member(0).value);
    last_ = std::min(last_, array.member(array.size() - 1).value);
    next_turn();
  }

  void list_archived_members() {
    const JobId id(request_.array_job_id());
    const auto archived = context_.history.archived(id);
    const bool unknown = !archived && archived.error().code == ErrorCode::kNotFound;
    if (unknown) return call_->finish(no_job(id));
    if (!archived) return call_->finish(archived.error());
    if (!archived->array || archived->array->id != id) {
      return call_->finish(no_array(id));
    }
    list_members(*archived->array);
  }

  [[nodiscard]] bool lists_members() const { return request_.array_job_id() != 0 || !ids_.empty(); }

  /// Until it has ended an array has each state of its members that have not.
  [[nodiscard]] unsigned states_of(const State& state, const Job& job) const {
    const JobArray* array = is_terminal(job.state) ? nullptr : state.find_array(job.id);
    if (array == nullptr) return 1U << static_cast<unsigned>(job.state);
    unsigned states = 0;
    const MemberCounts counts = state.member_counts(*array);
    for (unsigned n = 0; n < counts.by_state.size(); ++n) {
      if (counts.by_state[n] > 0 && !is_terminal(core_state(static_cast<int>(n))))
        states |= 1U << n;
    }
    return states;
  }

  [[nodiscard]] bool matches(const State& state, const Job& job) const {
    if ((states_ & states_of(state, job)) == 0) return false;
    if (!lists_members() && state.array_of(job.id) != nullptr) return false;
    if (!user_.empty() && job.user != user_) return false;
    if (!ids_.empty() && !ids_.contains(job.id)) return false;
    if (!request_.job_queue().empty()) {
      const Queue* queue = state.policy().queue(job.queue);
      if (queue == nullptr || queue->def.name != request_.job_queue()) return false;
    }
    if (!request_.quota_share_name().empty()) {
      const Share* share = state.policy().share(job.share);
      if (share == nullptr || share->def.name != request_.quota_share_name()) return false;
    }
    return request_.job_name().empty() || glob_match(request_.job_name(), job.name);
  }

  void next_turn() {
    context_.engine.query([self = shared_from_this()](const State& state) { self->turn(state); });
  }

  /// The next job of memory from `from` on, in the order asked for; null when there is none.
  [[nodiscard]] const Job* next_job(const State& state, std::int64_t from) const {
    if (from < first_ || from > last_) return nullptr;
    // Members of one array are looked at by number: most have no record.
    if (request_.array_job_id() != 0) return next_member(state, from);
    const auto& jobs = state.jobs();
    auto it = newest_first_ ? jobs.upper_bound(JobId(from)) : jobs.lower_bound(JobId(from));
    if (it == (newest_first_ ? jobs.begin() : jobs.end())) return nullptr;
    if (newest_first_) --it;
    const std::int64_t id = it->first.value;
    return id >= first_ && id <= last_ ? &it->second : nullptr;
  }

  [[nodiscard]] const Job* next_member(const State& state, std::int64_t from) const {
    const std::int64_t step = newest_first_ ? -1 : 1;
    for (std::int64_t id = from; id >= first_ && id <= last_; id += step) {
      if (const Job* job = state.find_job(JobId(id))) return job;
    }
    return nullptr;
  }

  void turn(const State& state) {
    Borrowers borrowers(state);
    const std::int64_t step = newest_first_ ? -1 : 1;
    std::int64_t next = resume_.value_or(newest_first_ ? last_ : first_);
    for (int examined = 0; wanted() > 0 && examined < kExaminedPerTurn; ++examined) {
      const Job* job = next_job(state, next);
      if (job == nullptr) break;
      if (matches(state, *job)) fill_summary(state, *job, borrowers, rows_[job->id.value]);
      next = job->id.value + step;
    }
    resume_ = next;
    memory_done_ = next_job(state, next) == nullptr;
    if (request_.labels().empty()) {
      after_turn();
    } else {
      context_.pool.post([self = shared_from_this()] {
        self->drop_unlabelled();
        self->after_turn();
      });
    }
  }

  [[nodiscard]] std::int64_t wanted() const {
    return limit_ - static_cast<std::int64_t>(rows_.size());
  }

  void after_turn() {
    if (wanted() > 0 && !memory_done_) return next_turn();
    constexpr unsigned kEnded = (1U << static_cast<unsigned>(JobState::kSucceeded)) |
                                (1U << static_cast<unsigned>(JobState::kFailed));
    if ((states_ & kEnded) == 0) return finish();
    context_.pool.post([self = shared_from_this()] { self->read_archive(); });
  }

  [[nodiscard]] bool labelled(JobId id) {
    const auto bytes = context_.history.spec(id);
    v1::JobSpec spec;
    if (!bytes || !spec.ParseFromString(*bytes)) return false;
    return std::ranges::all_of(request_.labels(), [&](const auto& label) {
      const auto it = spec.labels().find(label.first);
      return it != spec.labels().end() && it->second == label.second;
    });
  }

  void drop_unlabelled() {
    for (auto it = rows_.begin(); it != rows_.end();) {
      if (checked_.insert(it->first).second && !labelled(JobId(it->first))) {
        it = rows_.erase(it);
      } else {
        ++it;
      }
    }
  }

  [[nodiscard]] ArchiveFilter archive_filter() const {
    ArchiveFilter filter;
    filter.user = user_;
    filter.queue = request_.job_queue();
    filter.share = request_.quota_share_name();
    filter.name_glob = request_.job_name();
    for (const int state : request_.states()) filter.states.push_back(core_state(state));
    filter.jobs.assign(ids_.begin(), ids_.end());
    filter.members = lists_members();
    filter.first = JobId(first_);
    filter.last = JobId(last_ == std::numeric_limits<std::int64_t>::max() ? 0 : last_);
    filter.newest_first = newest_first_;
    filter.limit = limit_;
    return filter;
  }

  void read_archive() {
    std::vector<ArchivedJob> kept;
    ArchiveFilter filter = archive_filter();
    if (last_ < first_) return finish();
    for (bool more = true; more && static_cast<std::int64_t>(kept.size()) < limit_;) {
      auto page = context_.history.archived_page(filter);
      if (!page) return call_->finish(page.error());
      more = static_cast<std::int32_t>(page->size()) == filter.limit;
      if (more) {
        const std::int64_t seen = page->back().job.id.value;
        newest_first_ ? filter.last = JobId(seen - 1) : filter.first = JobId(seen + 1);
        if (filter.last.value == 0 && newest_first_ && seen == 1) more = false;
      }
      for (ArchivedJob& job : *page) {
        if (request_.labels().empty() || labelled(job.job.id)) kept.push_back(std::move(job));
      }
      archive_done_ = !more;
    }
    if (kept.empty()) return finish();
    auto names = context_.history.names();
    if (!names) return call_->finish(names.error());
    context_.engine.query([self = shared_from_this(), kept = std::move(kept),
                           names = std::move(*names)](const State& state) {
      for (const ArchivedJob& job : kept) {
        const auto [row, fresh] = self->rows_.try_emplace(job.job.id.value);
        if (fresh) fill_summary(state, job, names, row->second);
      }
      self->finish();
    });
  }

  void finish() {
    const bool cut = static_cast<std::int64_t>(rows_.size()) > limit_;
    const auto take = [&](v1::JobSummary& row) {
      if (call_->response.jobs_size() < limit_) *call_->response.add_jobs() = std::move(row);
    };
    if (newest_first_) {
      for (auto it = rows_.rbegin(); it != rows_.rend(); ++it) take(it->second);
    } else {
      for (auto& [id, row] : rows_) take(row);
    }
    const auto& jobs = call_->response.jobs();
    if (!jobs.empty() && (cut || !memory_done_ || !archive_done_)) {
      call_->response.set_next_page_token(std::to_string(jobs.rbegin()->job_id()));
    }
    call_->finish();
  }

  ServiceContext& context_;
  ListJobsCall* call_;
  const v1::ListJobsRequest& request_;
  unsigned states_ = 0;
  bool newest_first_ = true;
  std::int32_t limit_ = 0;
  std::string user_;
  std::set<JobId> ids_;
  std::int64_t first_ = 1, last_ = 0;
  std::optional<std::int64_t> resume_;  // where the next turn goes on in memory
  bool memory_done_ = false;
  bool archive_done_ = true;
  std::map<std::int64_t, v1::JobSummary> rows_;
  std::set<std::int64_t> checked_;  // rows whose labels were looked at
};

}  // namespace

void list_jobs(ServiceContext& context, ListJobsCall* call) {
  auto run = std::make_shared<ListRun>(context, call);
  if (auto ready = run->prepare(); !ready) return call->finish(ready.error());
  run->run();
}

}  // namespace gpuq::rpc
