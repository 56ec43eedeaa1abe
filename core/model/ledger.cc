#include "core/model/ledger.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace gpuq {

namespace {

constexpr std::size_t index(View view) { return static_cast<std::size_t>(view); }

Amount min(Amount a, Amount b) { return a < b ? a : b; }
Amount positive(Amount a) { return a > kZero ? a : kZero; }

// Whole units that one node's resources make, in milli. A unit of exactly one GPU can be had in
// parts.
Amount units_of(const UnitDef& unit, std::int64_t gpu_milli, std::int64_t cpus,
                std::int64_t memory_mib) {
  std::int64_t milli = kUnlimited.milli;
  if (unit.gpus > 0) milli = unit.gpus == 1 ? gpu_milli : gpu_milli / 1000 / unit.gpus * 1000;
  if (unit.cpus > 0) milli = std::min(milli, cpus / unit.cpus * 1000);
  if (unit.memory_mib > 0) milli = std::min(milli, memory_mib / unit.memory_mib * 1000);
  return milli == kUnlimited.milli ? kZero : Amount(std::max<std::int64_t>(milli, 0));
}

std::int64_t scaled(Amount count, std::int64_t per_unit) {
  return (count.milli * per_unit + 999) / 1000;
}

}  // namespace

InstanceNeed instance_need(const JobClass& cls, const UnitRequest& request, const Unit& unit) {
  InstanceNeed need;
  need.cpus = cls.cpus + static_cast<std::int32_t>(scaled(request.count, unit.def.cpus));
  need.memory_mib = cls.memory_mib + scaled(request.count, unit.def.memory_mib);
  if (unit.def.gpus == 0) return need;
  need.gpu_model = unit.def.gpu_model;
  const std::int64_t milli = request.count.milli * unit.def.gpus;
  need.whole_gpus = static_cast<std::int32_t>(milli / 1000);
  need.fraction_milli = static_cast<std::int32_t>(milli % 1000);
  return need;
}

Ledger::Ledger(const Ledger& other) { *this = other; }

Ledger& Ledger::operator=(const Ledger& other) {
  if (this == &other) return *this;
  slot_ = other.slot_;
  units_ = other.units_;
  books_ = other.books_;
  shares_ = other.shares_;
  node_index_ = other.node_index_;
  loads_ = other.loads_;
  on_node_ = other.on_node_;
  node_env_ = other.node_env_;
  odd_device_ = other.odd_device_;
  space_ = other.space_;
  env_space_[0] = other.env_space_[0];
  env_space_[1] = other.env_space_[1];
  holdings_ = other.holdings_;
  stopping_count_ = other.stopping_count_;
  pools_dirty_ = other.pools_dirty_;
  logging_ = other.logging_;
  log_ = other.log_;
  for (ShareBook& share : shares_) {
    for (auto& [key, holding] : share.laid) holding = &holdings_.at(key.key);
  }
  return *this;
}

