#pragma once
// start.json: an order together with what the supervisor needs to carry it out.
#include <string>

#include "agent/shim/records.h"
#include "agent/types.h"
#include "core/base/result.h"

namespace gpuq::agent {

struct JournalEntry {
  StartOrder order;
  std::string boot_id;  ///< Boot during which it was written.
  std::string tag;      ///< Value of the variable that marks the instance's processes.
  std::int64_t received_wall_ms = 0;
};

/// Durable before it returns. `dir` must be new. A crash meanwhile may leave an unreadable file.
Result<void> write_journal(const std::string& dir, const JournalEntry& entry,
                           const shim::LaunchSpec& launch);
/// NOT_FOUND or DATA_LOSS.
Result<JournalEntry> read_journal(const std::string& dir);

}  // namespace gpuq::agent
