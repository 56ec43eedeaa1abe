#include "agent/log_reader.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/shim/records.h"
#include "common/runtime/files.h"

namespace gpuq::agent {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024;

std::int64_t file_size(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? info.st_size : 0;
}

}  // namespace

std::int64_t skip_hole(int fd, std::int64_t offset) {
  const std::int64_t size = file_size(fd);
  if (offset >= size) return offset;
  const off_t data = ::lseek(fd, offset, SEEK_DATA);
  if (data >= 0) return data;
  return errno == ENXIO ? size : offset;
}

struct LogReader::Request {
  LogRead what;
  UniqueFd fd;
  std::int64_t offset = 0;
  std::int64_t left = 0;  // -1 = no limit
  bool waiting = false;   // for the file to grow
  DirWatcher* watcher = nullptr;
  DirWatcher::WatchId watch = -1;

  ~Request() {
    if (watch >= 0) watcher->unwatch(watch);
  }
};

LogReader::LogReader(DirWatcher& watcher, const Instances& instances, Sink sink)
    : watcher_(watcher), instances_(instances), sink_(std::move(sink)) {}

LogReader::~LogReader() = default;

bool LogReader::ended(InstanceKey key) const {
  const Instance* instance = instances_.find(key);
  return instance == nullptr || is_final(instance->state());
}

void LogReader::read(const LogRead& what) {
  auto request = std::make_shared<Request>();
  request->what = what;
  request->left = what.max_bytes > 0 ? what.max_bytes : -1;
  request->watcher = &watcher_;
  const Instance* instance = instances_.find(what.instance);
  const std::string dir =
      instance != nullptr ? instance->dir() : instances_.forgotten_dir(what.instance);
  if (!dir.empty()) {
    const std::string path =
        dir + "/" + (what.stderr_stream ? shim::kStderrFile : shim::kStdoutFile);
    // Made here if the supervisor has not come to it yet: a follower may be earlier than the start.
    const int create = instance != nullptr ? O_CREAT : 0;
    request->fd.reset(::open(path.c_str(), O_RDONLY | create | O_CLOEXEC, 0600));
    if (instance != nullptr && what.follow && request->fd.valid()) {
      const std::weak_ptr<Request> weak = request;
      auto watch = watcher_.watch(path, IN_MODIFY, [this, weak](std::uint32_t, const std::string&) {
        if (auto self = weak.lock()) self->waiting = false;
        pump();
      });
      if (watch) request->watch = *watch;
    }
  }
  if (request->fd.valid()) {
    const std::int64_t size = file_size(request->fd.get());
    request->offset =
        what.offset >= 0 ? what.offset : std::max<std::int64_t>(0, size + what.offset);
  }
  requests_.push_back(std::move(request));
  pump();
}

void LogReader::cancel(std::uint64_t request_id) {
  requests_.remove_if([request_id](const auto& r) { return r->what.request_id == request_id; });
}

void LogReader::on_sent() {
  sink_busy_ = false;
  pump();
}

void LogReader::reset() {
  requests_.clear();
  sink_busy_ = false;
}

void LogReader::on_change(InstanceKey instance) {
  for (const auto& request : requests_) {
    if (request->what.instance == instance) request->waiting = false;
  }
  pump();
}

void LogReader::pump() {
  while (!sink_busy_) {
    const auto it = std::find_if(requests_.begin(), requests_.end(),
                                 [](const auto& request) { return !request->waiting; });
    if (it == requests_.end()) return;
    LogChunk chunk;
    if (!next_chunk(**it, chunk)) {
      (*it)->waiting = true;
      continue;
    }
    if (chunk.end || !chunk.error.empty()) {
      requests_.erase(it);
    } else {
      requests_.splice(requests_.end(), requests_, it);  // the others' turn
    }
    sink_busy_ = true;
    sink_(std::move(chunk));
  }
}

// False: nothing to send before the file grows or the instance ends.
bool LogReader::next_chunk(Request& request, LogChunk& chunk) {
  chunk.request_id = request.what.request_id;
  if (!request.fd.valid()) {
    chunk.error = "attempt " + std::to_string(request.what.instance.attempt_id) + " instance " +
                  std::to_string(request.what.instance.instance) + " is not on this node";
    return true;
  }
  // Asked before reading: what is written before the end is then surely read.
  const bool instance_ended = ended(request.what.instance);
  const std::int64_t size = file_size(request.fd.get());
  if (request.offset > size) request.offset = size;  // the command truncated its own output
  request.offset = skip_hole(request.fd.get(), request.offset);
  std::size_t want = kChunkBytes;
  if (request.left >= 0) want = std::min(want, static_cast<std::size_t>(request.left));
  chunk.offset = request.offset;
  chunk.data.resize(want);
  const ssize_t n = ::pread(request.fd.get(), chunk.data.data(), want, request.offset);
  if (n < 0) {
    chunk.data.clear();
    chunk.error = errno_error("cannot read", "the output").message;
    return true;
  }
  chunk.data.resize(static_cast<std::size_t>(n));
  request.offset += n;
  if (request.left >= 0) request.left -= n;
  const bool at_end = n == 0;
  const bool followed = request.what.follow && !instance_ended && request.watch >= 0;
  if (request.left == 0 || (at_end && !followed)) {
    chunk.end = true;
    chunk.instance_ended = instance_ended;
    return true;
  }
  return !at_end;
}

}  // namespace gpuq::agent