void Ledger::reset(const PolicyTables& policy, const std::vector<Node>& nodes) {
  GPUQ_CHECK(!logging_);
  *this = Ledger();
  const auto id_count = static_cast<std::size_t>(policy.next_id);
  slot_.assign(id_count, 0);
  for (const Unit& unit : policy.units) {
    slot_[static_cast<std::size_t>(unit.id.value)] = units_.size();
    units_.push_back(unit.def);
  }
  std::size_t envs = 1;  // Slot 0: no environment.
  for (const Environment& env : policy.environments) {
    slot_[static_cast<std::size_t>(env.id.value)] = envs++;
  }
  books_.resize(envs * units_.size());
  shares_.resize(id_count);
  for (const Share& share : policy.shares) {
    ShareBook& entry = shares_[static_cast<std::size_t>(share.id.value)];
    const Environment* env = policy.environment_of(share.queue);
    entry.known = true;
    entry.env = env != nullptr ? env->id : EnvId();
    entry.strategy = share.def.strategy;
    entry.borrow_limit = share.def.borrow_limit;
    entry.min_runtime = share.def.min_runtime;
    entry.by_user = share.def.user_order == UserOrder::kFair;
    entry.caps.assign(units_.size(), kZero);
    for (const View view : {View::kNow, View::kAfter}) {
      entry.held[index(view)].assign(units_.size(), kZero);
      entry.not_preemptible[index(view)].assign(units_.size(), kZero);
    }
    for (const Unit& unit : policy.units) {
      const Amount cap = limit_of(share.def.capacity_limits, unit.def.name);
      entry.caps[slot(unit.id)] = cap;
      PoolBook& pool = book(entry.env, unit.id);
      const bool reserve = entry.strategy == SharingStrategy::kReserve;
      (reserve ? pool.reserve_caps : pool.lending_caps) += cap;
      for (ViewSums& sums : pool.sums) (reserve ? sums.reserved : sums.lent) += cap;
    }
  }
  for (auto& sums : env_space_) sums.assign(envs, 0);
  std::int32_t last_node = 0;
  for (const Node& node : nodes) last_node = std::max(last_node, node.id.value);
  node_index_.assign(static_cast<std::size_t>(last_node) + 1, 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    node_index_[static_cast<std::size_t>(nodes[i].id.value)] = i;
    NodeLoad load;
    load.devices.resize(nodes[i].devices.size());
    loads_.push_back(std::move(load));
    on_node_.emplace_back();
    node_env_.push_back(nodes[i].env);
    std::vector<bool> odd;
    for (const Device& device : nodes[i].devices) odd.push_back(!device.usable || device.charged);
    odd_device_.push_back(std::move(odd));
    NodeSpace& space = space_.emplace_back();
    if (!nodes[i].devices.empty()) space.model = nodes[i].devices.front().model;
    for (std::size_t d = 0; d < nodes[i].devices.size(); ++d) {
      space.uniform = space.uniform && nodes[i].devices[d].model == space.model;
      count_space(i, d, 1);
    }
  }
  refresh_pools(policy, nodes);
}

void Ledger::refresh_pools(const PolicyTables& policy, const std::vector<Node>& nodes) {
  pools_dirty_ = false;
  // What holdings of other environments use leaves P; an unusable device in use stays in it.
  struct Foreign {
    std::vector<std::int32_t> device_milli;
    std::vector<bool> in_use;
    std::int64_t cpus = 0;
    std::int64_t memory_mib = 0;
  };
  std::vector<Foreign> foreign(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    foreign[i].device_milli.assign(nodes[i].devices.size(), 0);
    foreign[i].in_use.assign(nodes[i].devices.size(), false);
  }
  for (const auto& [key, holding] : holdings_) {
    const EnvId env = share_book(holding.share).env;
    for (const InstanceUse& use : holding.uses) {
      const std::size_t at = node_index(use.node);
      const bool other = env != node_env_[at];
      for (const DeviceUse& device : use.devices) {
        const auto d = static_cast<std::size_t>(device.device);
        if (!key.booking) foreign[at].in_use[d] = true;
        if (other) foreign[at].device_milli[d] += device.milli;
      }
      if (other) foreign[at].cpus += use.cpus;
      if (other) foreign[at].memory_mib += use.memory_mib;
    }
  }
  for (const Environment& env : policy.environments) {
    for (const Unit& unit : policy.units) {
      PoolBook& pool = book(env.id, unit.id);
      pool.limit = limit_of(env.def.capacity_limits, unit.def.name);
      Amount present;
      pool.known = kZero;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const Node& node = nodes[i];
        if (node.env != env.id) continue;
        std::int64_t all_milli = 0;
        std::int64_t milli = 0;
        for (std::size_t d = 0; d < node.devices.size(); ++d) {
          const Device& device = node.devices[d];
          if (!device.is_model(unit.def.gpu_model)) continue;
          all_milli += 1000;
          if (device.charged || (!device.usable && !foreign[i].in_use[d])) continue;
          milli += 1000 - foreign[i].device_milli[d];
        }
        pool.known += units_of(unit.def, all_milli, node.cpus, node.memory_mib);
        if (node.link == NodeLink::kDown) continue;
        present += units_of(unit.def, milli, node.cpus - foreign[i].cpus,
                            node.memory_mib - foreign[i].memory_mib);
      }
      pool.pool = min(pool.limit, present);
    }
  }
}

