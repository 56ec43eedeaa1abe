#include "core/sim/blockers.h"

#include <algorithm>

#include "core/sim/expected_end.h"

namespace gpuq::sim {

// One that waits behind another waits for what that one waits for.
Reason Blockers::own_reason(const Job& job) const {
  Reason reason = state_.reason_of(job.id);
  if (reason.code == ReasonCode::kBehindInShare) reason = state_.reason_of(reason.other);
  return reason;
}

bool Blockers::needs_a_person(const Job& job) const {
  if (job.held) return true;
  const ReasonCode code = own_reason(job).code;
  return code == ReasonCode::kHeldByUser || code == ReasonCode::kEnvironmentDisabled ||
         is_misconfiguration(code);
}

// Dependants in the order of their ids, so that what one depends on is known before it.
void Blockers::prepare() {
  prepared_ = true;
  for (const AttemptId id : state_.live_attempts()) {
    const Attempt& attempt = state_.attempt(id);
    if (attempt.stopping() || expected_end(state_, attempt, now_).at != kNever) continue;
    const EnvId env = state_.ledger().environment(attempt.share);
    endless_.push_back({attempt.job, env, attempt.share, attempt.unit});
  }
  for (const auto& [id, job] : state_.jobs()) {
    if (!job.depends_on.empty()) (void)of(job);
  }
}

std::set<JobId> Blockers::holders(const Job& job, bool of_share, bool of_units) const {
  const JobClass& cls = state_.job_class(job.cls);
  const EnvId env = state_.ledger().environment(job.share);
  std::set<JobId> jobs;
  for (const Endless& holder : endless_) {
    if (holder.env != env || (of_share && holder.share != job.share)) continue;
    const bool wanted =
        std::ranges::find(cls.units, holder.unit, &UnitRequest::unit) != cls.units.end();
    if (wanted || !of_units) jobs.insert(holder.job);
  }
  return jobs;
}

std::set<JobId> Blockers::look(const Job& job) {
  if (is_active(job.state)) {
    const bool endless = std::ranges::find(endless_, job.id, &Endless::job) != endless_.end();
    return endless ? std::set<JobId>{job.id} : std::set<JobId>{};
  }
  if (!job.depends_on.empty()) {
    std::set<JobId> jobs;
    for (const Dependency& on : job.depends_on) {
      if (const Job* other = state_.find_job(on.job)) jobs.merge(std::set<JobId>(of(*other)));
    }
    return jobs;
  }
  if (needs_a_person(job)) return {};
  const ReasonCode code = own_reason(job).code;
  const bool of_share = code == ReasonCode::kShareFull || code == ReasonCode::kNotPreemptibleLimit;
  auto [it, fresh] = by_class_.try_emplace({job.share, job.cls, of_share});
  if (fresh) {
    it->second = holders(job, of_share, true);
    // CPUs and memory of its nodes may be held by other units.
    if (it->second.empty()) it->second = holders(job, false, false);
  }
  return it->second;
}

const std::set<JobId>& Blockers::of(const Job& job) {
  if (!prepared_) prepare();
  const auto known = by_job_.find(job.id);
  if (known != by_job_.end()) return known->second;
  return by_job_[job.id] = look(job);
}

}  // namespace gpuq::sim
