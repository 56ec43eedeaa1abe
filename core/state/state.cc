#include "core/state/state.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace gpuq {

namespace {

const WaitingShare kNobodyWaits;

template <typename Map, typename Key>
auto* find_in(Map& map, const Key& key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

}  // namespace

State::State() { ledger_.reset(policy_, nodes_); }

void State::apply(const Event& event) {
  last_time_ = std::max(last_time_, event.at);
  unmade_.clear();
  for (const Change& change : event.changes) {
    std::visit([this](const auto& record) { put(record); }, change);
  }
  charge_usage();
  if (ledger_.pools_dirty()) ledger_.refresh_pools(policy_, nodes_);
  ++version_;
}

void State::put(const PutClass& change) {
  classes_[change.record.id] = change.record;
  class_index_[change.record] = change.record.id;
  class_refs_.try_emplace(change.record.id, 0);
  touched_.classes.insert(change.record.id);
}

void State::put(const DropClass& change) {
  const auto it = classes_.find(change.id);
  GPUQ_CHECK(it != classes_.end() && class_refs_[change.id] == 0);
  class_index_.erase(it->second);
  if (touched_.classes.contains(change.id)) touched_.gone_classes.push_back(it->second);
  classes_.erase(it);
  class_refs_.erase(change.id);
  touched_.classes.insert(change.id);
}

void State::put(const PutJob& change) {
  const Job& job = change.record;
  const auto it = jobs_.find(job.id);
  if (it == jobs_.end()) {
    ++class_refs_[job.cls];
    index_job(jobs_.emplace_hint(jobs_.end(), job.id, job)->second);  // Ids only grow.
  } else {
    GPUQ_CHECK(it->second.cls == job.cls);
    unindex_job(it->second);
    const bool reordered = it->second.priority != job.priority;
    it->second = job;
    index_job(it->second);
    if (reordered) refresh_holdings(it->second);
  }
  if (const JobArray* array = array_of(job.id)) {
    GPUQ_CHECK(array->position(job.id) < array->made);
    refresh_offer(array->id);
  } else if (arrays_.contains(job.id)) {
    refresh_offer(job.id);
  }
  touched_.jobs.insert(touched_.jobs.end(), job.id);
}

// A changed priority changes the job's place in P4's order.
void State::refresh_holdings(const Job& job) {
  ++holdings_version_;
  if (const Holding* held = ledger_.find(key_of(job.attempt)); job.attempt.valid() && held) {
    ledger_.remove(key_of(job.attempt));
    ledger_.add(holding_of(attempts_.at(job.attempt)));
  }
  if (const Booking* booking = find_booking(job.id)) {
    ledger_.remove(booking_key(job.id));
    ledger_.add(holding_of(*booking));
  }
}

void State::put(const PutSpec& change) { touched_.specs.push_back(change); }

void State::put(const PutAttempt& change) {
  ++holdings_version_;
  const Attempt& attempt = change.record;
  if (ledger_.find(key_of(attempt.id)) != nullptr) ledger_.remove(key_of(attempt.id));
  if (!attempts_.contains(attempt.id)) job_attempts_[attempt.job].push_back(attempt.id);
  attempts_[attempt.id] = attempt;
  live_attempts_.erase(attempt.id);
  if (attempt.live()) {
    live_attempts_.insert(attempt.id);
    ledger_.add(holding_of(attempt));
  }
  held_changes(attempt.share, attempt.unit, jobs_.at(attempt.job).user);
  touched_.attempts.insert(attempt.id);
}

void State::put(const PutBooking& change) {
  ++holdings_version_;
  const Booking& booking = change.record;
  const Job& job = jobs_.at(booking.job);  // A member that gets one has a record.
  unindex_job(job);
  if (bookings_.contains(booking.job)) ledger_.remove(booking_key(booking.job));
  bookings_[booking.job] = booking;
  ledger_.add(holding_of(booking));
  held_changes(booking.share, booking.unit, job.user);
  index_job(job);
  touched_.bookings.insert(booking.job);
}

void State::put(const DropBooking& change) {
  ++holdings_version_;
  const auto it = bookings_.find(change.job);
  GPUQ_CHECK(it != bookings_.end());
  const Job& job = jobs_.at(change.job);
  unindex_job(job);
  ledger_.remove(booking_key(change.job));
  held_changes(it->second.share, it->second.unit, job.user);
  bookings_.erase(it);
  index_job(job);
  touched_.bookings.insert(change.job);
}

void State::put(const PutPreemption& change) {
  const Preemption& record = change.record;
  if (const Preemption* old = find_in(preemptions_, record.id)) {
    unindex_preemption(*old);
  } else {
    job_preemptions_[record.job].push_back(record.id);
  }
  preemptions_[record.id] = record;
  if (record.end == PreemptionEnd::kOpen) open_preemptions_[record.beneficiary].insert(record.id);
  touched_.preemptions.insert(record.id);
}

void State::unindex_preemption(const Preemption& record) {
  const auto open = open_preemptions_.find(record.beneficiary);
  if (open == open_preemptions_.end()) return;
  open->second.erase(record.id);
  if (open->second.empty()) open_preemptions_.erase(open);
}

void State::put(const PutNode& change) {
  const Node& node = change.record;
  const auto it = std::lower_bound(nodes_.begin(), nodes_.end(), node.id,
                                   [](const Node& n, NodeId id) { return n.id < id; });
  if (it != nodes_.end() && it->id == node.id) {
    node_names_.erase(it->name);
    *it = node;
  } else {
    nodes_.insert(it, node);
  }
  node_names_[node.name] = node.id;
  touched_.nodes.insert(node.id);
  rebuild_ledger();
}

void State::put(const DropNode& change) {
  const auto it =
      std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.id == change.id; });
  GPUQ_CHECK(it != nodes_.end());
  node_names_.erase(it->name);
  nodes_.erase(it);
  touched_.nodes.insert(change.id);
  rebuild_ledger();
}

