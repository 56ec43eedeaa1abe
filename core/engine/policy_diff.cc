#include "core/engine/policy_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/model/policy_document.h"

namespace gpuq {

namespace {

std::string show(std::int64_t value) { return fmt::format("{}", value); }
std::string show(std::int32_t value) { return fmt::format("{}", value); }
std::string show(const std::string& text) { return text.empty() ? "none" : text; }
std::string show(SharingStrategy strategy) { return to_string(strategy); }
std::string show(bool enabled) { return enabled ? "ENABLED" : "DISABLED"; }
std::string show(Duration duration) {
  return duration.count() % 1000 == 0 ? fmt::format("{}s", duration.count() / 1000)
                                      : fmt::format("{}ms", duration.count());
}
std::string show(const std::optional<Duration>& duration) {
  return duration ? show(*duration) : "default";
}
std::string show(const std::vector<std::string>& names) {
  return fmt::format("[{}]", fmt::join(names, ", "));
}
std::string show(const std::map<std::string, std::string>& labels) {
  if (labels.empty()) return "every node";
  std::string text;
  for (const auto& [key, value] : labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  }
  return text;
}
std::string show(const std::vector<TimeLimitAction>& actions) {
  std::vector<std::string> texts;
  for (const TimeLimitAction& action : actions) {
    texts.push_back(fmt::format("{} after {}", action.reason, show(action.max_time)));
  }
  return show(texts);
}

class Differ {
 public:
  std::vector<std::string> run(const PolicyDoc& before, const PolicyDoc& after) {
    kind("unit", *before.units, *after.units, &Differ::unit);
    kind("environment", *before.environments, *after.environments, &Differ::environment);
    kind("policy", *before.policies, *after.policies, &Differ::policy);
    kind("queue", *before.queues, *after.queues, &Differ::queue);
    lines_.insert(lines_.end(), deleted_.begin(), deleted_.end());
    return std::move(lines_);
  }

 private:
  template <typename Def>
  void kind(const std::string& word, const std::vector<Def>& before, const std::vector<Def>& after,
            void (Differ::*changed)(const Def&, const Def&)) {
    const std::string outer = object_;
    for (const Def& def : after) {
      object_ = name_of(word, outer, def.name);
      const Def* old = find_named(before, def.name);
      if (old == nullptr) lines_.push_back(object_ + ": created");
      if (old != nullptr) (this->*changed)(*old, def);
      if (old == nullptr) created(def);
    }
    for (const Def& def : before) {
      if (find_named(after, def.name) != nullptr) continue;
      deleted_.push_back(name_of(word, outer, def.name) + ": deleted");
    }
    object_ = outer;
  }

  /// Shares are named within their queue: "share training/a".
  static std::string name_of(const std::string& word, const std::string& outer,
                             const std::string& name) {
    const std::size_t space = outer.find(' ');
    if (space == std::string::npos) return word + " " + name;
    return word + " " + outer.substr(space + 1) + "/" + name;
  }

  template <typename Def>
  void created(const Def&) {}
  void created(const QueueDef& queue) { kind("share", {}, queue.shares, &Differ::share); }

  void unit(const UnitDef& a, const UnitDef& b) {
    field("gpu_model", a.gpu_model, b.gpu_model);
    field("gpus", a.gpus, b.gpus);
    field("cpus", a.cpus, b.cpus);
    field("memory_mib", a.memory_mib, b.memory_mib);
  }

  void environment(const EnvDef& a, const EnvDef& b) {
    field("nodes", a.node_labels, b.node_labels);
    limits("limit", a.capacity_limits, b.capacity_limits);
    field("state", a.enabled, b.enabled);
  }

  void policy(const SchedulingPolicyDef& a, const SchedulingPolicyDef& b) {
    field("kind", std::string(to_string(a.kind)), std::string(to_string(b.kind)));
    field("idle_resource_assignment", std::string(to_string(a.idle_order)),
          std::string(to_string(b.idle_order)));
    field("half_life", a.half_life, b.half_life);
  }

  void queue(const QueueDef& a, const QueueDef& b) {
    field("priority", a.priority, b.priority);
    field("service_environments", a.service_environments, b.service_environments);
    field("scheduling_policy", a.scheduling_policy, b.scheduling_policy);
    field("time_limit_actions", a.time_limit_actions, b.time_limit_actions);
    field("state", a.enabled, b.enabled);
    kind("share", a.shares, b.shares, &Differ::share);
  }

  void share(const ShareDef& a, const ShareDef& b) {
    limits("cap", a.capacity_limits, b.capacity_limits);
    field("strategy", a.strategy, b.strategy);
    field("borrow_limit", a.borrow_limit, b.borrow_limit);
    field("in_share_preemption", a.in_share_preemption, b.in_share_preemption);
    field("min_runtime", a.min_runtime, b.min_runtime);
    field("grace", a.grace, b.grace);
    field("head_wait_limit", a.head_wait_limit, b.head_wait_limit);
    field("user_order", std::string(to_string(a.user_order)), std::string(to_string(b.user_order)));
    field("state", a.enabled, b.enabled);
  }

  template <typename T>
  void field(const char* name, const T& a, const T& b) {
    if (!(a == b))
      lines_.push_back(fmt::format("{}: {} {} -> {}", object_, name, show(a), show(b)));
  }

  void limits(const char* name, const std::vector<CapacityLimit>& a,
              const std::vector<CapacityLimit>& b) {
    const std::size_t before = lines_.size();
    const auto amount = [](const std::vector<CapacityLimit>& limits, const std::string& unit) {
      const auto it = std::ranges::find(limits, unit, &CapacityLimit::unit);
      return it != limits.end() ? to_string(it->max_capacity) : "none";
    };
    const auto line = [&](const std::string& unit) {
      const std::string old = amount(a, unit);
      const std::string now = amount(b, unit);
      if (old != now) {
        lines_.push_back(fmt::format("{}: {} {} {} -> {}", object_, name, unit, old, now));
      }
    };
    for (const CapacityLimit& limit : b) line(limit.unit);
    for (const CapacityLimit& limit : a) {
      if (amount(b, limit.unit) == "none") line(limit.unit);
    }
    if (lines_.size() == before && a != b) {
      lines_.push_back(fmt::format("{}: order of {}s changed", object_, name));
    }
  }

  std::string object_;  ///< "queue training", that lines are about.
  std::vector<std::string> lines_;
  std::vector<std::string> deleted_;
};

}  // namespace

std::vector<std::string> policy_diff(const PolicyDoc& before, const PolicyDoc& after) {
  return Differ().run(before, after);
}

}  // namespace gpuq
