#include "tests/property/recount.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "tests/property/all_jobs.h"

namespace gpuq::property {

namespace {

Amount positive(Amount a) { return std::max(a, kZero); }

bool is_reserve(const Share& share) { return share.def.strategy == SharingStrategy::kReserve; }

bool model_fits(const Device& device, const std::string& model) {
  return model.empty() || device.model == model;
}

Amount freed_part(const Booking& booking, const UnitDef& unit) {
  if (booking.victims.empty()) return booking.demand;
  std::int64_t milli = 0;
  std::int64_t cpus = 0;
  for (const InstanceUse& use : booking.instances) {
    for (const DeviceUse& device : use.devices) milli += device.awaits.valid() ? 0 : device.milli;
    cpus += use.cpus;
    for (const AwaitedHost& host : use.awaited) cpus -= host.cpus;
  }
  const Amount part = unit.gpus > 0   ? Amount(milli / unit.gpus)
                      : unit.cpus > 0 ? Amount(cpus * 1000 / unit.cpus)
                                      : kZero;
  return std::min(part, booking.demand);
}

}  // namespace

Want want_of(const State& state, const Job& job, std::size_t n) {
  const JobClass& cls = state.job_class(job.cls);
  const UnitRequest& request = cls.units.at(n);
  const UnitDef& unit = state.policy().unit(request.unit)->def;
  Want want;
  want.job = job.id;
  want.share = job.share;
  want.unit = request.unit;
  want.demand = Amount(request.count.milli * cls.instances);
  want.instances = cls.instances;
  want.preemptible = cls.preemptible;
  if (cls.topology_required && cls.instances > 1) want.domain_label = cls.topology_label;
  want.model = unit.gpu_model;
  const std::int64_t gpu_milli = request.count.milli * unit.gpus;
  want.whole = gpu_milli / 1000;
  want.part = gpu_milli % 1000;
  want.cpus = cls.cpus + (request.count.milli * unit.cpus + 999) / 1000;
  want.memory_mib = cls.memory_mib + (request.count.milli * unit.memory_mib + 999) / 1000;
  return want;
}

Want want_of(const State& state, const Job& job, UnitId unit) {
  const auto& units = state.job_class(job.cls).units;
  std::size_t n = 0;
  while (n + 1 < units.size() && units[n].unit != unit) ++n;
  return want_of(state, job, n);
}

Recount::Recount(const State& state, const Without& without) : state_(state) {
  for (const auto& [id, attempt] : state.attempts()) {
    if (attempt.outcome != AttemptOutcome::kNone) continue;
    const Job& job = state.job(attempt.job);
    Held held;
    held.stopping = attempt.stop != StopCause::kNone || without.stopped.contains(id);
    held.preemptible = state.job_class(job.cls).preemptible;
    held.attempt = id;
    held.job = attempt.job;
    held.share = attempt.share;
    held.unit = attempt.unit;
    held.demand = attempt.demand;
    held.priority = job.priority;
    held.started = attempt.scheduled_at;
    if (attempt.running_at != kNever) {
      const Share* share = state.policy().share(attempt.share);
      held.old_enough_at = attempt.running_at + share->def.min_runtime;
    }
    for (const AttemptInstance& instance : attempt.instances) held.uses.push_back(instance.use);
    add_use(held);
    holders_.push_back(std::move(held));
  }
  for (const auto& [id, booking] : state.bookings()) {
    if (without.bookings.contains(id)) continue;
    const Job& job = state.job(id);
    Held held;
    held.booking = true;
    held.preemptible = state.job_class(job.cls).preemptible;
    held.job = id;
    held.share = booking.share;
    held.unit = booking.unit;
    held.demand = booking.demand;
    held.freed = freed_part(booking, state.policy().unit(booking.unit)->def);
    held.priority = job.priority;
    held.started = booking.made_at;
    held.uses = booking.instances;
    add_use(held);
    holders_.push_back(std::move(held));
  }
}

void Recount::add_use(const Held& held) {
  for (const InstanceUse& use : held.uses) {
    std::int64_t cpus_now = use.cpus;
    std::int64_t memory_now = use.memory_mib;
    for (const AwaitedHost& host : use.awaited) {
      cpus_now -= host.cpus;
      memory_now -= host.memory_mib;
    }
    const bool after = !held.stopping;
    for (const DeviceUse& device : use.devices) {
      Use& sum = devices_[{use.node, device.device}];
      if (!held.booking || !device.awaits.valid()) sum.now += device.milli;
      if (after) sum.after += device.milli;
    }
    cpus_[use.node].now += cpus_now;
    memory_[use.node].now += memory_now;
    if (after) cpus_[use.node].after += use.cpus;
    if (after) memory_[use.node].after += use.memory_mib;
  }
}

Amount Recount::held(ShareId share, UnitId unit, bool after) const {
  return held_by(share, unit, after, false);
}

Amount Recount::held_not_preemptible(ShareId share, UnitId unit, bool after) const {
  return held_by(share, unit, after, true);
}

Amount Recount::held_by(ShareId share, UnitId unit, bool after, bool not_preemptible) const {
  Amount sum;
  for (const Held& held : holders_) {
    if (held.share != share || held.unit != unit) continue;
    if (not_preemptible && held.preemptible) continue;
    if (after) {
      if (!held.stopping) sum += held.demand;
    } else {
      sum += held.booking ? held.freed : held.demand;
    }
  }
  return sum;
}

Amount Recount::cap(ShareId share, UnitId unit) const {
  const std::string& name = state_.policy().unit(unit)->def.name;
  for (const CapacityLimit& limit : state_.policy().share(share)->def.capacity_limits) {
    if (limit.unit == name) return limit.max_capacity;
  }
  return kZero;
}

Amount Recount::ceiling(ShareId share, UnitId unit) const {
  const ShareDef& def = state_.policy().share(share)->def;
  const Amount own = cap(share, unit);
  if (def.strategy != SharingStrategy::kLendAndBorrow) return own;
  if (def.borrow_limit < 0) return kUnlimited;
  return own + Amount(own.milli * def.borrow_limit / 100);
}

EnvId Recount::env_of(ShareId share) const {
  return state_.policy().environment_of(state_.policy().share(share)->queue)->id;
}

Amount Recount::pool(UnitId unit, EnvId env) const {
  const UnitDef& def = state_.policy().unit(unit)->def;
  std::int64_t units = 0;
  for (const Node& node : state_.nodes()) {
    if (node.env != env || node.link == NodeLink::kDown) continue;
    std::int64_t gpus = 0;
    for (std::size_t d = 0; d < node.devices.size(); ++d) {
      const Device& device = node.devices[d];
      if (!model_fits(device, def.gpu_model) || device.charged) continue;
      bool attempt_on_it = false;
      for (const Held& held : holders_) {
        for (const InstanceUse& use : held.uses) {
          if (held.booking || use.node != node.id) continue;
          for (const DeviceUse& part : use.devices) {
            attempt_on_it = attempt_on_it || part.device == static_cast<std::int32_t>(d);
          }
        }
      }
      if (device.usable || attempt_on_it) ++gpus;
    }
    std::int64_t here = def.gpus > 0 ? gpus / def.gpus : node.cpus;
    if (def.cpus > 0) here = std::min<std::int64_t>(here, node.cpus / def.cpus);
    if (def.memory_mib > 0) here = std::min(here, node.memory_mib / def.memory_mib);
    units += here;
  }
  Amount limit;
  for (const CapacityLimit& l : state_.policy().environment(env)->def.capacity_limits) {
    if (l.unit == def.name) limit = l.max_capacity;
  }
  return std::min(limit, Amount::units(units));
}

Amount Recount::free(UnitId unit, EnvId env, bool after) const {
  Amount left = pool(unit, env);
  for (const Share& share : state_.policy().shares) {
    if (env_of(share.id) == env) left -= held(share.id, unit, after);
  }
  return left;
}

Amount Recount::reserved(UnitId unit, EnvId env, ShareId except, bool after) const {
  Amount sum;
  for (const Share& share : state_.policy().shares) {
    if (!is_reserve(share) || share.id == except || env_of(share.id) != env) continue;
    sum += positive(cap(share.id, unit) - held(share.id, unit, after));
  }
  return sum;
}

Amount Recount::lendable(UnitId unit, EnvId env, bool after) const {
  Amount lent;
  for (const Share& share : state_.policy().shares) {
    if (env_of(share.id) != env) continue;
    const Amount left = cap(share.id, unit) - held(share.id, unit, after);
    if (is_reserve(share)) {
      lent -= positive(-left);
    } else {
      lent += left;
    }
  }
  return std::min(free(unit, env, after) - reserved(unit, env, ShareId(), after), lent);
}

bool Recount::within_not_preemptible_limit(const Want& want, bool after) const {
  const Amount with = held_not_preemptible(want.share, want.unit, after) + want.demand;
  return want.preemptible || with <= cap(want.share, want.unit);
}

Claim Recount::claim(const Want& want, bool after) const {
  if (!within_not_preemptible_limit(want, after)) return Claim::kNone;
  const Amount with = held(want.share, want.unit, after) + want.demand;
  const EnvId env = env_of(want.share);
  if (with <= cap(want.share, want.unit)) {
    const Amount left = free(want.unit, env, after) - reserved(want.unit, env, want.share, after);
    return want.demand <= left ? Claim::kOwner : Claim::kNone;
  }
  const ShareDef& def = state_.policy().share(want.share)->def;
  if (def.strategy != SharingStrategy::kLendAndBorrow) return Claim::kNone;
  if (with > ceiling(want.share, want.unit)) return Claim::kNone;
  return want.demand <= lendable(want.unit, env, after) ? Claim::kBorrower : Claim::kNone;
}

std::int64_t Recount::device_used(NodeId node, std::int32_t device, bool after) const {
  const auto it = devices_.find({node, device});
  if (it == devices_.end()) return 0;
  return after ? it->second.after : std::max(it->second.now, it->second.after);
}

std::int64_t Recount::fitting_on(const Want& want, const Node& node, bool after) const {
  if (node.env != env_of(want.share) || !node.accepts_new()) return 0;
  const auto left = [&](std::int64_t all, const std::map<NodeId, Use>& used) {
    const auto it = used.find(node.id);
    if (it == used.end()) return all;
    return all - (after ? it->second.after : std::max(it->second.now, it->second.after));
  };
  std::int64_t n = kMaxInstances;
  if (want.cpus > 0) n = std::min(n, left(node.cpus, cpus_) / want.cpus);
  if (want.memory_mib > 0) n = std::min(n, left(node.memory_mib, memory_) / want.memory_mib);
  if (want.whole == 0 && want.part == 0) return std::max<std::int64_t>(0, n);
  std::int64_t whole = 0;
  std::int64_t parts = 0;
  for (std::size_t d = 0; d < node.devices.size(); ++d) {
    if (!model_fits(node.devices[d], want.model)) continue;
    if (!node.devices[d].usable || node.devices[d].charged) continue;
    const std::int64_t free = 1000 - device_used(node.id, static_cast<std::int32_t>(d), after);
    if (free == 1000) ++whole;
    if (free < 1000 && want.part > 0) parts += std::max<std::int64_t>(0, free) / want.part;
  }
  // The most n for which n * whole devices and n parts can be had together.
  n = std::min(n, want.whole > 0 ? whole / want.whole : parts + whole * (1000 / want.part));
  for (; n > 0; --n) {
    const std::int64_t rest = whole - n * want.whole;
    if (rest >= 0 && (want.part == 0 || parts + rest * (1000 / want.part) >= n)) break;
  }
  return std::max<std::int64_t>(0, n);
}

std::int64_t Recount::fitting(const Want& want, bool after) const {
  std::map<std::string, std::int64_t> room;
  for (const Node& node : state_.nodes()) {
    const auto label = node.labels.find(want.domain_label);
    if (!want.domain_label.empty() && label == node.labels.end()) continue;
    room[want.domain_label.empty() ? "" : label->second] += fitting_on(want, node, after);
  }
  std::int64_t most = 0;
  for (const auto& [domain, count] : room) most = std::max(most, count);
  return most;
}

std::vector<const Held*> Recount::borrowing(ShareId share, UnitId unit) const {
  std::vector<const Held*> order;
  for (const Held& held : holders_) {
    if (held.share == share && held.unit == unit && !held.stopping) order.push_back(&held);
  }
  std::sort(order.begin(), order.end(), [](const Held* a, const Held* b) {
    return std::tuple(a->preemptible, -a->priority, a->started, a->job, a->booking) <
           std::tuple(b->preemptible, -b->priority, b->started, b->job, b->booking);
  });
  std::size_t inside = 0;
  Amount laid;
  for (; inside < order.size(); ++inside) {
    if (laid + order[inside]->demand > cap(share, unit)) break;
    laid += order[inside]->demand;
  }
  order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(inside));
  return order;
}

