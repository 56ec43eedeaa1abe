#pragma once
// The real connection: gRPC streams of AgentService. The only part of the agent that knows gRPC.
// Loop thread only; gRPC's own threads convert messages and post them to the loop.
#include <functional>
#include <memory>
#include <string>

#include "agent/disposer.h"
#include "agent/log_reader.h"
#include "agent/transport.h"
#include "common/runtime/event_loop.h"

namespace gpuq::agent {

/// The stream on which the server reads logs.
struct LogStreamHandler {
  std::function<void(const LogRead&)> on_read;
  std::function<void(std::uint64_t request_id)> on_cancel;
  /// The chunk given last has left; the next may come.
  std::function<void()> on_sent;
  /// Once; the stream is over.
  std::function<void(const std::string& reason)> on_closed;
};

class GrpcTransport final : public Transport {
 public:
  /// `server`: "host:port".
  GrpcTransport(EventLoop& loop, std::string server);
  ~GrpcTransport() override;

  void open(Handler handler) override;
  void send(const ToServer& message) override;
  void close() override;

  /// Opens the log stream on the connection of the session; ends an older one without calling its
  /// handler.
  void open_logs(const std::string& node_name, const std::string& state_dir_id,
                 LogStreamHandler handler);
  /// At most one chunk before on_sent.
  void send_log(LogChunk chunk);

  /// Uploads through UploadLog on the connection of now.
  [[nodiscard]] LogUploader uploader() const;

 private:
  class Session;
  class Logs;
  struct Connection;

  EventLoop& loop_;
  std::string server_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace gpuq::agent
