#pragma once
// Values as people write them, beyond common/policy/units.h. Errors are sentences with the value.
#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"

namespace gpuq::cli {

/// As Slurm reads a time limit: "90" is minutes, "10:30" minutes and seconds, "2-12" days and
/// hours.
Result<Duration> parse_slurm_time(const std::string& text);

/// "8", "0.25": milli-units, at most three decimals, more than 0 and at most 1,000,000 units; above
/// one only whole ones.
Result<std::int64_t> parse_milli(const std::string& text);

/// A whole number in [min, max]. `what` names it in the error.
Result<std::int64_t> parse_integer(const std::string& what, const std::string& text,
                                   std::int64_t min, std::int64_t max);

/// Whether `text` is well-formed UTF-8 without NUL characters.
bool is_text(const std::string& text);

/// `*` and `?` as in file names.
bool glob_match(const std::string& pattern, const std::string& text);

}  // namespace gpuq::cli
