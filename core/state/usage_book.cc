#include "core/state/usage_book.h"

#include <fmt/format.h>

#include <utility>

namespace gpuq {

void UsageBook::set_policy(const PolicyTables& policy, Time now) {
  for (auto& [key, record] : records_) {
    record.value = value_of(record, now);
    record.charged_at = now;
    touched_.insert(key);
  }
  rules_.clear();
  for (const Share& share : policy.shares) {
    const Queue* queue = policy.queue(share.queue);
    const SchedulingPolicy* how =
        queue != nullptr ? policy.policy(queue->def.scheduling_policy) : nullptr;
    if (how == nullptr) continue;
    Rule rule{how->def.half_life, {}};
    if (how->def.idle_order == IdleOrder::kDecayedUsage) rule.kinds.insert(UsageKind::kBorrowed);
    if (share.def.user_order == UserOrder::kFair) rule.kinds.insert(UsageKind::kUser);
    if (!rule.kinds.empty()) rules_.emplace(share.id, std::move(rule));
  }
  std::erase_if(records_, [&](const auto& entry) {
    const auto& [key, record] = entry;
    const bool spent = record.held == kZero && record.value == UsageValue();
    return spent || !counts(key.share, key.kind) || policy.unit(key.unit) == nullptr;
  });
}

bool UsageBook::counts(ShareId share, UsageKind kind) const {
  const auto rule = rules_.find(share);
  return rule != rules_.end() && rule->second.kinds.contains(kind);
}

UsageValue UsageBook::value_of(const UsageRecord& record, Time now) const {
  return usage_at(record, now, rules_.at(record.key.share).half_life);
}

void UsageBook::charge(const UsageKey& key, Amount held, Time now) {
  const auto found = records_.find(key);
  if (found == records_.end()) {
    if (held == kZero) return;
    records_.emplace(key, UsageRecord{key, {}, now, held});
  } else {
    UsageRecord& record = found->second;
    if (record.held == held) return;
    record.value = value_of(record, now);
    record.charged_at = now;
    record.held = held;
  }
  touched_.insert(key);
}

UsageValue UsageBook::at(const UsageKey& key, Time now) const {
  const auto found = records_.find(key);
  return found == records_.end() ? UsageValue() : value_of(found->second, now);
}

Amount UsageBook::held(const UsageKey& key) const {
  const auto found = records_.find(key);
  return found == records_.end() ? kZero : found->second.held;
}

void UsageBook::load(UsageRecord record) {
  const UsageKey key = record.key;
  records_.insert_or_assign(key, std::move(record));
}

std::set<UsageKey> UsageBook::take_touched() { return std::exchange(touched_, {}); }

std::string UsageBook::fault_at(Time now) const {
  for (const auto& [key, record] : records_) {
    const bool possible = counts(key.share, key.kind) && record.charged_at <= now &&
                          record.held >= kZero && record.value >= UsageValue() &&
                          record.value <= usage_of(kMostUsage);
    if (!possible) {
      return fmt::format("the usage of share {} in unit {} ('{}') can not be", key.share.value,
                         key.unit.value, key.name);
    }
  }
  return {};
}

}  // namespace gpuq
