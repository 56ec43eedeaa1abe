#pragma once
// What a scenario expects against what is, and the small translations the runner needs. Pure but
// for the lists they fill.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/sim/runner.h"
#include "core/state/state.h"

namespace gpuq::sim {

using JobNames = std::map<std::string, JobId>;

/// Remembers in which order jobs first started.
class StartOrderLog {
 public:
  void see(const Event& event);
  [[nodiscard]] const std::vector<JobId>& order() const { return order_; }

 private:
  std::vector<JobId> order_;
  std::set<JobId> seen_;
};

/// Appends to `failures` everything of `expect` that does not hold.
void check_expectation(const Expectation& expect, const State& state, const JobNames& names,
                       const StartOrderLog& started, std::vector<Failure>& failures);

/// The queue and share that `step` names ("queue/share" where ambiguous) with its fields changed,
/// as a partial document's entry. kNotFound when there is no such share.
Result<QueueDef> changed_share(const PolicyTables& policy, const ShareStep& step);

/// The share of that name; an error when none or several have it.
Result<const Share*> share_named(const PolicyTables& policy, const std::string& name);

/// "sweep.3" for a member of an array, else the job's name.
std::string shown_name(const State& state, const Job& job);

LogLine log_line(const Event& event, const State& state);

}  // namespace gpuq::sim
