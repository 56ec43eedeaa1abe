// sanity_check(): the invariants of docs/SCHEDULING.md that one state can show by itself.
#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "core/state/state.h"

namespace gpuq {

namespace {

// Invariant 1: no device milli-unit twice; every allocation on an existing device.
std::string check_devices(const State& state) {
  std::map<std::pair<NodeId, std::int32_t>, std::int32_t> used;
  const auto count = [&](const InstanceUse& use, bool booking) -> std::string {
    const Node* node = state.find_node(use.node);
    if (node == nullptr) return fmt::format("an allocation on unknown node {}", use.node.value);
    for (const DeviceUse& device : use.devices) {
      if (device.device < 0 || device.device >= static_cast<std::int32_t>(node->devices.size())) {
        return fmt::format("an allocation on device {} of node {}", device.device, node->name);
      }
      if (booking && device.awaits.valid()) continue;
      std::int32_t& milli = used[{use.node, device.device}];
      milli += device.milli;
      if (milli > 1000)
        return fmt::format("device {} of {} is given twice", device.device, node->name);
    }
    return {};
  };
  for (const AttemptId id : state.live_attempts()) {
    for (const AttemptInstance& instance : state.attempt(id).instances) {
      if (std::string fault = count(instance.use, false); !fault.empty()) return fault;
    }
  }
  for (const auto& [job, booking] : state.bookings()) {
    for (const InstanceUse& use : booking.instances) {
      if (std::string fault = count(use, true); !fault.empty()) return fault;
    }
  }
  return {};
}

// Invariant 2 and 7: an active job has exactly one live attempt with every instance, others none;
// one that waits is PENDING or RUNNABLE as its record says.
std::string check_jobs(const State& state) {
  for (const auto& [id, job] : state.jobs()) {
    if (is_active(job.state) != job.attempt.valid()) {
      return fmt::format("job {} is {} with attempt {}", id.value, to_string(job.state),
                         job.attempt.value);
    }
    if (!job.attempt.valid()) {
      if (is_terminal(job.state) || job.state == waiting_state(job)) continue;
      return fmt::format("job {} is {} and should be {}", id.value, to_string(job.state),
                         to_string(waiting_state(job)));
    }
    if (job.retry_at != kNoTime) {
      return fmt::format("job {} waits for its back-off and is {}", id.value, to_string(job.state));
    }
    if (job.held) return fmt::format("job {} is held and {}", id.value, to_string(job.state));
    const Attempt* attempt = state.find_attempt(job.attempt);
    if (attempt == nullptr || !attempt->live() || attempt->job != id) {
      return fmt::format("job {} names attempt {}, which is not its live one", id.value,
                         job.attempt.value);
    }
    if (attempt->state != job.state) {
      return fmt::format("job {} and its attempt differ in state", id.value);
    }
    const auto instances = static_cast<std::size_t>(state.job_class(job.cls).instances);
    if (attempt->instances.size() != instances) {
      return fmt::format("attempt {} is a part of a gang", attempt->id.value);
    }
  }
  for (const AttemptId id : state.live_attempts()) {
    const Job* job = state.find_job(state.attempt(id).job);
    if (job == nullptr || job->attempt != id) {
      return fmt::format("live attempt {} belongs to no job", id.value);
    }
  }
  return {};
}

// J2: every back-off that runs is in the index, and nothing else is.
std::string check_backoffs(const State& state) {
  std::set<std::pair<Time, JobId>> found;
  for (const auto& [id, job] : state.jobs()) {
    if (job.state == JobState::kPending && job.retry_at != kNoTime) found.emplace(job.retry_at, id);
  }
  return found == state.backoffs() ? "" : "the index of back-offs differs from its recount";
}

// J3: only waiting jobs depend on others, and the index knows them all. Between the end of a job
// and what it means for its dependants there are other events.
std::string check_dependencies(const State& state) {
  std::map<JobId, std::set<JobId>> found;
  for (const auto& [id, job] : state.jobs()) {
    for (const Dependency& on : job.depends_on) {
      if (job.state != JobState::kPending || state.find_job(on.job) == nullptr) {
        return fmt::format("job {} is {} and depends on job {}", id.value, to_string(job.state),
                           on.job.value);
      }
      found[on.job].insert(id);
    }
  }
  return found == state.dependants() ? "" : "the index of dependencies differs from its recount";
}

// J5: records are made in order; the sums and the index of what waits for the limit equal their
// recount, and no more members count than the limit allows.
std::string check_array(const State& state, const JobArray& array) {
  const ArrayMembers& members = state.members_of(array.id);
  MemberCounts counts;
  std::set<WaitKey> limited;
  auto it = state.jobs().upper_bound(array.id);
  for (; it != state.jobs().end() && array.has_member(it->first); ++it) {
    const Job& job = it->second;
    if (array.position(job.id) >= array.made) return "a record of a member that has none";
    if (job.over_array_limit && job.state != JobState::kPending) {
      return fmt::format("member {} waits for its array's limit and is {}", job.id.value,
                         to_string(job.state));
    }
    ++counts.by_state[static_cast<std::size_t>(job.state)];
    const bool alone = !job.held && job.retry_at == kNoTime && job.depends_on.empty();
    if (job.over_array_limit && alone && job.state == JobState::kPending) {
      limited.insert(wait_key(job));
    }
  }
  if (counts != members.counts || limited != members.limited) return "members are miscounted";
  const std::int32_t let_in = counts.in(JobState::kRunnable) + counts.in(JobState::kScheduled) +
                              counts.in(JobState::kStarting) + counts.in(JobState::kRunning);
  if (array.range.limit > 0 && let_in > array.range.limit) {
    return fmt::format("{} members count and its limit is {}", let_in, array.range.limit);
  }
  std::int32_t in_all = 0;
  for (const std::int32_t count : state.member_counts(array).by_state) in_all += count;
  if (in_all != array.size()) return fmt::format("{} of {} members", in_all, array.size());
  const Job& job = state.job(array.id);
  if (is_terminal(job.state) && state.member_counts(array).ended() != array.size()) {
    return "ended before its members";
  }
  return members.offer.count == state.on_offer(array) ? "" : "offers another number of members";
}

std::string check_arrays(const State& state) {
  for (const auto& [id, array] : state.arrays()) {
    if (std::string fault = check_array(state, array); !fault.empty()) {
      return fmt::format("array {}: {}", id.value, fault);
    }
  }
  return {};
}

// Bookings wait for live attempts that are being stopped, and for nothing else.
std::string check_bookings(const State& state) {
  for (const auto& [id, booking] : state.bookings()) {
    for (const AttemptId victim : booking.victims) {
      const Attempt* attempt = state.find_attempt(victim);
      if (attempt == nullptr || !attempt->stopping()) {
        return fmt::format("the booking of job {} waits for attempt {}, which is not stopping",
                           id.value, victim.value);
      }
    }
  }
  return {};
}

// Invariant 3: for every unit the shares' held sums to what attempts and bookings hold.
std::string check_sums(const State& state) {
  Ledger fresh;
  fresh.reset(state.policy(), state.nodes());
  for (const auto& [key, holding] : state.ledger().holdings()) fresh.add(holding);
  fresh.refresh_pools(state.policy(), state.nodes());
  if (!fresh.same_as(state.ledger())) return "the ledger differs from its recount";
  const std::size_t expected = state.live_attempts().size() + state.bookings().size();
  if (state.ledger().holdings().size() != expected) return "the ledger holds something unknown";
  for (const Share& share : state.policy().shares) {
    for (const Unit& unit : state.policy().units) {
      Amount sum;
      for (const auto& [key, holding] : state.ledger().laid(share.id)) {
        if (holding->unit == unit.id && !holding->stopping) sum += holding->demand;
      }
      if (sum != state.ledger().held(share.id, unit.id, View::kAfter)) {
        return fmt::format("share {} holds another amount of {} than its jobs", share.def.name,
                           unit.def.name);
      }
    }
  }
  return {};
}

// Everybody who holds something is charged for it, and nobody for what is not held.
std::string check_users(const State& state) {
  for (const Share& share : state.policy().shares) {
    for (const Unit& unit : state.policy().units) {
      for (const std::string& name : state.ledger().users(share.id, unit.id)) {
        const UsageKey user{share.id, UsageKind::kUser, unit.id, name};
        if (state.usage().held(user) == state.held_of(user)) continue;
        return fmt::format("user '{}' is charged for another amount than it holds in share {}",
                           name, share.def.name);
      }
    }
  }
  for (const auto& [key, record] : state.usage().records()) {
    if (record.held != state.held_of(key)) {
      return fmt::format("share {} or its user '{}' is charged for what nobody holds",
                         key.share.value, key.name);
    }
  }
  return {};
}

// Usage is counted of what the ledger says, and of nothing else.
std::string check_usage(const State& state) {
  for (const Share& share : state.policy().shares) {
    for (const Unit& unit : state.policy().units) {
      const UsageKey key{share.id, UsageKind::kBorrowed, unit.id, {}};
      if (!state.usage().counts(share.id, key.kind)) continue;
      if (state.usage().held(key) != state.held_of(key)) {
        return fmt::format("share {} is charged for another amount of {} than it borrows",
                           share.def.name, unit.def.name);
      }
    }
  }
  if (std::string fault = state.usage().fault_at(state.last_time()); !fault.empty()) return fault;
  return check_users(state);
}

}  // namespace

std::string State::sanity_check() const {
  for (const auto check : {check_jobs, check_backoffs, check_dependencies, check_arrays,
                           check_bookings, check_devices, check_sums, check_usage}) {
    if (std::string fault = check(*this); !fault.empty()) return fault;
  }
  for (const auto& [share, waiting] : waiting_) {
    std::size_t count = waiting.booked.size();
    for (const auto& [key, group] : waiting.groups) {
      count += group.jobs.size();
      for (const auto& [first, members] : group.spans) {
        count += static_cast<std::size_t>(members) - 1;
      }
      if (group.jobs.empty()) return "an empty group of waiting jobs";
      for (const WaitKey& wait : group.jobs) {
        if (group_of(job(wait.id)) != key) return "a waiting job is in the group of another user";
      }
    }
    if (count != static_cast<std::size_t>(waiting.count)) return "waiting jobs are miscounted";
  }
  return {};
}

}  // namespace gpuq
