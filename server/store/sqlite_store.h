#pragma once
// SqliteStore: the engine's Store on one SQLite file, in a directory that one server holds at a
// time. A commit is one transaction on the store's writer thread, in WAL mode with
// synchronous=FULL: it is on the disk when `done` hears of it. Checkpoints run on a second
// connection, so no commit waits for one, except when the log has outgrown its cap.
//
// A failed commit may still have reached the log file without being part of the database. The
// writer at once overwrites it there, so that a crash cannot bring it back, except when the disk
// refuses that write too; then the first write that works again (probe) does it.
//
// Disk full: the reserve file in the directory is freed when a commit meets a full disk, and made
// again when the server is idle and there is room. What may be written from the freed space is the
// engine's decision.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/engine/ports.h"
#include "server/store/checkpointer.h"

namespace gpuq::store {

struct StoreOptions {
  std::int64_t reserve_bytes = std::int64_t{16} << 20;  ///< 0 = no reserve file.
  bool background_checkpoints = true;                   ///< Off only in tests.
  CheckpointOptions checkpoint;
  std::string vfs;  ///< SQLite VFS to use; empty = the system's. For failure injection.
};

/// Figures for status and metrics.
struct StoreStats {
  std::uint64_t commits = 0;
  std::uint64_t failed_commits = 0;
  std::int64_t log_bytes = 0;  ///< Write-ahead log, at the last checkpoint.
};

class SqliteStore final : public Store {
 public:
  /// Makes `dir` and the database if missing, migrates an older one. `executor` runs all callbacks
  /// and must outlive the store. kFailedPrecondition: another server has the directory, or the
  /// schema is newer than this program; the message says what to do.
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& dir, Executor& executor,
                                                   StoreOptions options = {});
  /// Finishes the commit in flight, whose `done` is still posted.
  ~SqliteStore() override;

  Result<StoredState> load(bool raise_epoch) override;
  void commit(CommitBatch batch, std::function<void(Result<void>)> done) override;
  void probe(std::function<void(Result<void>)> done) override;

  /// Thread-safe.
  [[nodiscard]] StoreStats stats() const;
  /// The database file, for SqliteReader::open().
  [[nodiscard]] std::string database_file() const;

 private:
  class Impl;
  explicit SqliteStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuq::store
