#pragma once
// UsageBook: the usage of everybody whose usage counts under the policy. It holds what was charged,
// not what is held: the state says when that changes. Owned by the state, used on its thread.
#include <map>
#include <set>

#include "core/model/policy.h"
#include "core/model/usage.h"

namespace gpuq {

class UsageBook {
 public:
  /// From `now` on only what `policy` asks for is counted, with its half-lives. Until then the old
  /// ones hold; what is no longer counted is forgotten, and so is what has decayed to nothing.
  void set_policy(const PolicyTables& policy, Time now);
  [[nodiscard]] bool counts(ShareId share, UsageKind kind) const;
  /// Charges what was held until `now`; from then on it is `held`.
  void charge(const UsageKey& key, Amount held, Time now);
  /// The usage at `now`, zero where nothing was ever held.
  [[nodiscard]] UsageValue at(const UsageKey& key, Time now) const;
  /// What is held since the last charge.
  [[nodiscard]] Amount held(const UsageKey& key) const;

  [[nodiscard]] const std::map<UsageKey, UsageRecord>& records() const { return records_; }
  /// Of a store: set_policy() comes first.
  void load(UsageRecord record);
  /// The keys of records that came, changed or went since the last call.
  std::set<UsageKey> take_touched();
  /// Why a record can not be, or an empty string.
  [[nodiscard]] std::string fault_at(Time now) const;

 private:
  struct Rule {
    Duration half_life = kDefaultHalfLife;
    std::set<UsageKind> kinds;  ///< Not empty.
  };

  [[nodiscard]] UsageValue value_of(const UsageRecord& record, Time now) const;

  std::map<ShareId, Rule> rules_;  ///< Of the shares of which anything counts.
  std::map<UsageKey, UsageRecord> records_;
  std::set<UsageKey> touched_;
};

}  // namespace gpuq