bool Recount::on_usable_node(const Held& held) const {
  return std::any_of(held.uses.begin(), held.uses.end(), [&](const InstanceUse& use) {
    const Node& node = state_.node(use.node);
    return node.link == NodeLink::kUp && node.admin == NodeAdmin::kOpen && node.healthy &&
           node.env == env_of(held.share);
  });
}

std::string Recount::device_faults() const {
  for (const Held& held : holders_) {
    for (const InstanceUse& use : held.uses) {
      const Node& node = state_.node(use.node);
      for (const DeviceUse& part : use.devices) {
        if (part.device < 0 || part.device >= static_cast<std::int32_t>(node.devices.size())) {
          return fmt::format("job {} uses device {} of {}", held.job.value, part.device, node.name);
        }
      }
    }
  }
  for (const auto& [key, used] : devices_) {
    if (used.now > 1000 || used.after > 1000) {
      return fmt::format("device {} of node {} is given twice: {} now, {} after (invariant 1)",
                         key.second, key.first.value, used.now, used.after);
    }
  }
  for (const Node& node : state_.nodes()) {
    const auto over = [&](const std::map<NodeId, Use>& used, std::int64_t all) {
      const auto it = used.find(node.id);
      return it != used.end() && std::max(it->second.now, it->second.after) > all;
    };
    if (over(cpus_, node.cpus)) return fmt::format("CPUs of {} are given twice", node.name);
    if (over(memory_, node.memory_mib)) return fmt::format("memory of {} twice", node.name);
  }
  return {};
}

