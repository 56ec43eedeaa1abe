#pragma once
// The part of the policy check that needs nothing but the document: names, ranges, references,
// Q8. Used by Apply and by everything that reads policies from files.
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/policy.h"

namespace gpuq {

/// Labels whose key starts so are gpuq's own.
inline constexpr const char* kReservedLabelPrefix = "gpuq/";

/// Limit of readers of files: a server may allow more than its defaults, and checks that itself.
inline constexpr std::int32_t kNoLimit = 1'000'000;

/// Checks a document that names every kind (an absent kind counts as empty). All errors and
/// warnings at once, in document order, with paths into `doc`. `max_shares` per queue and
/// `max_units` per share, both >= 1.
std::vector<PolicyIssue> check_policy(const PolicyDoc& doc, std::int32_t max_shares,
                                      std::int32_t max_units);

/// Whether `name` is a reason as listings show it, e.g. "MISCONFIGURATION:NO_NODE_FITS".
bool is_known_reason(const std::string& name);

}  // namespace gpuq
