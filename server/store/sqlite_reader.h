#pragma once
// SqliteReader: HistoryReader on read-only connections to the store's file, a small pool of them,
// so that reads wait neither for commits nor for each other. Thread-safe. Open it after the store;
// it may be closed before or after it.
#include <memory>
#include <string>

#include "server/store/history_reader.h"

namespace gpuq::store {

class SqliteReader final : public HistoryReader {
 public:
  /// `connections`: reads that run at once, >= 1; more wait. `database_file`: see SqliteStore.
  static Result<std::unique_ptr<SqliteReader>> open(const std::string& database_file,
                                                    int connections = 2);
  ~SqliteReader() override;

  Result<std::string> spec(JobId job) override;
  Result<ArchivedJob> archived_job(JobId job) override;
  Result<std::vector<ArchivedJob>> archived_jobs(const ArchiveQuery& query) override;
  Result<HistoryNames> names() override;
  Result<EventPage> events(const EventQuery& query) override;
  Result<EventId> first_event() override;
  Result<EventId> last_event_before(Time time) override;

 private:
  class Pool;
  explicit SqliteReader(std::unique_ptr<Pool> pool);
  std::unique_ptr<Pool> pool_;
};

}  // namespace gpuq::store
