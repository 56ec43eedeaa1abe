#include "core/model/plan.h"

#include <fmt/format.h>

#include <cstring>

namespace gpuq {

namespace {

const char* kind_name(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kStart:
      return "start";
    case DecisionKind::kBook:
      return "book";
    case DecisionKind::kVoidBooking:
      return "void";
    case DecisionKind::kShrinkBooking:
      return "shrink";
  }
  return "?";
}

std::string uses_text(const std::vector<InstanceUse>& uses) {
  std::string text;
  for (const InstanceUse& use : uses) {
    text += fmt::format(" n{}[", use.node.value);
    for (const DeviceUse& device : use.devices) {
      text += fmt::format("{}:{}", device.device, device.milli);
      if (device.awaits.valid()) text += fmt::format("<{}", device.awaits.value);
      text += ' ';
    }
    text += fmt::format("c{} m{}]", use.cpus, use.memory_mib);
  }
  return text;
}

}  // namespace

bool Decision::operator==(const Decision& other) const {
  return kind == other.kind && job == other.job && share == other.share && unit == other.unit &&
         demand == other.demand && borrows == other.borrows && std::strcmp(rule, other.rule) == 0 &&
         numbers == other.numbers && uses == other.uses && evictions == other.evictions &&
         awaits == other.awaits && handed_to == other.handed_to;
}

std::string to_text(const Plan& plan) {
  std::string text;
  for (const Decision& d : plan.decisions) {
    text += fmt::format("{} job {} share {} unit {} demand {} rule {} borrows {} held {} free {}",
                        kind_name(d.kind), d.job.value, d.share.value, d.unit.value,
                        to_string(d.demand), d.rule, d.borrows, to_string(d.numbers.held),
                        to_string(d.numbers.free));
    text += uses_text(d.uses);
    for (const Eviction& e : d.evictions) {
      text +=
          fmt::format(" evict {} of job {} by {}", e.attempt.value, e.job.value, to_string(e.rule));
    }
    for (const AttemptId a : d.awaits) text += fmt::format(" awaits {}", a.value);
    if (d.handed_to.valid()) text += fmt::format(" to {}", d.handed_to.value);
    text += '\n';
  }
  for (const GroupReason& g : plan.reasons) {
    text += fmt::format("share {} class {}{}{}: {}\n", g.share.value, g.group.cls.value,
                        g.group.user.empty() ? "" : " of ", g.group.user, to_string(g.reason.code));
  }
  return text;
}

}  // namespace gpuq
