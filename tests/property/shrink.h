#pragma once
// Cuts a failing case down while it still fails. Candidates run in child processes, so that a
// broken invariant, which aborts, is only one more way to fail.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/sim/scenario.h"

namespace gpuq::property {

/// A run of a case: an empty text when all holds.
using RunFn = std::function<std::string(const sim::Scenario&)>;

inline bool fails(const sim::Scenario& scenario, const RunFn& run) {
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
    _exit(run(scenario).empty() ? 0 : 1);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/// Simpler variants of one submission.
inline std::vector<sim::SubmitStep> simpler(const sim::SubmitStep& step) {
  std::vector<sim::SubmitStep> variants;
  const auto add = [&](auto&& change) {
    sim::SubmitStep variant = step;
    change(variant);
    variants.push_back(std::move(variant));
  };
  const JobRequest& job = step.request;
  if (job.units.size() > 1) add([](auto& s) { s.request.units.resize(1); });
  if (job.array) {
    add([](auto& s) { s.request.array.reset(); });
    if (job.array->limit > 0) add([](auto& s) { s.request.array->limit = 0; });
    if (job.array->size() > 1) add([](auto& s) { s.request.array->last -= s.request.array->step; });
  }
  if (job.instances > 1) add([](auto& s) { --s.request.instances; });
  if (job.units.front().second != Amount::units(1)) {
    add([](auto& s) { s.request.units.front().second = Amount::units(1); });
  }
  if (job.cpus > 0) add([](auto& s) { s.request.cpus = 0; });
  if (job.memory_mib > 0) add([](auto& s) { s.request.memory_mib = 0; });
  if (job.timeout) add([](auto& s) { s.request.timeout.reset(); });
  if (job.grace) add([](auto& s) { s.request.grace.reset(); });
  if (!job.preemptible) add([](auto& s) { s.request.preemptible = true; });
  if (job.exit_zero_after_stop_succeeds) {
    add([](auto& s) { s.request.exit_zero_after_stop_succeeds = false; });
  }
  if (job.preemption_retries) add([](auto& s) { s.request.preemption_retries.reset(); });
  if (job.max_attempts > 1) add([](auto& s) { s.request.max_attempts = 1; });
  if (job.priority > 0) add([](auto& s) { s.request.priority = 0; });
  if (step.start_delay.count() > 0) add([](auto& s) { s.start_delay = Duration(0); });
  if (step.checkpoint) add([](auto& s) { s.checkpoint.reset(); });
  if (step.runtime != Duration(300'000)) add([](auto& s) { s.runtime = Duration(300'000); });
  return variants;
}

class Shrinker {
 public:
  Shrinker(sim::Scenario scenario, RunFn run) : best_(std::move(scenario)), run_(std::move(run)) {}

  sim::Scenario shrink() {
    bool better = true;
    while (better) {
      better = drop_steps();
      better = simplify_submits() || better;
      better = simplify_rest() || better;
    }
    return best_;
  }

 private:
  bool take(sim::Scenario candidate) {
    if (!fails(candidate, run_)) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool drop_steps() {
    bool better = false;
    for (std::size_t i = best_.timeline.size(); i-- > 0;) {
      sim::Scenario candidate = best_;
      candidate.timeline.erase(candidate.timeline.begin() + static_cast<std::ptrdiff_t>(i));
      better = take(std::move(candidate)) || better;
    }
    return better;
  }

  bool simplify_submits() {
    bool better = false;
    for (std::size_t i = 0; i < best_.timeline.size(); ++i) {
      const auto* step = std::get_if<sim::SubmitStep>(&best_.timeline[i].what);
      if (step == nullptr) continue;
      for (const sim::SubmitStep& variant : simpler(*step)) {
        sim::Scenario candidate = best_;
        candidate.timeline[i].what = variant;
        if (take(std::move(candidate))) {
          better = true;
          break;
        }
      }
    }
    return better;
  }

  bool simplify_rest() {
    bool better = false;
    for (std::size_t n = best_.nodes.size(); n-- > 0;) {
      sim::Scenario candidate = best_;
      candidate.nodes.erase(candidate.nodes.begin() + static_cast<std::ptrdiff_t>(n));
      if (take(std::move(candidate))) better = true;
    }
    for (std::size_t n = best_.nodes.size(); n-- > 0;) {
      sim::Scenario candidate = best_;
      if (candidate.nodes[n].devices.empty()) continue;
      candidate.nodes[n].devices.pop_back();
      if (take(std::move(candidate))) better = true;
    }
    auto& shares = best_.policy.queues->front().shares;
    for (std::size_t s = shares.size(); s-- > 0;) {
      sim::Scenario candidate = best_;
      auto& list = candidate.policy.queues->front().shares;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(s));
      if (take(std::move(candidate))) better = true;
    }
    return better;
  }

  sim::Scenario best_;
  RunFn run_;
};

}  // namespace gpuq::property