void Ledger::add(Holding holding) {
  const HoldingKey key = holding.key;
  raw_add(std::move(holding));
  if (logging_) log_.push_back({Op::kAdded, key, false, {}});
}

void Ledger::remove(HoldingKey key) {
  Holding removed = raw_remove(key);
  if (logging_) log_.push_back({Op::kRemoved, key, false, std::move(removed)});
}

void Ledger::set_stopping(HoldingKey key, bool stopping) {
  const bool was = holdings_.at(key).stopping;
  if (was == stopping) return;
  raw_set_stopping(key, stopping);
  if (logging_) log_.push_back({Op::kStopping, key, was, {}});
}

std::size_t Ledger::mark() {
  logging_ = true;
  return log_.size();
}

void Ledger::rollback(std::size_t mark) {
  while (log_.size() > mark) {
    LogEntry entry = std::move(log_.back());
    log_.pop_back();
    if (entry.op == Op::kAdded) (void)raw_remove(entry.key);
    if (entry.op == Op::kRemoved) raw_add(std::move(entry.removed));
    if (entry.op == Op::kStopping) raw_set_stopping(entry.key, entry.was_stopping);
  }
}

void Ledger::end_scratch() {
  rollback(0);
  logging_ = false;
}

void Ledger::raw_add(Holding holding) {
  const HoldingKey key = holding.key;
  const auto [it, inserted] = holdings_.emplace(key, std::move(holding));
  GPUQ_CHECK(inserted);
  const Holding& h = it->second;
  share_book(h.share).laid.emplace(LayKey{h.preemptible, -h.priority, h.started, h.job, key}, &h);
  count(h, View::kNow, 1);
  if (!h.stopping) count(h, View::kAfter, 1);
  if (h.stopping) ++stopping_count_;
  for (const InstanceUse& use : h.uses) on_node_[node_index(use.node)].insert(key);
  if (!pools_dirty_ && uses_odd_device(h)) pools_dirty_ = true;
}

Holding Ledger::raw_remove(HoldingKey key) {
  const auto it = holdings_.find(key);
  GPUQ_CHECK(it != holdings_.end());
  const Holding& h = it->second;
  share_book(h.share).laid.erase(LayKey{h.preemptible, -h.priority, h.started, h.job, key});
  count(h, View::kNow, -1);
  if (!h.stopping) count(h, View::kAfter, -1);
  if (h.stopping) --stopping_count_;
  for (const InstanceUse& use : h.uses) on_node_[node_index(use.node)].erase(key);
  if (!pools_dirty_ && uses_odd_device(h)) pools_dirty_ = true;
  Holding removed = std::move(it->second);
  holdings_.erase(it);
  return removed;
}

void Ledger::raw_set_stopping(HoldingKey key, bool stopping) {
  Holding& h = holdings_.at(key);
  GPUQ_CHECK(!key.booking && h.stopping != stopping);
  h.stopping = stopping;
  count(h, View::kAfter, stopping ? -1 : 1);
  stopping_count_ += stopping ? 1 : -1;
}

Amount Ledger::booked_free_part(const Holding& holding) const {
  if (holding.victims.empty()) return holding.demand;
  const UnitDef& unit = units_[slot(holding.unit)];
  std::int64_t free_milli = 0;
  std::int64_t cpus = 0;
  std::int64_t awaited_cpus = 0;
  for (const InstanceUse& use : holding.uses) {
    for (const DeviceUse& device : use.devices) {
      if (!device.awaits.valid()) free_milli += device.milli;
    }
    cpus += use.cpus;
    for (const AwaitedHost& host : use.awaited) awaited_cpus += host.cpus;
  }
  if (unit.gpus > 0) return Amount(free_milli / unit.gpus);
  if (unit.cpus > 0) return Amount((cpus - awaited_cpus) * 1000 / unit.cpus);
  return kZero;
}

