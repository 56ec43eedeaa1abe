#include "client/cli/follow.h"

#include <optional>
#include <set>

#include "client/cli/format.h"

namespace gpuq::cli {

namespace {

constexpr std::size_t kMaxWatched = 1000;

Result<v1::Job> get(client::Client& client, std::int64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  return client.get_job(request);
}

/// One stretch of watching, over one connection.
class Watching {
 public:
  Watching(client::Client& client, const FollowHooks& hooks, std::set<std::int64_t>& pending)
      : client_(client), hooks_(hooks), pending_(pending) {}

  /// Success: nothing is pending, or stopped.
  Result<> run(client::StreamStop& stop) {
    v1::WatchRequest request;
    if (pending_.size() <= kMaxWatched) {
      for (const auto id : pending_) request.add_job_ids(id);
    }
    auto done = client_.watch(
        request, [this](const v1::WatchResponse& r) { return take(r); }, &stop);
    if (failure_) return *failure_;
    return done;
  }

 private:
  bool take(const v1::WatchResponse& response) {
    // The watch stands from its first message on: what ended before is found by asking now.
    if (!asked_ && !ask()) return false;
    if (response.has_event()) {
      const auto& event = response.event();
      if (hooks_.on_event && pending_.count(event.job_id()) > 0) hooks_.on_event(event);
      if (event.type() == v1::EVENT_TYPE_JOB_ENDED || is_terminal(event.job_state())) {
        pending_.erase(event.job_id());
      }
    }
    return !pending_.empty();
  }

  bool ask() {
    asked_ = true;
    for (auto id = pending_.begin(); id != pending_.end();) {
      auto job = get(client_, *id);
      if (!job) {
        failure_ = job.error();
        return false;
      }
      id = is_terminal(job->state()) ? pending_.erase(id) : std::next(id);
    }
    return true;
  }

  client::Client& client_;
  const FollowHooks& hooks_;
  std::set<std::int64_t>& pending_;
  bool asked_ = false;
  std::optional<Error> failure_;
};

Result<v1::Job> get_patiently(client::Client& client, std::int64_t id,
                              const client::StreamStop& stop) {
  auto job = get(client, id);
  while (!job && may_pass(job.error()) && !stop.wait(kRetryPause)) {
    client.wait_connected(Duration(2'000));
    job = get(client, id);
  }
  return job;
}

}  // namespace

bool may_pass(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kResourceExhausted;
}

Result<std::vector<v1::Job>> wait_for_end(client::Client& client,
                                          const std::vector<std::int64_t>& ids,
                                          client::StreamStop& stop, const FollowHooks& hooks) {
  std::set<std::int64_t> pending(ids.begin(), ids.end());
  bool told = false;
  while (!pending.empty() && !stop.stopped()) {
    auto done = Watching(client, hooks, pending).run(stop);
    if (pending.empty() || stop.stopped()) break;
    const Error lost =
        done ? Error{ErrorCode::kUnavailable, "the server ended the watch"} : done.error();
    if (!may_pass(lost)) return lost;
    if (!told && hooks.on_lost) hooks.on_lost(lost);
    told = true;
    if (stop.wait(kRetryPause)) break;
    if (client.wait_connected(Duration(2'000))) told = false;
  }
  std::vector<v1::Job> jobs;
  for (const auto id : ids) {
    auto job = get_patiently(client, id, stop);
    if (!job) return job.error();
    jobs.push_back(std::move(*job));
  }
  return jobs;
}

}  // namespace gpuq::cli
