#pragma once
// The difference of two whole policies, one line a change.
#include <string>
#include <vector>

#include "core/model/policy.h"

namespace gpuq {

/// "queue training: created", "share training/a: cap a100 8 -> 4", ... Both documents name every
/// kind; objects are paired by name. Order: deletions last, else that of `after`.
std::vector<std::string> policy_diff(const PolicyDoc& before, const PolicyDoc& after);

}  // namespace gpuq
