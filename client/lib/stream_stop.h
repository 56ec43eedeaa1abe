#pragma once
// A way to end a streaming call from another thread, before or while it runs.
#include <condition_variable>
#include <mutex>

#include "core/base/time.h"

namespace grpc {
class ClientContext;
}

namespace gpuq::client {

/// Owned by the caller, outlives the call that it is given to; one call at a time. Any thread.
class StreamStop {
 public:
  StreamStop() = default;
  StreamStop(const StreamStop&) = delete;
  StreamStop& operator=(const StreamStop&) = delete;

  /// The call given this object ends soon, as do later ones. Repeating it is harmless.
  void stop();
  [[nodiscard]] bool stopped() const;
  /// Waits for stop(), at most `limit`; true if it came.
  bool wait(Duration limit) const;

 private:
  friend class StreamScope;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  grpc::ClientContext* context_ = nullptr;
  bool stopped_ = false;
};

/// Ties a running call to a StreamStop. Used by the client library only.
class StreamScope {
 public:
  StreamScope(StreamStop* stop, grpc::ClientContext* context);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  StreamStop* stop_;
};

}  // namespace gpuq::client
