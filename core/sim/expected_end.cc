#include "core/sim/expected_end.h"

#include <algorithm>

#include "core/sim/sim_agents.h"

namespace gpuq::sim {

namespace {

bool is_silent(const State& state, const Attempt& attempt) {
  return std::ranges::any_of(attempt.instances, [&state](const AttemptInstance& instance) {
    return instance.state != InstanceState::kExited &&
           state.node(instance.use.node).link != NodeLink::kUp;
  });
}

}  // namespace

Duration expected_run(const State& state, const Job& job) {
  const auto& timeout = state.job_class(job.cls).timeout;
  const Duration longest = timeout.value_or(kForever);
  return std::min(job.expected_run_time.value_or(longest), longest);
}

ExpectedEnd expected_end(const State& state, const Attempt& attempt, Time now) {
  const Job& job = state.job(attempt.job);
  const auto& timeout = state.job_class(job.cls).timeout;
  if (is_silent(state, attempt)) return {};
  const Time from = attempt.running_at == kNever ? now : attempt.running_at;
  const Duration run = expected_run(state, job);
  ExpectedEnd end;
  if (run != kForever) {
    end.at = std::max(now, from + run);
    end.ground = job.expected_run_time ? EndGround::kStated : EndGround::kTimeout;
  }
  if (end.ground == EndGround::kStated && from + run <= now) {
    end.ground = EndGround::kOverdue;
    end.at = now + kOverdueEnds;
    if (timeout) end.at = std::min(end.at, std::max(now, from + *timeout));
  }
  if (attempt.stopping()) end.ground = EndGround::kStopping;
  return end;
}

void count(EndGround ground, ForecastBasis& basis) {
  switch (ground) {
    case EndGround::kStated:
      ++basis.stated;
      return;
    case EndGround::kOverdue:
      ++basis.overdue;
      return;
    case EndGround::kTimeout:
      ++basis.timed;
      return;
    case EndGround::kStopping:
      ++basis.stopping;
      return;
    case EndGround::kNone:
      ++basis.unknown;
      return;
  }
}

}  // namespace gpuq::sim