std::string Recount::job_faults() const {
  std::map<JobId, int> indexed;
  for (const Share& share : state_.policy().shares) {
    const WaitingShare& waiting = state_.waiting(share.id);
    for (const auto& [cls, group] : waiting.groups) {
      for (const WaitKey& key : group.jobs) {
        for (std::int32_t n = 0; n < group.span(key); ++n) ++indexed[JobId(key.id.value + n)];
      }
    }
    for (const WaitKey& key : waiting.booked) ++indexed[key.id];
  }
  std::map<JobId, int> live;
  for (const Held& held : holders_) {
    if (held.booking) continue;
    ++live[held.job];
    const auto want =
        static_cast<std::size_t>(state_.job_class(state_.job(held.job).cls).instances);
    if (held.uses.size() != want) {
      return fmt::format("job {} has {} of {} instances (invariant 2)", held.job.value,
                         held.uses.size(), want);
    }
  }
  for (const Job* one : all_jobs(state_)) {
    const Job& job = *one;
    const JobId id = job.id;
    const bool waits = job.state == JobState::kRunnable;
    const int found = indexed.contains(id) ? indexed.at(id) : 0;
    if (found != (waits ? 1 : 0)) {
      return fmt::format("job {} is {} and in {} waiting indexes (invariant 7)", id.value,
                         to_string(job.state), found);
    }
    const int attempts = live.contains(id) ? live.at(id) : 0;
    if (attempts != (is_active(job.state) ? 1 : 0)) {
      return fmt::format("job {} is {} with {} live attempts (invariant 7)", id.value,
                         to_string(job.state), attempts);
    }
    if (state_.find_booking(id) != nullptr && !waits) {
      return fmt::format("job {} is {} and has a booking", id.value, to_string(job.state));
    }
  }
  return {};
}

