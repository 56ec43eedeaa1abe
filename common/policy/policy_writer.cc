// A policy document as YAML, in the shape that administrators write by hand.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "common/policy/policy_file.h"
#include "common/policy/units.h"

namespace gpuq {

namespace {

/// Needs no quotes: no YAML reader takes it for anything but this text.
bool is_plain_word(std::string_view text) {
  constexpr std::array<std::string_view, 8> kOther{"null", "true", "false", "yes",
                                                   "no",   "on",   "off",   "y"};
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto inner = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '/';
  };
  if (text.size() < 2 || !letter(text.front()) || !std::ranges::all_of(text, inner)) return false;
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return std::ranges::find(kOther, lower) == kOther.end();
}

class PolicyWriter {
 public:
  std::string write(const PolicyDoc& doc) {
    out_.SetIndent(2);
    out_ << YAML::BeginMap;
    list("capacity_units", doc.units, &PolicyWriter::unit);
    list("service_environments", doc.environments, &PolicyWriter::environment);
    list("scheduling_policies", doc.policies, &PolicyWriter::policy);
    list("job_queues", doc.queues, &PolicyWriter::queue);
    out_ << YAML::EndMap;
    return std::string(out_.c_str()) + "\n";
  }

 private:
  template <typename Def>
  void list(const char* key, const std::optional<std::vector<Def>>& defs,
            void (PolicyWriter::*write_one)(const Def&)) {
    if (!defs) return;
    out_ << YAML::Key << key << YAML::Value;
    if (defs->empty()) out_ << YAML::Flow;
    out_ << YAML::BeginSeq;
    for (const Def& def : *defs) {
      out_ << YAML::BeginMap;
      text("name", def.name);
      (this->*write_one)(def);
      out_ << YAML::EndMap;
    }
    out_ << YAML::EndSeq;
  }

  void unit(const UnitDef& def) {
    if (!def.gpu_model.empty()) text("gpu_model", def.gpu_model);
    if (def.gpus != 0) number("gpus", def.gpus);
    if (def.cpus != 0) number("cpus", def.cpus);
    if (def.memory_mib != 0) text("memory", format_memory(def.memory_mib));
  }

  void environment(const EnvDef& def) {
    if (!def.node_labels.empty()) {
      out_ << YAML::Key << "nodes" << YAML::Value << YAML::Flow << YAML::BeginMap;
      for (const auto& [key, value] : def.node_labels) {
        scalar(key, YAML::Key);
        scalar(value, YAML::Value);
      }
      out_ << YAML::EndMap;
    }
    limits(def.capacity_limits);
    state(def.enabled);
  }

  void policy(const SchedulingPolicyDef& def) {
    out_ << YAML::Key << "quota_share" << YAML::Value << YAML::Flow << YAML::BeginMap;
    text("idle_resource_assignment", to_string(def.idle_order));
    if (def.half_life != kDefaultHalfLife) text("half_life", format_duration(def.half_life));
    out_ << YAML::EndMap;
  }

  void queue(const QueueDef& def) {
    if (def.priority != 0) number("priority", def.priority);
    state(def.enabled);
    out_ << YAML::Key << "service_environments" << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const std::string& name : def.service_environments) scalar(name, YAML::Value);
    out_ << YAML::EndSeq;
    text("scheduling_policy", def.scheduling_policy);
    if (!def.time_limit_actions.empty()) time_limits(def.time_limit_actions);
    list("quota_shares", std::optional(def.shares), &PolicyWriter::share);
  }

  void time_limits(const std::vector<TimeLimitAction>& actions) {
    out_ << YAML::Key << "time_limit_actions" << YAML::Value << YAML::BeginSeq;
    for (const TimeLimitAction& action : actions) {
      out_ << YAML::Flow << YAML::BeginMap;
      text("reason", action.reason);
      text("max_time", format_duration(action.max_time));
      text("action", "TERMINATE");
      out_ << YAML::EndMap;
    }
    out_ << YAML::EndSeq;
  }

  void share(const ShareDef& def) {
    limits(def.capacity_limits);
    out_ << YAML::Key << "resource_sharing" << YAML::Value << YAML::Flow << YAML::BeginMap;
    text("strategy", to_string(def.strategy));
    if (def.strategy == SharingStrategy::kLendAndBorrow) number("borrow_limit", def.borrow_limit);
    out_ << YAML::EndMap;
    out_ << YAML::Key << "preemption" << YAML::Value << YAML::Flow << YAML::BeginMap;
    text("in_share", def.in_share_preemption ? "ENABLED" : "DISABLED");
    if (def.min_runtime != Duration(0)) text("min_runtime", format_duration(def.min_runtime));
    if (def.grace) text("grace", format_duration(*def.grace));
    out_ << YAML::EndMap;
    if (def.head_wait_limit) text("head_wait_limit", format_duration(*def.head_wait_limit));
    if (def.user_order != UserOrder::kFifo) text("user_order", to_string(def.user_order));
    state(def.enabled);
  }

  void limits(const std::vector<CapacityLimit>& limits) {
    out_ << YAML::Key << "capacity_limits" << YAML::Value << YAML::Flow << YAML::BeginMap;
    for (const CapacityLimit& limit : limits) {
      scalar(limit.unit, YAML::Key);
      out_ << YAML::Value << to_string(limit.max_capacity);
    }
    out_ << YAML::EndMap;
  }

  void state(bool enabled) {
    if (!enabled) text("state", "DISABLED");
  }

  void text(const char* key, const std::string& value) {
    out_ << YAML::Key << key;
    scalar(value, YAML::Value);
  }

  void number(const char* key, std::int64_t value) {
    out_ << YAML::Key << key << YAML::Value << value;
  }

  void scalar(const std::string& value, YAML::EMITTER_MANIP place) {
    out_ << place;
    if (!is_plain_word(value)) out_ << YAML::DoubleQuoted;
    out_ << value;
  }

  YAML::Emitter out_;
};

}  // namespace

std::string to_yaml(const PolicyDoc& doc) { return PolicyWriter().write(doc); }

}  // namespace gpuq
