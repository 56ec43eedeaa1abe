#include "server/rpc/watch_hub.h"

#include <utility>

#include "common/runtime/log.h"
#include "server/rpc/convert_event.h"

namespace gpuq::rpc {

WatchHub::Id WatchHub::add(WatchFilter filter, Handler handler) {
  const Id id = next_++;
  if (filter.jobs.empty()) broad_.insert(id);
  for (const JobId job : filter.jobs) by_job_[job].insert(id);
  watchers_.emplace(id, Watcher{std::move(filter), std::move(handler)});
  return id;
}

void WatchHub::remove(Id id) {
  const auto it = watchers_.find(id);
  if (it == watchers_.end()) return;
  broad_.erase(id);
  for (const JobId job : it->second.filter.jobs) {
    const auto entry = by_job_.find(job);
    entry->second.erase(id);
    if (entry->second.empty()) by_job_.erase(entry);
  }
  watchers_.erase(it);
}

bool WatchHub::matches(const State& state, const WatchFilter& filter, const Event& event) {
  if (!filter.jobs.empty() && !filter.jobs.contains(event.job)) return false;
  if (!filter.queue.empty()) {
    const Queue* queue = state.policy().queue(event.queue);
    if (queue == nullptr || queue->def.name != filter.queue) return false;
  }
  if (!filter.share.empty()) {
    const Share* share = state.policy().share(event.share);
    if (share == nullptr || share->def.name != filter.share) return false;
  }
  return true;
}

std::shared_ptr<const v1::WatchResponse> WatchHub::message(const State& state, const Event& event) {
  auto message = std::make_shared<v1::WatchResponse>();
  if (!fill_event(state, event, *message->mutable_event())) return nullptr;
  message->set_resume_token(resume_token(state.identity().store_id, event.id));
  return message;
}

void WatchHub::deliver(const State& state, const Event& event) {
  std::vector<Id> ids(broad_.begin(), broad_.end());
  if (event.job.valid()) {
    const auto it = by_job_.find(event.job);
    if (it != by_job_.end()) ids.insert(ids.end(), it->second.begin(), it->second.end());
  }
  deliver_to(ids, state, event);
  tell_dropped(state, event);
}

// Members that end with their array before they had a record have no event of their own: whoever
// follows one of them is told by the array's.
void WatchHub::tell_dropped(const State& state, const Event& event) {
  const JobArray* array = state.find_array(event.job);
  if (array == nullptr || !array->dropped()) return;
  std::map<JobId, std::vector<Id>> told;
  for (const auto& [id, watcher] : watchers_) {
    auto job = watcher.filter.jobs.lower_bound(array->member(array->made));
    for (; job != watcher.filter.jobs.end() && array->has_member(*job); ++job) {
      told[*job].push_back(id);
    }
  }
  for (const auto& [job, ids] : told) {
    Event ended = event;
    ended.type = EventType::kJobFailed;
    ended.job = job;
    ended.attempt = AttemptId();
    ended.job_state = JobState::kFailed;
    deliver_to(ids, state, ended);
  }
}

void WatchHub::deliver_to(const std::vector<Id>& ids, const State& state, const Event& event) {
  std::shared_ptr<const v1::WatchResponse> shown;
  bool made = false;
  for (const Id id : ids) {
    const auto it = watchers_.find(id);
    if (it == watchers_.end() || !matches(state, it->second.filter, event)) continue;
    if (!std::exchange(made, true)) shown = message(state, event);
    // The handler may remove itself or others: it runs on a copy.
    const Handler handler = it->second.handler;
    if (!handler(event, shown)) remove(id);
  }
}

void WatchHub::on_read_only(const Error& why) { log_error("{}", why.message); }

void WatchHub::on_writable() { log_info("the store can be written again"); }

void WatchHub::on_committed(const std::vector<Event>& events) {
  if (watchers_.empty()) return;
  const State& state = state_();
  for (const Event& event : events) deliver(state, event);
}

}  // namespace gpuq::rpc
