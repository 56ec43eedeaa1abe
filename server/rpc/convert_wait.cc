// The waiting side of convert_job.h: reasons, bookings, explanations.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/model/turn.h"
#include "server/rpc/convert_job.h"

namespace gpuq::rpc {

namespace {

constexpr std::size_t kMaxHolders = 20;

void put(v1::WaitReason& out, const char* key, Amount amount) {
  if (amount != kZero && amount < kUnlimited) (*out.mutable_numbers())[key] = amount.milli;
}

void fill_numbers(const Reason& reason, v1::WaitReason& out) {
  put(out, "demand_milli", reason.demand);
  put(out, "held_milli", reason.held);
  put(out, "cap_milli", reason.cap);
  put(out, "ceiling_milli", reason.ceiling);
  put(out, "free_milli", reason.free);
  put(out, "reserved_milli", reason.reserved);
  put(out, "lendable_milli", reason.lendable);
  put(out, "limit_milli", reason.limit);
  auto& numbers = *out.mutable_numbers();
  if (reason.instances_needed > 0) {
    numbers["instances_needed"] = reason.instances_needed;
    numbers["instances_fitting"] = reason.instances_fitting;
  }
  if (reason.victims > 0) numbers["victims"] = reason.victims;
  if (reason.jobs_in_all > 0) numbers["jobs"] = reason.jobs_in_all;
  if (reason.when != kNoTime) {
    const bool backoff = reason.code == ReasonCode::kRetryBackoff;
    numbers[backoff ? "retry_at_ms" : "old_enough_at_ms"] = to_ms(reason.when);
  }
}

std::string node_name(const State& state, NodeId id) {
  const Node* node = state.find_node(id);
  return node != nullptr ? node->name : "";
}

void fill_quota(const State& state, const Job& job, UnitId unit, Amount demand,
                v1::ExplainResponse& out) {
  const Ledger& ledger = state.ledger();
  const EnvId env = ledger.environment(job.share);
  const Unit* record = state.policy().unit(unit);
  if (record != nullptr) out.set_capacity_unit(record->def.name);
  out.set_demand_milli(demand.milli);
  // A share without a limit of its own (the built-in one) may have all there is, without borrowing.
  const Amount limit = ledger.cap(job.share, unit);
  const bool bounded = limit < kUnlimited;
  const Amount cap = bounded ? limit : ledger.pool(env, unit);
  out.set_cap_milli(cap.milli);
  out.set_held_milli(ledger.held(job.share, unit, View::kNow).milli);
  const Amount ceiling = bounded ? ledger.ceiling(job.share, unit) : cap;
  out.set_ceiling_milli(ceiling >= kUnlimited ? -1 : ceiling.milli);
  out.set_free_milli(ledger.free(env, unit, View::kNow).milli);
  out.set_reserved_milli(ledger.reserved(env, unit, job.share, View::kNow).milli);
  out.set_lendable_milli(ledger.lendable(env, unit, View::kNow).milli);
}

std::int64_t ends_by_ms(const State& state, const Attempt& attempt) {
  if (attempt.stopping()) return to_ms(attempt.stop_at + attempt.grace);
  const JobClass& cls = state.job_class(state.job(attempt.job).cls);
  if (!cls.timeout || attempt.running_at == kNever) return 0;
  return to_ms(attempt.running_at + *cls.timeout);
}

std::int64_t expected_end_ms(const Job& job, const Attempt& attempt) {
  if (!job.expected_run_time || attempt.running_at == kNever) return 0;
  return to_ms(attempt.running_at + *job.expected_run_time);
}

void fill_holders(const State& state, const Job& asked, UnitId unit, v1::ExplainResponse& out) {
  const EnvId env = state.ledger().environment(asked.share);
  std::vector<const Attempt*> holders;
  for (const AttemptId id : state.live_attempts()) {
    const Attempt& attempt = state.attempt(id);
    if (attempt.unit == unit && state.ledger().environment(attempt.share) == env) {
      holders.push_back(&attempt);
    }
  }
  const std::size_t shown = std::min(holders.size(), kMaxHolders);
  std::partial_sort(holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(shown),
                    holders.end(), [](const Attempt* a, const Attempt* b) {
                      return a->demand != b->demand ? a->demand > b->demand : a->job < b->job;
                    });
  holders.resize(shown);
  Borrowers borrowers(state);
  for (const Attempt* attempt : holders) {
    const Job& job = state.job(attempt->job);
    v1::Holder& holder = *out.add_holders();
    holder.set_job_id(job.id.value);
    holder.set_job_name(job.name);
    if (const Share* share = state.policy().share(job.share)) {
      holder.set_quota_share_name(share->def.name);
    }
    holder.set_held_milli(attempt->demand.milli);
    holder.set_borrowing(borrowers.borrows(attempt->share, unit, key_of(attempt->id)));
    holder.set_stopping(attempt->stopping());
    holder.set_scheduling_priority(job.priority);
    holder.set_ends_by_ms(ends_by_ms(state, *attempt));
    holder.set_expected_end_ms(expected_end_ms(job, *attempt));
  }
}

// What one instance asks for that no single node has, with the most that one has.
void fill_short_on_nodes(const State& state, const Job& job, UnitId asked,
                         v1::ExplainResponse& out) {
  const JobClass& cls = state.job_class(job.cls);
  const auto request = std::ranges::find(cls.units, asked, &UnitRequest::unit);
  const Unit* unit = state.policy().unit(asked);
  if (unit == nullptr || request == cls.units.end()) return;
  const InstanceNeed need = instance_need(cls, *request, *unit);
  const EnvId env = state.ledger().environment(job.share);
  std::int64_t cpus = 0;
  std::int64_t memory_mib = 0;
  std::int64_t gpus = 0;
  for (const Node& node : state.nodes()) {
    if (node.env != env) continue;
    cpus = std::max<std::int64_t>(cpus, node.cpus);
    memory_mib = std::max(memory_mib, node.memory_mib);
    gpus = std::max<std::int64_t>(
        gpus, std::ranges::count_if(node.devices, [&need](const Device& device) {
          return device.is_model(need.gpu_model);
        }));
  }
  const auto compare = [&out](std::int64_t needed, std::int64_t most, const std::string& what) {
    if (needed <= most) return;
    out.add_would_start(
        fmt::format("a node with {} {} joins: an instance asks for that, and no "
                    "node has more than {}",
                    needed, what, most));
  };
  compare(need.cpus, cpus, need.cpus == 1 ? "CPU" : "CPUs");
  compare(need.memory_mib, memory_mib, "MiB of memory");
  compare(need.whole_gpus + (need.fraction_milli > 0 ? 1 : 0), gpus,
          need.gpu_model.empty() ? "GPUs" : need.gpu_model);
}

void fill_dependencies(const Job& job, v1::ExplainResponse& out) {
  for (std::size_t i = 0; i < std::min(job.depends_on.size(), kMaxJobsNamed); ++i) {
    const Dependency& on = job.depends_on[i];
    out.add_would_start(fmt::format("job {} is {}{}", on.job.value, to_string(on.condition),
                                    job.depends_on.size() > 1 ? ", and the others as asked" : ""));
  }
}

void fill_would_start(const State& state, const Job& job, const Reason& reason,
                      v1::ExplainResponse& out) {
  const Unit* unit = state.policy().unit(reason.unit);
  const std::string name = unit == nullptr ? "units" : unit->def.name;
  switch (reason.code) {
    case ReasonCode::kDependency:
      fill_dependencies(job, out);
      break;
    case ReasonCode::kHeldByUser:
      out.add_would_start(fmt::format("it is released: gpuq release {}", job.id.value));
      break;
    case ReasonCode::kRetryBackoff:
      out.add_would_start("its back-off is over; it waits for capacity then");
      break;
    case ReasonCode::kArrayLimit:
      out.add_would_start(fmt::format("members of array {} before it end", reason.other.value));
      break;
    case ReasonCode::kShareFull:
      out.add_would_start("jobs of its share end, or the share's limit or borrow limit is raised");
      break;
    case ReasonCode::kNoIdleToBorrow:
      out.add_would_start(
          fmt::format("other shares leave {} {} idle", to_string(reason.demand), name));
      out.add_would_start("its share's own limit is raised");
      break;
    case ReasonCode::kPoolFull:
      out.add_would_start("running jobs end, or nodes are added");
      break;
    case ReasonCode::kNodesFragmented:
    case ReasonCode::kTopology:
      out.add_would_start("jobs on enough nodes end");
      out.add_would_start("it asks for less on each node");
      break;
    case ReasonCode::kWaitingForPreemptedCapacity:
      out.add_would_start("the jobs that give way to it have stopped; it starts then");
      break;
    case ReasonCode::kHeldForHead:
      out.add_would_start(fmt::format("job {} starts or ends", reason.other.value));
      out.add_would_start("its timeout is short enough to be out before that job can start");
      break;
    case ReasonCode::kBehindInShare:
      out.add_would_start(fmt::format("job {} starts or ends", reason.other.value));
      out.add_would_start("its priority is raised");
      break;
    case ReasonCode::kNotPreemptibleLimit:
      out.add_would_start("not preemptible jobs of its share end");
      break;
    case ReasonCode::kProtectedByMinRuntime:
      out.add_would_start("the jobs that min_runtime protects are old enough, or end");
      break;
    case ReasonCode::kEnvironmentDisabled:
      out.add_would_start("an operator enables the service environment");
      break;
    case ReasonCode::kNoNodeFits:
      fill_short_on_nodes(state, job, reason.unit, out);
      [[fallthrough]];
    case ReasonCode::kServiceEnvironmentMaxResource:
    case ReasonCode::kQuotaManagementLimitExceeded:
      out.add_would_start("cancel it and submit it with a smaller demand");
      break;
    default:
      break;
  }
}

}  // namespace

void fill_reason(const State& state, const Job& job, v1::WaitReason& out) {
  fill_reason(state.policy(), state.reason_of(job.id), out);
}

void fill_reason(const PolicyTables& policy, const Reason& reason, v1::WaitReason& out) {
  out.set_code(to_string(reason.code));
  if (reason.code == ReasonCode::kNone) return;
  out.set_message(reason_text(reason, policy));
  fill_numbers(reason, out);
  if (reason.other.valid()) out.add_job_ids(reason.other.value);
  for (const JobId named : reason.jobs) out.add_job_ids(named.value);
}

void fill_booking(const State& state, const Booking& booking, v1::Booking& out) {
  const Unit* unit = state.policy().unit(booking.unit);
  if (unit != nullptr) out.set_capacity_unit(unit->def.name);
  out.set_created_at_ms(to_ms(booking.made_at));
  std::int64_t awaited = 0;
  for (const AttemptId id : booking.victims) {
    const Attempt* victim = state.find_attempt(id);
    if (victim == nullptr) continue;
    awaited += victim->demand.milli;
    out.add_victim_job_ids(victim->job.value);
  }
  awaited = std::min(awaited, booking.demand.milli);
  out.set_awaited_milli(awaited);
  out.set_free_milli(booking.demand.milli - awaited);
  std::set<NodeId> seen;
  for (const InstanceUse& use : booking.instances) {
    if (seen.insert(use.node).second) out.add_node_names(node_name(state, use.node));
  }
}

void fill_explanation(const State& state, const Job& job, v1::ExplainResponse& out) {
  Borrowers borrowers(state);
  fill_summary(state, job, borrowers, *out.mutable_job());
  const JobClass& cls = state.job_class(job.cls);
  const Reason reason = state.reason_of(job.id);
  const Attempt* attempt = state.find_attempt(job.attempt);
  UnitId unit = cls.units.front().unit;
  Amount demand = cls.units.front().count * cls.instances;
  if (attempt != nullptr) {
    unit = attempt->unit;
    demand = attempt->demand;
  } else if (reason.unit.valid()) {
    unit = reason.unit;
    if (reason.demand > kZero) demand = reason.demand;
  }
  if (state.policy().share(job.share) != nullptr) fill_quota(state, job, unit, demand, out);
  if (job.state > JobState::kRunnable) return;
  fill_reason(state, job, *out.mutable_reason());
  const bool competes = job.state == JobState::kRunnable;  // It waits for nobody's capacity before.
  if (competes) out.set_jobs_ahead(jobs_before(state, job, state.last_time()));
  if (competes && state.policy().share(job.share) != nullptr) fill_holders(state, job, unit, out);
  fill_would_start(state, job, reason, out);
  if (const Booking* booking = state.find_booking(job.id)) {
    fill_booking(state, *booking, *out.mutable_booking());
  }
}

}  // namespace gpuq::rpc
