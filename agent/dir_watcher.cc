#include "agent/dir_watcher.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "common/runtime/files.h"

namespace gpuq::agent {

Result<std::unique_ptr<DirWatcher>> DirWatcher::create(EventLoop& loop) {
  UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd.valid()) {
    return errno_error("cannot watch files (see fs.inotify.max_user_instances):", "inotify");
  }
  return std::unique_ptr<DirWatcher>(new DirWatcher(loop, std::move(fd)));
}

DirWatcher::DirWatcher(EventLoop& loop, UniqueFd fd) : loop_(loop), fd_(std::move(fd)) {
  loop_watch_ = loop_.watch_readable(fd_.get(), [this] { on_readable(); });
}

DirWatcher::~DirWatcher() { loop_.unwatch(loop_watch_); }

Result<DirWatcher::WatchId> DirWatcher::watch(const std::string& path, std::uint32_t mask,
                                              Callback callback) {
  const int descriptor = ::inotify_add_watch(fd_.get(), path.c_str(), mask | IN_MASK_ADD);
  if (descriptor < 0) return errno_error("cannot watch (see fs.inotify.max_user_watches)", path);
  const WatchId id = next_++;
  watches_[id] = {descriptor, std::make_shared<Callback>(std::move(callback))};
  return id;
}

void DirWatcher::unwatch(WatchId id) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) return;
  const int descriptor = it->second.descriptor;
  watches_.erase(it);
  const bool shared = std::any_of(watches_.begin(), watches_.end(), [&](const auto& other) {
    return other.second.descriptor == descriptor;
  });
  if (!shared) ::inotify_rm_watch(fd_.get(), descriptor);
}

void DirWatcher::on_readable() {
  alignas(inotify_event) std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
    if (size <= 0) return;
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* name = buffer.data() + at + sizeof(event);
      at += static_cast<ssize_t>(sizeof(event) + event.len);
      deliver(event.wd, event.mask, event.len > 0 ? std::string(name) : std::string());
    }
  }
}

void DirWatcher::deliver(int descriptor, std::uint32_t mask, const std::string& name) {
  // When the kernel has dropped events everybody is called and looks for himself.
  const bool overflow = (mask & IN_Q_OVERFLOW) != 0;
  std::vector<WatchId> concerned;
  for (const auto& [id, watch] : watches_) {
    if (overflow || watch.descriptor == descriptor) concerned.push_back(id);
  }
  for (const WatchId id : concerned) {
    const auto it = watches_.find(id);  // an earlier callback may have unwatched it
    if (it == watches_.end()) continue;
    const auto callback = it->second.callback;  // may unwatch itself
    (*callback)(mask, name);
  }
}

}  // namespace gpuq::agent
