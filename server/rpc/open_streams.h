#pragma once
// OpenStreams: the server streams that only their callers would end, so that a stopping server can.
// Thread-safe.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/base/result.h"

namespace gpuq::rpc {

class OpenStreams {
 public:
  using Close = std::function<void(const Error&)>;

  /// `close` may be called once, from any thread; at once when the server is stopping already.
  std::uint64_t add(Close close) {
    std::optional<Error> stopping;
    std::uint64_t id = 0;
    {
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
      id = next_++;
      if (!stopping) streams_.emplace(id, close);
    }
    if (stopping) close(*stopping);
    return id;
  }

  void remove(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    streams_.erase(id);
  }

  void close_all(const Error& why) {
    std::map<std::uint64_t, Close> streams;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = why;
      streams.swap(streams_);
    }
    for (const auto& [id, close] : streams) close(why);
  }

 private:
  std::mutex mutex_;
  std::uint64_t next_ = 1;
  std::optional<Error> stopping_;
  std::map<std::uint64_t, Close> streams_;
};

}  // namespace gpuq::rpc