void State::put(const PutPolicy& change) {
  usage_.set_policy(change.tables, last_time_);
  const PolicyTables before = std::exchange(policy_, change.tables);
  touched_.policy = true;
  rebuild_ledger();
  held_by_all();
  regroup_waiting(before);
}

void State::put(const PutToken& change) {
  tokens_[change.record.key] = change.record;
  touched_.tokens.insert(change.record.key);
}

void State::put(const DropToken& change) {
  tokens_.erase(change.key);
  touched_.tokens.insert(change.key);
}

void State::put(const ArchiveJob& change) {
  const auto it = jobs_.find(change.id);
  GPUQ_CHECK(it != jobs_.end() && is_terminal(it->second.state));
  unindex_job(it->second);
  drop_array(change.id);
  for (const AttemptId id : job_attempts_[change.id]) {
    if (touched_.attempts.contains(id)) touched_.gone_attempts.push_back(attempts_.at(id));
    attempts_.erase(id);
  }
  for (const PreemptionId id : job_preemptions_[change.id]) {
    const Preemption& record = preemptions_.at(id);
    unindex_preemption(record);
    if (touched_.preemptions.contains(id)) touched_.gone_preemptions.push_back(record);
    preemptions_.erase(id);
  }
  job_attempts_.erase(change.id);
  job_preemptions_.erase(change.id);
  --class_refs_[it->second.cls];
  if (touched_.jobs.contains(change.id)) touched_.gone_jobs.push_back(it->second);
  jobs_.erase(it);
  touched_.archived.push_back(change.id);
}

GroupKey State::group_of(const Job& job) const {
  const Share* share = policy_.share(job.share);
  const bool by_user = share != nullptr && share->def.user_order == UserOrder::kFair;
  return {job.cls, by_user ? job.user : std::string()};
}

// A share that orders by users from now on, or no longer, groups its waiting jobs anew.
void State::regroup_waiting(const PolicyTables& before) {
  for (auto& [id, waiting] : waiting_) {
    const Share* old = before.share(id);
    const Share* now = policy_.share(id);
    if (old == nullptr || now == nullptr || old->def.user_order == now->def.user_order) continue;
    const auto groups = std::exchange(waiting.groups, {});
    for (const auto& [key, group] : groups) {
      for (const WaitKey& wait : group.jobs) {
        const auto span = group.spans.find(wait);
        const bool members = span != group.spans.end();
        const JobId record = members ? array_of(wait.id)->id : wait.id;
        const GroupKey to_key = group_of(jobs_.at(record));
        WaitGroup& to = waiting.groups[to_key];
        to.jobs.insert(wait);
        to.reason = group.reason;
        if (!members) continue;
        to.spans.insert(*span);
        members_[record].offer.group = to_key;
      }
    }
  }
}

void State::index_job(const Job& job) {
  if (const JobArray* array = array_of(job.id)) index_member(*array, job);
  if (is_terminal(job.state)) ended_jobs_.insert(job.id);
  if (job.state == JobState::kPending && job.retry_at != kNoTime) {
    backoffs_.emplace(job.retry_at, job.id);
  }
  if (job.state == JobState::kPending) {
    for (const Dependency& on : job.depends_on) dependants_[on.job].insert(job.id);
  }
  // An array waits by its members.
  if (job.state != JobState::kRunnable || arrays_.contains(job.id)) return;
  WaitingShare& share = waiting_[job.share];
  ++share.count;
  if (bookings_.contains(job.id)) {
    share.booked.insert(wait_key(job));
  } else {
    std::set<WaitKey>& jobs = share.groups[group_of(job)].jobs;
    jobs.insert(jobs.end(), wait_key(job));
  }
}

