#pragma once
// Tells the loop what happens in directories and to files (inotify), so that nobody polls.
// Owner: the agent's main; loop thread only; must not outlive the loop.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/runtime/event_loop.h"
#include "common/runtime/unique_fd.h"
#include "core/base/result.h"

namespace gpuq::agent {

class DirWatcher {
 public:
  using WatchId = int;
  /// `mask`: IN_* of what happened; `name`: the file in the directory, empty for the watched path
  /// itself.
  using Callback = std::function<void(std::uint32_t mask, const std::string& name)>;

  static Result<std::unique_ptr<DirWatcher>> create(EventLoop& loop);
  ~DirWatcher();
  DirWatcher(const DirWatcher&) = delete;
  DirWatcher& operator=(const DirWatcher&) = delete;

  /// Events from now on; read what is there already after this call. Any number of watches per
  /// path.
  Result<WatchId> watch(const std::string& path, std::uint32_t mask, Callback callback);
  /// The callback is not called any more.
  void unwatch(WatchId id);

 private:
  DirWatcher(EventLoop& loop, UniqueFd fd);
  void on_readable();
  void deliver(int descriptor, std::uint32_t mask, const std::string& name);

  struct Watch {
    int descriptor;  // the kernel's, one per inode
    std::shared_ptr<Callback> callback;
  };

  EventLoop& loop_;
  UniqueFd fd_;
  EventLoop::WatchId loop_watch_ = 0;
  std::map<WatchId, Watch> watches_;
  WatchId next_ = 1;
};

}  // namespace gpuq::agent
