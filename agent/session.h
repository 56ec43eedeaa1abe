#pragma once
// The agent's side of the session: hello, heartbeats, reports, reconnecting; checks every order's
// fence and hands it to Instances. Loop thread only. Owner: main; must not outlive loop, transport,
// instances.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "agent/instances.h"
#include "agent/state_dir.h"
#include "agent/transport.h"
#include "agent/types.h"
#include "common/runtime/event_loop.h"

namespace gpuq::agent {

class Session {
 public:
  /// What Hello says of the node; `attempts` and `highest_fence` are filled in at each connection.
  struct Options {
    Hello node;
    Duration backoff_min{100};
    Duration backoff_max{5000};
    /// Uniform in [0, bound): the jitter of the back-off.
    std::function<unsigned(unsigned bound)> random_below;
    /// Why nothing new can start here, empty if it can; asked at each Hello, heartbeat and Start.
    /// May be empty.
    std::function<std::string()> trouble;
    /// Called after each Welcome; may be empty.
    std::function<void()> on_established;
  };

  Session(EventLoop& loop, Transport& transport, StateDir& state, Instances& instances,
          Options options);
  ~Session();

  void start();
  /// To be called for each change of an instance: reports it, now or with the next Hello.
  void report(const InstanceStatus& status);
  [[nodiscard]] bool established() const { return established_; }

 private:
  void connect();
  void disconnect(const std::string& reason);
  void retry_later(const std::string& reason);
  void on_message(const FromServer& message);
  void on_heartbeat_due();
  void send_report(const InstanceStatus& status);
  /// Tells the server when it has changed.
  void send_trouble();
  /// True if an order with this fence is to be obeyed; says why not otherwise.
  [[nodiscard]] bool accepts(const Fence& fence, std::string& why);

  void handle(const Welcome& welcome);
  void handle(const Refused& refused);
  void handle(const HeartbeatAck& ack);
  void handle(const StartOrder& order);
  void handle(const GoOrder& order);
  void handle(const StopOrder& order);
  void handle(const ForgetOrder& order);
  void handle(const AckReport& ack);

  EventLoop& loop_;
  Transport& transport_;
  StateDir& state_;
  Instances& instances_;
  Options options_;
  bool connected_ = false;    // hello sent
  bool established_ = false;  // welcome received
  std::map<InstanceKey, InstanceStatus> changed_since_hello_;
  Duration heartbeat_interval_{5000};
  std::uint64_t heartbeat_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t next_report_ = 1;
  Duration backoff_;
  EventLoop::TimerId timer_ = 0;
  std::string last_reason_;
  std::string told_trouble_;
};

}  // namespace gpuq::agent