void State::unindex_job(const Job& job) {
  if (const JobArray* array = array_of(job.id)) unindex_member(*array, job);
  ended_jobs_.erase(job.id);
  backoffs_.erase({job.retry_at, job.id});
  for (const Dependency& on : job.depends_on) {
    const auto dependants = dependants_.find(on.job);
    if (dependants == dependants_.end()) continue;
    dependants->second.erase(job.id);
    if (dependants->second.empty()) dependants_.erase(dependants);
  }
  if (job.state != JobState::kRunnable || arrays_.contains(job.id)) return;
  WaitingShare& share = waiting_.at(job.share);
  --share.count;
  if (bookings_.contains(job.id)) {
    share.booked.erase(wait_key(job));
    return;
  }
  const auto group = share.groups.find(group_of(job));
  group->second.jobs.erase(wait_key(job));
  if (group->second.jobs.empty()) share.groups.erase(group);
}

Holding State::holding_of(const Attempt& attempt) const {
  const Job& job = jobs_.at(attempt.job);
  Holding holding;
  holding.key = key_of(attempt.id);
  holding.job = attempt.job;
  holding.share = attempt.share;
  holding.unit = attempt.unit;
  holding.demand = attempt.demand;
  holding.user = job.user;
  holding.priority = job.priority;
  holding.preemptible = classes_.at(job.cls).preemptible;
  holding.stopping = attempt.stopping();
  holding.started = attempt.scheduled_at;
  holding.running_since = attempt.running_at;
  for (const AttemptInstance& instance : attempt.instances) holding.uses.push_back(instance.use);
  return holding;
}

Holding State::holding_of(const Booking& booking) const {
  const Job& job = jobs_.at(booking.job);
  Holding holding;
  holding.key = booking_key(booking.job);
  holding.job = booking.job;
  holding.share = booking.share;
  holding.unit = booking.unit;
  holding.demand = booking.demand;
  holding.user = job.user;
  holding.priority = job.priority;
  holding.preemptible = classes_.at(job.cls).preemptible;
  holding.started = booking.made_at;
  holding.uses = booking.instances;
  holding.victims = booking.victims;
  return holding;
}

void State::rebuild_ledger() {
  ++holdings_version_;
  ++topology_version_;
  ledger_.reset(policy_, nodes_);
  for (const AttemptId id : live_attempts_) ledger_.add(holding_of(attempts_.at(id)));
  for (const auto& [job, booking] : bookings_) ledger_.add(holding_of(booking));
  ledger_.refresh_pools(policy_, nodes_);
}

void State::held_changes(ShareId share, UnitId unit, const std::string& user) {
  if (usage_.counts(share, UsageKind::kBorrowed)) {
    uncharged_.insert({share, UsageKind::kBorrowed, unit, {}});
  }
  if (usage_.counts(share, UsageKind::kUser)) {
    uncharged_.insert({share, UsageKind::kUser, unit, user});
  }
}

// Under another policy other things count.
void State::held_by_all() {
  for (const auto& [key, holding] : ledger_.holdings()) {
    held_changes(holding.share, holding.unit, holding.user);
  }
  for (const auto& [key, record] : usage_.records()) uncharged_.insert(key);
}

Amount State::held_of(const UsageKey& key) const {
  if (key.kind == UsageKind::kUser) {
    return ledger_.held_by(key.share, key.unit, key.name, View::kNow);
  }
  const Amount held = ledger_.held(key.share, key.unit, View::kNow);
  return std::max(kZero, held - ledger_.cap(key.share, key.unit));
}

void State::charge_usage() {
  for (const UsageKey& key : uncharged_) usage_.charge(key, held_of(key), last_time_);
  uncharged_.clear();
}

void State::set_reasons(const std::vector<GroupReason>& reasons) {
  unmade_.clear();
  lacking_reasons_.clear();
  for (const GroupReason& reason : reasons) {
    if (reason.job.valid()) {
      lacking_reasons_[reason.job] = reason.reason;
      continue;
    }
    const auto share = waiting_.find(reason.share);
    if (share == waiting_.end()) continue;
    if (WaitGroup* group = find_in(share->second.groups, reason.group)) {
      group->reason = reason.reason;
    }
  }
}

