#pragma once
// LogHub: passes reads of live output to the agents' log sessions and the answers back, apart from
// orders and from the core loop. Owner: the server's wiring. Thread-safe; handlers run on the
// thread of the log session and must not block.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "gpuq/v1/agent.pb.h"

namespace gpuq::rpc {

/// The sending side of one agent's log stream. Never blocks.
class LogLink {
 public:
  virtual ~LogLink() = default;
  virtual void send(v1::LogServerMessage message) = 0;
  virtual void close(const Error& why) = 0;
};

class LogHub {
 public:
  using RequestId = std::uint64_t;
  /// Called for every chunk, the last of which has `end` or `error`. When the session goes, with
  /// null: the agent has not said whether there is more.
  using Handler = std::function<void(const v1::AgentLogChunk*)>;

  /// Replaces an older session of the node.
  void attach(const std::string& node, std::shared_ptr<LogLink> link);
  void detach(const std::shared_ptr<LogLink>& link);
  void chunk(const std::shared_ptr<LogLink>& link, const v1::AgentLogChunk& chunk);
  void close_all(const Error& why);

  /// 0 when the node has no log session. `read.request_id` is set here.
  RequestId read(const std::string& node, v1::AgentLogRead read, Handler handler);
  /// No chunk of it is handed on after this returns, except one that is being handed on now.
  void cancel(RequestId id);

 private:
  struct Request {
    std::string node;
    std::shared_ptr<Handler> handler;
  };
  void fail_requests(const std::string& node);

  std::mutex mutex_;
  std::optional<Error> stopping_;  ///< Set by close_all(): a later link is closed at once.
  RequestId next_ = 1;
  std::map<std::string, std::shared_ptr<LogLink>> links_;
  std::map<RequestId, Request> requests_;
};

}  // namespace gpuq::rpc
