#pragma once
// Who stands at the other end of a connection. Until callers authenticate, a loopback caller is the
// owner of its socket as the kernel's connection table names it.
#include <array>
#include <chrono>
#include <cstdint>
#include <istream>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "server/auth/caller.h"

namespace gpuq::auth {

/// IPv6 form of an address; IPv4 is mapped (::ffff:a.b.c.d).
struct Endpoint {
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
  [[nodiscard]] bool is_loopback() const;
};

/// Reads "ipv4:127.0.0.1:4711", "ipv6:[::1]:4711" and "ipv6:%5B::1%5D:4711"; nothing for other
/// text.
std::optional<Endpoint> parse_peer(std::string_view peer);

/// Owner (uid) of the local socket `local` connected to one of `remote_ports`, from text in the
/// form of /proc/net/tcp or /proc/net/tcp6.
std::optional<std::uint32_t> find_socket_owner(std::istream& table, const Endpoint& local,
                                               const std::vector<int>& remote_ports);

/// Makes Callers from peer addresses. Thread-safe. Answers are kept for a second, less than the
/// kernel takes to give a port to somebody else.
class PeerIdentifier {
 public:
  /// `clock` must outlive it. `allow_remote`: callers from other machines are let in (--insecure).
  PeerIdentifier(const Clock& clock, bool allow_remote)
      : clock_(clock), allow_remote_(allow_remote) {}
  /// The ports that the server listens on. Calls that come earlier are anonymous.
  void set_server_ports(std::vector<int> ports) {
    const std::lock_guard lock(mutex_);
    server_ports_ = std::move(ports);
    known_.clear();
  }

  /// `peer` as the transport writes it.
  Caller identify(const std::string& peer);

 private:
  struct Known {
    Caller caller;
    Time until{};
  };
  [[nodiscard]] Caller look_up(const std::string& peer, const std::vector<int>& ports) const;

  const Clock& clock_;
  const bool allow_remote_;
  std::mutex mutex_;
  std::vector<int> server_ports_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace gpuq::auth