std::string Recount::ledger_faults() const {
  const Ledger& ledger = state_.ledger();
  for (const Unit& unit : state_.policy().units) {
    for (const Share& share : state_.policy().shares) {
      const EnvId env = env_of(share.id);
      for (const bool after : {false, true}) {
        const View view = after ? View::kAfter : View::kNow;
        const auto differs = [&](const char* what, Amount here, Amount there) {
          return here == there ? std::string()
                               : fmt::format(
                                     "{} of share {}, unit {}, {}: {} counted anew, {} in "
                                     "the ledger",
                                     what, share.def.name, unit.def.name, after ? "after" : "now",
                                     to_string(here), to_string(there));
        };
        for (const std::string& fault :
             {differs("held", held(share.id, unit.id, after), ledger.held(share.id, unit.id, view)),
              differs("not preemptible", held_not_preemptible(share.id, unit.id, after),
                      ledger.held_not_preemptible(share.id, unit.id, view)),
              differs("ceiling", ceiling(share.id, unit.id), ledger.ceiling(share.id, unit.id)),
              differs("free", free(unit.id, env, after), ledger.free(env, unit.id, view)),
              differs("reserved", reserved(unit.id, env, share.id, after),
                      ledger.reserved(env, unit.id, share.id, view)),
              differs("lendable", lendable(unit.id, env, after),
                      ledger.lendable(env, unit.id, view))}) {
          if (!fault.empty()) return fault;
        }
      }
    }
  }
  return {};
}

std::string Recount::faults() const {
  for (const std::string& fault : {device_faults(), job_faults(), ledger_faults()}) {
    if (!fault.empty()) return fault;
  }
  return {};
}

}  // namespace gpuq::property
