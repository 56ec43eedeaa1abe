#include "core/model/policy.h"

#include <algorithm>

namespace gpuq {

namespace {

template <typename Record, typename Id>
const Record* by_id(const std::vector<Record>& records, Id id) {
  const auto it = std::ranges::lower_bound(records, id, {}, &Record::id);
  return it != records.end() && it->id == id ? &*it : nullptr;
}

template <typename Record>
const Record* by_name(const std::vector<Record>& records, const std::string& name) {
  const auto it =
      std::ranges::find_if(records, [&](const Record& r) { return r.def.name == name; });
  return it != records.end() ? &*it : nullptr;
}

}  // namespace

Amount limit_of(const std::vector<CapacityLimit>& limits, const std::string& unit) {
  if (limits.empty()) return kUnlimited;
  const auto it = std::ranges::find(limits, unit, &CapacityLimit::unit);
  return it != limits.end() ? it->max_capacity : kZero;
}

const char* to_string(SharingStrategy strategy) {
  switch (strategy) {
    case SharingStrategy::kReserve:
      return "RESERVE";
    case SharingStrategy::kLend:
      return "LEND";
    case SharingStrategy::kLendAndBorrow:
      return "LEND_AND_BORROW";
  }
  return "UNKNOWN";
}

const char* to_string(QueueKind kind) {
  switch (kind) {
    case QueueKind::kQuota:
      return "QUOTA";
    case QueueKind::kFifo:
      return "FIFO";
    case QueueKind::kFairShare:
      return "FAIRSHARE";
  }
  return "UNKNOWN";
}

const char* to_string(UserOrder order) {
  switch (order) {
    case UserOrder::kFifo:
      return "FIFO";
    case UserOrder::kFair:
      return "FAIR";
  }
  return "UNKNOWN";
}

const char* to_string(IdleOrder order) {
  switch (order) {
    case IdleOrder::kFifo:
      return "FIFO";
    case IdleOrder::kLeastBorrowed:
      return "LEAST_BORROWED";
    case IdleOrder::kDecayedUsage:
      return "DECAYED_USAGE";
  }
  return "UNKNOWN";
}

const Unit* PolicyTables::unit(UnitId id) const { return by_id(units, id); }
const Unit* PolicyTables::unit(const std::string& name) const { return by_name(units, name); }

const Environment* PolicyTables::environment(EnvId id) const { return by_id(environments, id); }
const Environment* PolicyTables::environment(const std::string& name) const {
  return by_name(environments, name);
}

const SchedulingPolicy* PolicyTables::policy(const std::string& name) const {
  return by_name(policies, name);
}

const Queue* PolicyTables::queue(QueueId id) const { return by_id(queues, id); }
const Queue* PolicyTables::queue(const std::string& name) const { return by_name(queues, name); }

const Share* PolicyTables::share(ShareId id) const { return by_id(shares, id); }
const Share* PolicyTables::share(QueueId queue, const std::string& name) const {
  const auto it = std::ranges::find_if(
      shares, [&](const Share& s) { return s.queue == queue && s.def.name == name; });
  return it != shares.end() ? &*it : nullptr;
}

const Environment* PolicyTables::environment_of(QueueId id) const {
  const Queue* found = queue(id);
  if (found == nullptr || found->def.service_environments.empty()) return nullptr;
  return environment(found->def.service_environments.front());
}

}  // namespace gpuq