const Job& State::job(JobId id) const {
  const Job* found = find_job(id);
  GPUQ_CHECK(found != nullptr);
  return *found;
}
const JobClass& State::job_class(ClassId id) const { return classes_.at(id); }
const Attempt& State::attempt(AttemptId id) const { return attempts_.at(id); }

// Where nobody learnt of an instance's exit the node, its agent or its supervisor failed; members
// of its gang on other nodes were stopped, and their exits are known.
std::vector<NodeId> State::nodes_at_fault(JobId job) const {
  std::set<NodeId> nodes;
  for (const Attempt* attempt : attempts_of(job)) {
    if (attempt->live() || !attempt->lost_to_node || attempt->stop == StopCause::kNodeDrain) {
      continue;
    }
    for (const AttemptInstance& instance : attempt->instances) {
      if (instance.exit_code < 0) nodes.insert(instance.use.node);
    }
  }
  return {nodes.begin(), nodes.end()};
}

const WaitingShare& State::waiting(ShareId share) const {
  const auto* found = find_in(waiting_, share);
  return found == nullptr ? kNobodyWaits : *found;
}

const Job* State::find_job(JobId id) const {
  const Job* job = find_in(jobs_, id);
  return job != nullptr ? job : find_unmade(id);
}
const Attempt* State::find_attempt(AttemptId id) const { return find_in(attempts_, id); }
const Booking* State::find_booking(JobId id) const { return find_in(bookings_, id); }
const TokenRecord* State::find_token(const std::string& key) const { return find_in(tokens_, key); }

const Node* State::find_node(const std::string& name) const {
  const NodeId* id = find_in(node_names_, name);
  return id == nullptr ? nullptr : &nodes_[ledger_.node_index(*id)];
}

const Node* State::find_node(NodeId id) const {
  const auto it = std::ranges::lower_bound(nodes_, id, {}, &Node::id);
  return it != nodes_.end() && it->id == id ? &*it : nullptr;
}

const Node& State::node(NodeId id) const { return nodes_[ledger_.node_index(id)]; }

const JobClass* State::find_class(const JobClass& wanted) const {
  const ClassId* id = find_in(class_index_, wanted);
  return id == nullptr ? nullptr : &classes_.at(*id);
}

bool State::class_is_unused(ClassId id) const {
  const auto it = class_refs_.find(id);
  return it != class_refs_.end() && it->second == 0;
}

std::vector<const Attempt*> State::attempts_of(JobId job) const {
  std::vector<const Attempt*> found;
  const auto* ids = find_in(job_attempts_, job);
  if (ids == nullptr) return found;
  for (const AttemptId id : *ids) found.push_back(&attempts_.at(id));
  return found;
}

std::vector<const Preemption*> State::preemptions_of(JobId job) const {
  std::vector<const Preemption*> found;
  const auto* ids = find_in(job_preemptions_, job);
  if (ids == nullptr) return found;
  for (const PreemptionId id : *ids) found.push_back(&preemptions_.at(id));
  return found;
}

const std::set<JobId>* State::dependants(JobId job) const { return find_in(dependants_, job); }

const std::set<PreemptionId>* State::open_preemptions(JobId beneficiary) const {
  return find_in(open_preemptions_, beneficiary);
}

Reason State::reason_of(JobId id) const {
  Reason reason;
  const Job* job = find_job(id);
  if (job == nullptr || is_terminal(job->state) || is_active(job->state)) return reason;
  if (const JobArray* array = find_array(id)) return reason_of_array(*array);
  if (job->state != JobState::kRunnable) return why_pending(*job);
  const Booking* booking = find_booking(id);
  if (booking != nullptr && booking->lacking) {
    const Reason* own = find_in(lacking_reasons_, id);
    return own != nullptr ? *own : reason;
  }
  if (booking != nullptr) {
    reason.code = ReasonCode::kWaitingForPreemptedCapacity;
    reason.unit = booking->unit;
    reason.demand = booking->demand;
    reason.victims = static_cast<std::int32_t>(booking->victims.size());
    if (!booking->victims.empty()) reason.other = attempts_.at(booking->victims.front()).job;
    return reason;
  }
  const auto share = waiting_.find(job->share);
  if (share == waiting_.end()) return reason;
  const auto group = share->second.groups.find(group_of(*job));
  if (group == share->second.groups.end()) return reason;
  reason = group->second.reason;
  const JobId first = group->second.jobs.begin()->id;
  const bool behind = is_quota_or_placement(reason.code) && first != id;
  if (behind) {
    reason.code = ReasonCode::kBehindInShare;
    reason.other = first;
  }
  return reason;
}

}  // namespace gpuq
