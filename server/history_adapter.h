#pragma once
// StoreHistory: the store's reader behind the port that the calls read history through.
#include "server/rpc/history.h"
#include "server/store/history_reader.h"

namespace gpuq {

/// `reader` must outlive it. Thread-safe as the reader is.
class StoreHistory final : public rpc::History {
 public:
  explicit StoreHistory(store::HistoryReader& reader) : reader_(reader) {}

  Result<std::string> spec(JobId job) override { return reader_.spec(job); }
  Result<rpc::ArchivedJob> archived(JobId job) override;
  Result<std::vector<rpc::ArchivedJob>> archived_page(const rpc::ArchiveFilter& filter) override;
  Result<rpc::ArchiveNames> names() override;
  Result<rpc::PastEvents> events_after(EventId after, std::int32_t limit) override;
  Result<EventId> first_event() override { return reader_.first_event(); }

 private:
  store::HistoryReader& reader_;
};

}  // namespace gpuq
