#pragma once
// What a store holds against what an engine has in memory.
#include <fmt/format.h>

#include <string>

#include "core/model/rows.h"

namespace gpuq::sim_test {

template <typename T>
std::string difference(const char* what, const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size())
    return fmt::format("{} {} against {} {}", a.size(), what, b.size(), what);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] == b[i])) return fmt::format("{}[{}] differs", what, i);
  }
  return {};
}

/// The first difference between two stored states, empty when there is none.
inline std::string difference(const StoredState& a, const StoredState& b) {
  if (!(a.identity == b.identity)) return "the identities differ";
  if (a.last_time != b.last_time) return "the times differ";
  if (!(a.counters == b.counters)) return "the counters differ";
  if (!(a.policy == b.policy)) return "the policies differ";
  if (a.classes.size() != b.classes.size()) return "the numbers of classes differ";
  for (std::size_t i = 0; i < a.classes.size(); ++i) {
    const bool same = a.classes[i].id == b.classes[i].id && a.classes[i].same_as(b.classes[i]);
    if (!same) return fmt::format("class {} differs", a.classes[i].id.value);
  }
  for (const std::string& found :
       {difference("nodes", a.nodes, b.nodes), difference("jobs", a.jobs, b.jobs),
        difference("arrays", a.arrays, b.arrays), difference("attempts", a.attempts, b.attempts),
        difference("bookings", a.bookings, b.bookings),
        difference("preemptions", a.preemptions, b.preemptions),
        difference("tokens", a.tokens, b.tokens), difference("usage", a.usage, b.usage)}) {
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace gpuq::sim_test
