#pragma once
// One instance on this node, as its directory tells: derives the state from the records, writes the
// agent's orders, and wakes the supervisor. Does not watch and does not report; Instances does.
// Loop thread only.
#include <cstdint>
#include <optional>
#include <string>

#include "agent/journal.h"
#include "agent/shim/records.h"
#include "agent/types.h"
#include "common/runtime/unique_fd.h"
#include "core/base/result.h"

namespace gpuq::agent {

class Instance {
 public:
  Instance(std::string dir, JournalEntry entry);

  /// The state as of the last refresh(); `ran_for_ms` as of now.
  [[nodiscard]] InstanceStatus status() const;
  [[nodiscard]] InstanceState state() const { return status_.state; }
  [[nodiscard]] const StartOrder& order() const { return entry_.order; }
  [[nodiscard]] const std::string& dir() const { return dir_; }
  /// Written in an earlier boot: none of its processes can be alive.
  [[nodiscard]] bool of_other_boot() const;
  /// Whether a living supervisor holds the lock.
  [[nodiscard]] bool supervised() const;
  /// Whether the command may have been executed.
  [[nodiscard]] bool may_have_run() const { return run_.has_value(); }
  [[nodiscard]] bool stop_ordered() const { return stop_.has_value(); }

  /// Reads the records anew. True if the state or the stop has changed.
  bool refresh();

  /// Executes `shim_path` for this directory, with the lock handed over. Returns a pidfd of the
  /// short-lived first process, to be waited for.
  Result<UniqueFd> launch(const std::string& shim_path);
  /// Opens the gang barrier.
  Result<void> go();
  /// Orders a stop, durably. A repeat can only bring the deadline nearer.
  Result<void> stop(StopReason reason, std::int64_t grace_ms);

  /// The supervisor is gone without exit.json: sends SIGKILL to what is left of the instance. True
  /// if nothing is.
  bool kill_leftovers();
  /// Writes the exit.json that the supervisor could not write.
  Result<void> end_without_supervisor(const std::string& why);

 private:
  void wake();
  void apply(const shim::ExitRecord& record);

  std::string dir_;
  JournalEntry entry_;
  InstanceStatus status_;
  std::optional<shim::RunRecord> run_;
  std::optional<shim::RunningRecord> running_;
  std::optional<shim::StopRecord> stop_;
  bool go_ = false;
};

}  // namespace gpuq::agent
