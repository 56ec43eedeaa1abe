#include "core/sim/preview.h"

#include <algorithm>
#include <set>
#include <utility>

namespace gpuq::sim {

namespace {

constexpr const char* kInProgress = "PREEMPTION_IN_PROGRESS: ";

std::set<JobId> stranded_in(const State& state) {
  std::set<JobId> jobs;
  for (const auto& [id, job] : state.jobs()) {
    if (job.state != JobState::kRunnable) continue;
    if (is_misconfiguration(state.reason_of(id).code)) jobs.insert(id);
  }
  return jobs;
}

std::string share_of(const State& before, const Job& job) {
  const Share* share = before.policy().share(job.share);
  return share == nullptr ? "" : share->def.name;
}

std::string stop_reason(const Attempt& attempt, const Job& job) {
  std::string reason = attempt.status_reason.empty() ? job.status_reason : attempt.status_reason;
  if (reason.starts_with(kInProgress)) reason.erase(0, std::string(kInProgress).size());
  return reason;
}

struct Fate {
  JobFate what = JobFate::kStopped;
  const Attempt* stopped = nullptr;
};

/// Of the jobs that events beginning with the `first`th are about.
std::map<JobId, Fate> fates_of(const ForecastRun& run, std::size_t first) {
  std::map<JobId, Fate> fates;
  for (std::size_t i = first; i < run.events().size(); ++i) {
    const Event& event = run.events()[i];
    const Attempt* attempt = run.state().find_attempt(event.attempt);
    const bool stops = event.type == EventType::kAttemptStopping && attempt != nullptr &&
                       attempt->stop != StopCause::kNone;
    if (stops) fates.emplace(event.job, Fate{JobFate::kStopped, attempt});
    if (event.type == EventType::kJobFailed) fates.emplace(event.job, Fate{JobFate::kEnded});
  }
  return fates;
}

}  // namespace

PolicyPreview preview_policy(ForecastRun& run, Command apply, const ForecastLimits& limits) {
  PolicyPreview preview;
  preview.left_out = run.left_out();
  preview.cut = !run.settle(limits);  // What would happen without the change as well.
  const std::set<JobId> hopeless = stranded_in(run.state());
  std::map<JobId, std::string> shares;
  for (const auto& [id, job] : run.state().jobs()) shares[id] = share_of(run.state(), job);
  const std::size_t seen = run.events().size();
  if (!run.ask(std::move(apply))) return preview;
  preview.cut = !run.settle(limits) || preview.cut;
  std::map<JobId, Fate> fates = fates_of(run, seen);
  for (const JobId id : stranded_in(run.state())) {
    if (!hopeless.contains(id)) fates.emplace(id, Fate{JobFate::kStranded});
  }
  for (const auto& [id, fate] : fates) {
    const Job& job = run.state().job(id);
    std::string reason = job.status_reason;
    if (fate.stopped != nullptr) reason = stop_reason(*fate.stopped, job);
    if (fate.what == JobFate::kStranded) {
      reason = reason_text(run.state().reason_of(id), run.state().policy());
    }
    preview.jobs.push_back({id, job.name, shares[id], fate.what, std::move(reason)});
  }
  std::ranges::stable_sort(preview.jobs, {}, &AffectedJob::fate);
  return preview;
}

}  // namespace gpuq::sim