void Ledger::count_space(std::size_t node, std::size_t device, std::int32_t sign) {
  if (odd_device_[node][device]) return;
  const DeviceLoad& load = loads_[node].devices[device];
  const std::size_t env = slot_[static_cast<std::size_t>(node_env_[node].value)];
  for (const std::size_t v : {std::size_t{0}, std::size_t{1}}) {
    const std::int32_t free = std::max(0, load.free(v == 0));
    space_[node].milli[v] += sign * free;
    space_[node].whole[v] += free == 1000 ? sign : 0;
    env_space_[v][env] += sign * free;
  }
}

void Ledger::count(const Holding& h, View view, std::int32_t sign) {
  const bool free_parts_only = h.key.booking && view == View::kNow;
  const Amount amount = free_parts_only ? min(booked_free_part(h), h.demand) : h.demand;
  ShareBook& share = share_book(h.share);
  const Amount change = sign > 0 ? amount : -amount;
  add_held(share, h.unit, view, change);
  const std::size_t v = index(view);
  if (!h.preemptible) share.not_preemptible[v][slot(h.unit)] += change;
  if (share.by_user) add_user(share, h, view, change);
  for (const InstanceUse& use : h.uses) {
    const std::size_t at = node_index(use.node);
    NodeLoad& load = loads_[at];
    std::int64_t cpus = use.cpus;
    std::int64_t memory = use.memory_mib;
    for (const DeviceUse& device : use.devices) {
      if (free_parts_only && device.awaits.valid()) continue;
      const auto d = static_cast<std::size_t>(device.device);
      count_space(at, d, -1);
      load.devices[d].used[v] += sign * device.milli;
      count_space(at, d, 1);
    }
    if (free_parts_only) {
      for (const AwaitedHost& host : use.awaited) {
        cpus -= host.cpus;
        memory -= host.memory_mib;
      }
    }
    load.cpus[v] += sign * cpus;
    load.memory_mib[v] += sign * memory;
  }
}

void Ledger::add_held(ShareBook& share, UnitId unit, View view, Amount amount) {
  const std::size_t u = slot(unit);
  ViewSums& sums = book(share.env, unit).sums[index(view)];
  Amount& held = share.held[index(view)][u];
  const Amount cap = share.caps[u];
  if (share.strategy == SharingStrategy::kReserve) {
    sums.reserved -= positive(cap - held);
    sums.reserve_over -= positive(held - cap);
    held += amount;
    sums.reserved += positive(cap - held);
    sums.reserve_over += positive(held - cap);
  } else {
    held += amount;
    sums.lent -= amount;
  }
  sums.held += amount;
}

bool Ledger::uses_odd_device(const Holding& holding) const {
  const EnvId env = share_book(holding.share).env;
  for (const InstanceUse& use : holding.uses) {
    const std::size_t at = node_index(use.node);
    if (node_env_[at] != env) return true;
    for (const DeviceUse& device : use.devices) {
      if (odd_device_[at][static_cast<std::size_t>(device.device)]) return true;
    }
  }
  return false;
}

Ledger::PoolBook& Ledger::book(EnvId env, UnitId unit) {
  return books_[slot_[static_cast<std::size_t>(env.value)] * units_.size() + slot(unit)];
}

const Ledger::PoolBook& Ledger::book(EnvId env, UnitId unit) const {
  return books_[slot_[static_cast<std::size_t>(env.value)] * units_.size() + slot(unit)];
}

Ledger::ShareBook& Ledger::share_book(ShareId share) {
  return shares_[static_cast<std::size_t>(share.value)];
}

const Ledger::ShareBook& Ledger::share_book(ShareId share) const {
  return shares_[static_cast<std::size_t>(share.value)];
}

Amount Ledger::held(ShareId share, UnitId unit, View view) const {
  return share_book(share).held[index(view)][slot(unit)];
}

Amount Ledger::held_not_preemptible(ShareId share, UnitId unit, View view) const {
  return share_book(share).not_preemptible[index(view)][slot(unit)];
}

Amount Ledger::cap(ShareId share, UnitId unit) const { return share_book(share).caps[slot(unit)]; }

bool Ledger::may_borrow(ShareId share) const {
  return share_book(share).strategy == SharingStrategy::kLendAndBorrow;
}

// An attempt that does not run yet has no work to lose and is not protected.
Time Ledger::old_enough_at(const Holding& holding) const {
  if (holding.running_since == kNever) return Time{};
  return holding.running_since + share_book(holding.share).min_runtime;
}

