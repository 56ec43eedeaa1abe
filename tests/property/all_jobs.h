#pragma once
// The jobs of a state one by one: members of arrays also where they have no record, and no array
// beside its members.
#include <cstdint>
#include <vector>

#include "core/state/state.h"

namespace gpuq::property {

/// Ascending; good until the next event.
inline std::vector<const Job*> all_jobs(const State& state) {
  std::vector<const Job*> jobs;
  for (const auto& [id, job] : state.jobs()) {
    const JobArray* array = state.find_array(id);
    if (array == nullptr) jobs.push_back(&job);
    for (std::int32_t k = 0; array != nullptr && k < array->size(); ++k) {
      if (k >= array->made) jobs.push_back(state.find_job(array->member(k)));
    }
  }
  return jobs;
}

}  // namespace gpuq::property
