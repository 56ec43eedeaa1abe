#pragma once
// The agent's state directory: who it is, what it has seen, and the directories of its instances.
//
//   lock            one agent at a time
//   id              UUID made with the directory
//   seen.json       store id and the highest epoch obeyed
//   attempts/A.I/   instance I of attempt A (agent/shim/records.h)
//   trash/          forgotten instances, until their logs are uploaded and they are removed
//   checkpoints/J/  checkpoint directory of job J where the server names none
//
// One thread.
#include <cstdint>
#include <string>
#include <vector>

#include "agent/types.h"
#include "common/runtime/unique_fd.h"
#include "core/base/result.h"

namespace gpuq::agent {

class StateDir {
 public:
  /// Makes what is missing and takes the lock. FAILED_PRECONDITION if another agent has it.
  static Result<StateDir> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& id() const { return id_; }
  /// Store and highest epoch seen; empty store id if none was.
  [[nodiscard]] const Fence& seen() const { return seen_; }
  /// Durable before it returns.
  Result<void> set_seen(const std::string& store_id, std::uint64_t epoch);

  [[nodiscard]] std::string instance_dir(InstanceKey key) const;
  [[nodiscard]] std::string attempts_dir() const { return path_ + "/attempts"; }
  [[nodiscard]] std::string checkpoint_dir(std::int64_t job_id) const;
  /// Keys of all directories under attempts/, sorted. Other names are left alone.
  [[nodiscard]] std::vector<InstanceKey> instances() const;
  /// Moves an instance's directory to the trash and returns its new path.
  Result<std::string> discard(InstanceKey key);
  /// Paths of the directories in the trash that were instance `key`, of whatever store.
  [[nodiscard]] std::vector<std::string> trash_of(InstanceKey key) const;
  /// Paths of all directories in the trash.
  [[nodiscard]] std::vector<std::string> trash() const;

 private:
  StateDir() = default;
  Result<void> load();

  std::string path_;
  std::string id_;
  Fence seen_;
  UniqueFd lock_;
};

}  // namespace gpuq::agent