Amount Ledger::ceiling(ShareId share, UnitId unit) const {
  const Amount own = cap(share, unit);
  if (!may_borrow(share)) return own;
  const std::int32_t percent = share_book(share).borrow_limit;
  if (percent < 0) return kUnlimited;
  __extension__ using Wide = __int128;
  const Wide more = static_cast<Wide>(own.milli) * percent / 100;
  if (more > kUnlimited.milli - own.milli) return kUnlimited;
  return own + Amount(static_cast<std::int64_t>(more));
}

EnvId Ledger::environment(ShareId share) const { return share_book(share).env; }

Amount Ledger::pool(EnvId env, UnitId unit) const { return book(env, unit).pool; }
Amount Ledger::limit(EnvId env, UnitId unit) const { return book(env, unit).limit; }
Amount Ledger::known_units(EnvId env, UnitId unit) const { return book(env, unit).known; }

Amount Ledger::free(EnvId env, UnitId unit, View view) const {
  const PoolBook& entry = book(env, unit);
  return entry.pool - entry.sums[index(view)].held;
}

Amount Ledger::reserved(EnvId env, UnitId unit, ShareId except, View view) const {
  Amount sum = book(env, unit).sums[index(view)].reserved;
  if (except.valid() && share_book(except).strategy == SharingStrategy::kReserve) {
    sum -= positive(cap(except, unit) - held(except, unit, view));
  }
  return sum;
}

Amount Ledger::lendable(EnvId env, UnitId unit, View view) const {
  const ViewSums& sums = book(env, unit).sums[index(view)];
  return min(free(env, unit, view) - sums.reserved, sums.lent - sums.reserve_over);
}

Amount Ledger::lending_caps(EnvId env, UnitId unit) const { return book(env, unit).lending_caps; }

Amount Ledger::reserve_caps(EnvId env, UnitId unit, ShareId except) const {
  Amount sum = book(env, unit).reserve_caps;
  if (except.valid() && share_book(except).strategy == SharingStrategy::kReserve) {
    sum -= cap(except, unit);
  }
  return sum;
}

const Holding* Ledger::find(HoldingKey key) const {
  const auto it = holdings_.find(key);
  return it == holdings_.end() ? nullptr : &it->second;
}

const std::map<LayKey, const Holding*>& Ledger::laid(ShareId share) const {
  return share_book(share).laid;
}

const NodeLoad& Ledger::load(NodeId node) const { return loads_[node_index(node)]; }

const std::set<HoldingKey>& Ledger::on_node(NodeId node) const {
  return on_node_[node_index(node)];
}

std::size_t Ledger::node_index(NodeId node) const {
  return node_index_[static_cast<std::size_t>(node.value)];
}

std::int32_t Ledger::device_free(const Node& node, std::int32_t device, bool also_now) const {
  const auto d = static_cast<std::size_t>(device);
  if (!node.devices[d].usable || node.devices[d].charged) return 0;
  return loads_[node_index(node.id)].devices[d].free(also_now);
}

std::int64_t Ledger::free_gpu_bound(EnvId env, bool also_now) const {
  return env_space_[also_now ? 0 : 1][slot_[static_cast<std::size_t>(env.value)]];
}

std::int64_t Ledger::free_gpu_milli(const Node& node, const std::string& model,
                                    bool also_now) const {
  const NodeSpace& space = space_[node_index(node.id)];
  if (space.uniform) {
    return model.empty() || model == space.model ? space.milli[also_now ? 0 : 1] : 0;
  }
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < node.devices.size(); ++d) {
    if (!node.devices[d].is_model(model)) continue;
    sum += std::max(0, device_free(node, static_cast<std::int32_t>(d), also_now));
  }
  return sum;
}

