#include "server/rpc/log_hub.h"

#include <utility>
#include <vector>

namespace gpuq::rpc {

void LogHub::attach(const std::string& node, std::shared_ptr<LogLink> link) {
  std::shared_ptr<LogLink> old;
  std::optional<Error> stopping;
  {
    const std::lock_guard lock(mutex_);
    stopping = stopping_;
    if (!stopping) old = std::exchange(links_[node], link);
  }
  if (stopping) return link->close(*stopping);
  if (old == nullptr) return;
  fail_requests(node);
  old->close({ErrorCode::kAborted, "a newer log session of this node took its place"});
}

void LogHub::detach(const std::shared_ptr<LogLink>& link) {
  std::string node;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, known] : links_) {
      if (known == link) node = name;
    }
    if (node.empty()) return;
    links_.erase(node);
  }
  fail_requests(node);
}

void LogHub::fail_requests(const std::string& node) {
  std::vector<std::shared_ptr<Handler>> failed;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = requests_.begin(); it != requests_.end();) {
      if (it->second.node == node) {
        failed.push_back(it->second.handler);
        it = requests_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& handler : failed) (*handler)(nullptr);
}

void LogHub::chunk(const std::shared_ptr<LogLink>& link, const v1::AgentLogChunk& chunk) {
  std::shared_ptr<Handler> handler;
  {
    const std::lock_guard lock(mutex_);
    const auto it = requests_.find(chunk.request_id());
    if (it == requests_.end()) return;
    const auto owner = links_.find(it->second.node);
    if (owner == links_.end() || owner->second != link) return;
    handler = it->second.handler;
    if (chunk.end() || !chunk.error().empty()) requests_.erase(it);
  }
  (*handler)(&chunk);
}

void LogHub::close_all(const Error& why) {
  std::map<std::string, std::shared_ptr<LogLink>> links;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = why;
    links.swap(links_);
  }
  for (const auto& [node, link] : links) {
    fail_requests(node);
    link->close(why);
  }
}

LogHub::RequestId LogHub::read(const std::string& node, v1::AgentLogRead read, Handler handler) {
  std::shared_ptr<LogLink> link;
  RequestId id = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto it = links_.find(node);
    if (it == links_.end()) return 0;
    link = it->second;
    id = next_++;
    requests_[id] = {node, std::make_shared<Handler>(std::move(handler))};
  }
  v1::LogServerMessage message;
  *message.mutable_read() = std::move(read);
  message.mutable_read()->set_request_id(id);
  link->send(std::move(message));
  return id;
}

void LogHub::cancel(RequestId id) {
  std::shared_ptr<LogLink> link;
  {
    const std::lock_guard lock(mutex_);
    const auto it = requests_.find(id);
    if (it == requests_.end()) return;
    const auto owner = links_.find(it->second.node);
    if (owner != links_.end()) link = owner->second;
    requests_.erase(it);
  }
  if (link == nullptr) return;
  v1::LogServerMessage message;
  message.mutable_cancel()->set_request_id(id);
  link->send(std::move(message));
}

}  // namespace gpuq::rpc
