#pragma once
// Answers the server's requests for the output of instances, piece by piece, at the speed the
// connection takes. Loop thread only. Knows no gRPC: chunks leave through `Sink`.
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "agent/dir_watcher.h"
#include "agent/instances.h"
#include "agent/types.h"
#include "common/runtime/unique_fd.h"

namespace gpuq::agent {

struct LogRead {
  std::uint64_t request_id = 0;
  InstanceKey instance;
  bool stderr_stream = false;
  std::int64_t offset = 0;     ///< Negative: from the end.
  std::int64_t max_bytes = 0;  ///< 0 = no limit.
  bool follow = false;
};

struct LogChunk {
  std::uint64_t request_id = 0;
  std::int64_t offset = 0;
  std::string data;
  bool end = false;
  std::string error;
  bool instance_ended = false;
};

class LogReader {
 public:
  /// Takes one chunk; on_sent() must follow once the next can be taken.
  using Sink = std::function<void(LogChunk)>;

  LogReader(DirWatcher& watcher, const Instances& instances, Sink sink);
  ~LogReader();

  void read(const LogRead& request);
  void cancel(std::uint64_t request_id);
  /// The sink can take a chunk again.
  void on_sent();
  /// The connection is gone: forget all requests; the sink is free again.
  void reset();
  /// To be called when an instance changes: followers of an ended one come to their end.
  void on_change(InstanceKey instance);

 private:
  struct Request;
  using Requests = std::list<std::shared_ptr<Request>>;

  void pump();
  bool next_chunk(Request& request, LogChunk& chunk);
  [[nodiscard]] bool ended(InstanceKey key) const;

  DirWatcher& watcher_;
  const Instances& instances_;
  Sink sink_;
  Requests requests_;  // served in turn
  bool sink_busy_ = false;
};

/// First byte at or after `offset` that is not in a hole (the part that the cap dropped); the
/// file's size if there is none.
std::int64_t skip_hole(int fd, std::int64_t offset);

}  // namespace gpuq::agent