namespace {

// How many of at most `limit` instances CPUs and memory allow.
std::int32_t host_limit(std::int64_t cpus, std::int64_t memory_mib, const InstanceNeed& need,
                        std::int32_t limit) {
  std::int64_t most = limit;
  if (need.cpus > 0) most = std::min(most, cpus / need.cpus);
  if (need.memory_mib > 0) most = std::min(most, memory_mib / need.memory_mib);
  return static_cast<std::int32_t>(std::max<std::int64_t>(most, 0));
}

// Instances of `need` on one node, given each matching device's free milli and the host's rest.
std::int32_t count_fitting(std::vector<std::int32_t>& free_milli, std::int64_t cpus,
                           std::int64_t memory_mib, const InstanceNeed& need, std::int32_t limit) {
  const std::int32_t most = host_limit(cpus, memory_mib, need, limit);
  if (most == 0 || !need.wants_gpus()) return most;
  std::int64_t whole = 0;
  std::int64_t parts = 0;  // Parts on devices that are no longer whole.
  for (const std::int32_t free : free_milli) {
    if (free == 1000) ++whole;
    if (free < 1000 && need.fraction_milli > 0) parts += std::max(0, free) / need.fraction_milli;
  }
  if (need.fraction_milli == 0)
    return static_cast<std::int32_t>(std::min<std::int64_t>(most, whole / need.whole_gpus));
  const std::int64_t parts_of_whole = 1000 / need.fraction_milli;
  std::int64_t fit = 0;
  while (fit < most) {
    if (whole < need.whole_gpus) break;
    whole -= need.whole_gpus;
    if (parts == 0) {
      if (whole == 0) break;
      --whole;
      parts += parts_of_whole;
    }
    --parts;
    ++fit;
  }
  return static_cast<std::int32_t>(fit);
}

}  // namespace

std::int32_t Ledger::fitting(const Node& node, const InstanceNeed& need, std::int32_t limit,
                             bool also_now) const {
  const std::size_t at = node_index(node.id);
  const NodeLoad& load = loads_[at];
  const NodeSpace& space = space_[at];
  const std::size_t v = also_now ? 0 : 1;
  const std::int64_t cpus = also_now ? std::max(load.cpus[0], load.cpus[1]) : load.cpus[1];
  const std::int64_t memory =
      also_now ? std::max(load.memory_mib[0], load.memory_mib[1]) : load.memory_mib[1];
  if (need.wants_gpus()) {
    if (space.milli[v] < need.gpu_milli()) return 0;
    if (space.uniform && need.fraction_milli == 0) {
      if (!need.gpu_model.empty() && need.gpu_model != space.model) return 0;
      return host_limit(node.cpus - cpus, node.memory_mib - memory, need,
                        std::min(limit, space.whole[v] / need.whole_gpus));
    }
  }
  thread_local std::vector<std::int32_t> free_milli;
  free_milli.clear();
  if (need.wants_gpus()) {
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      if (!node.devices[d].is_model(need.gpu_model)) continue;
      free_milli.push_back(device_free(node, static_cast<std::int32_t>(d), also_now));
    }
  }
  return count_fitting(free_milli, node.cpus - cpus, node.memory_mib - memory, need, limit);
}

std::int32_t Ledger::fitting_empty(const Node& node, const InstanceNeed& need, std::int32_t limit) {
  std::vector<std::int32_t> free_milli;
  for (const Device& device : node.devices) {
    if (device.is_model(need.gpu_model)) free_milli.push_back(1000);
  }
  return count_fitting(free_milli, node.cpus, node.memory_mib, need, limit);
}

bool Ledger::same_as(const Ledger& other) const {
  if (holdings_ != other.holdings_ || loads_ != other.loads_ || books_ != other.books_) {
    return false;
  }
  if (space_ != other.space_ || env_space_[0] != other.env_space_[0] ||
      env_space_[1] != other.env_space_[1]) {
    return false;
  }
  if (stopping_count_ != other.stopping_count_ || shares_.size() != other.shares_.size()) {
    return false;
  }
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    for (const std::size_t v : {index(View::kNow), index(View::kAfter)}) {
      if (shares_[s].held[v] != other.shares_[s].held[v]) return false;
      if (shares_[s].not_preemptible[v] != other.shares_[s].not_preemptible[v]) return false;
    }
    if (shares_[s].users != other.shares_[s].users) return false;
    if (shares_[s].laid.size() != other.shares_[s].laid.size()) return false;
  }
  return true;
}

}  // namespace gpuq
