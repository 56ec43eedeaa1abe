#pragma once
// Jobs from the core to the wire: rows of lists, whole jobs, explanations. Reads the state, so on
// the engine's thread only.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/state/state.h"
#include "gpuq/v1/job.pb.h"
#include "server/rpc/history.h"

namespace gpuq::rpc {

v1::JobState to_proto(JobState state);
v1::AttemptState attempt_state(const Attempt& attempt);
v1::PreemptionRule to_proto(PreemptRule rule);
/// 0 for "not yet" and "no value".
std::int64_t ms_or_zero(Time time);

/// Which holdings of a share borrow (P4), worked out once per share and unit. Lives for one query.
class Borrowers {
 public:
  explicit Borrowers(const State& state) : state_(state) {}
  bool borrows(ShareId share, UnitId unit, HoldingKey key);

 private:
  const State& state_;
  std::map<std::pair<ShareId, UnitId>, std::set<HoldingKey>> known_;
};

void fill_reason(const State& state, const Job& job, v1::WaitReason& out);
void fill_reason(const PolicyTables& policy, const Reason& reason, v1::WaitReason& out);
void fill_summary(const State& state, const Job& job, Borrowers& borrowers, v1::JobSummary& out);
void fill_summary(const State& state, const ArchivedJob& job, const ArchiveNames& names,
                  v1::JobSummary& out);

/// All but `spec`, which fill_spec completes.
void fill_job(const State& state, const Job& job, v1::Job& out);
void fill_job(const State& state, const ArchivedJob& job, const ArchiveNames& names, v1::Job& out);
/// Parses the stored bytes and writes over them what the core decided: names, priority, units.
/// `out.spec` holds those from fill_job. kDataLoss when the bytes are no spec.
Result<> fill_spec(const std::string& bytes, v1::Job& out);

void fill_booking(const State& state, const Booking& booking, v1::Booking& out);
/// `job` waits or not; everything but `forecast`.
void fill_explanation(const State& state, const Job& job, v1::ExplainResponse& out);

}  // namespace gpuq::rpc
