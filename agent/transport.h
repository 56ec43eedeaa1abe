#pragma once
// The connection to the server as the session sees it: ordered messages both ways, lost at any
// time. The real one is grpc_transport.h; tests use their own.
#include <functional>
#include <string>

#include "agent/types.h"

namespace gpuq::agent {

class Transport {
 public:
  struct Handler {
    std::function<void(const FromServer&)> on_message;
    /// Once per open(), after which nothing comes until the next open(). Not called for close().
    std::function<void(const std::string& reason)> on_closed;
  };

  virtual ~Transport() = default;
  /// Starts to connect; messages may be sent at once. The handler runs on the loop's thread, never
  /// inside a call. Only after close() or on_closed.
  virtual void open(Handler handler) = 0;
  /// Queues a message; dropped silently once the connection is lost.
  virtual void send(const ToServer& message) = 0;
  /// Gives the connection up. No handler is called any more.
  virtual void close() = 0;
};

}  // namespace gpuq::agent
