#include "server/history_adapter.h"

#include <utility>

namespace gpuq {

namespace {

rpc::ArchivedJob convert(store::ArchivedJob&& job) {
  return {std::move(job.job),        std::move(job.cls),   std::move(job.queue_name),
          std::move(job.share_name), std::move(job.array), std::move(job.attempts),
          std::move(job.preemptions)};
}

}  // namespace

Result<rpc::ArchivedJob> StoreHistory::archived(JobId job) {
  auto found = reader_.archived_job(job);
  if (!found) return found.error();
  return convert(std::move(*found));
}

Result<std::vector<rpc::ArchivedJob>> StoreHistory::archived_page(
    const rpc::ArchiveFilter& filter) {
  store::ArchiveQuery query;
  query.user = filter.user;
  query.queue_name = filter.queue;
  query.share_name = filter.share;
  query.name_glob = filter.name_glob;
  query.states = filter.states;
  query.jobs = filter.jobs;
  query.members = filter.members;
  query.first = filter.first;
  query.last = filter.last;
  query.order =
      filter.newest_first ? store::HistoryOrder::kNewestFirst : store::HistoryOrder::kOldestFirst;
  query.limit = filter.limit;
  auto found = reader_.archived_jobs(query);
  if (!found) return found.error();
  std::vector<rpc::ArchivedJob> jobs;
  jobs.reserve(found->size());
  for (store::ArchivedJob& job : *found) jobs.push_back(convert(std::move(job)));
  return jobs;
}

Result<rpc::ArchiveNames> StoreHistory::names() {
  auto found = reader_.names();
  if (!found) return found.error();
  return rpc::ArchiveNames{std::move(found->units), std::move(found->nodes)};
}

Result<rpc::PastEvents> StoreHistory::events_after(EventId after, std::int32_t limit) {
  store::EventQuery query;
  query.after = after;
  query.limit = limit;
  auto page = reader_.events(query);
  if (!page) return page.error();
  return rpc::PastEvents{std::move(page->events), page->last, page->more};
}

}  // namespace gpuq
