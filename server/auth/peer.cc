#include "server/auth/peer.h"

#include <arpa/inet.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace gpuq::auth {

namespace {

constexpr Duration kKeep{1'000};
constexpr std::size_t kMaxKnown = 10'000;
constexpr std::string_view kEstablished = "01";

std::optional<std::uint32_t> parse_number(std::string_view text, int base) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void map_ipv4(const void* four_bytes, std::array<std::uint8_t, 16>& out) {
  out.fill(0);
  out[10] = out[11] = 0xff;
  std::memcpy(&out[12], four_bytes, 4);
}

// The kernel prints addresses as 32-bit words in host order: "0100007F" is 127.0.0.1 here.
std::optional<Endpoint> parse_table_endpoint(std::string_view text) {
  const auto colon = text.find(':');
  if (colon != 8 && colon != 32) return std::nullopt;
  Endpoint endpoint;
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i * 8 < colon; ++i) {
    const auto word = parse_number(text.substr(i * 8, 8), 16);
    if (!word) return std::nullopt;
    words[i] = *word;
  }
  if (colon == 8) {
    map_ipv4(words.data(), endpoint.address);
  } else {
    std::memcpy(endpoint.address.data(), words.data(), 16);
  }
  const auto port = parse_number(text.substr(colon + 1), 16);
  if (!port || *port > 0xffff) return std::nullopt;
  endpoint.port = static_cast<std::uint16_t>(*port);
  return endpoint;
}

std::string account_name(uid_t uid) {
  std::vector<char> buffer(4096);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return "uid:" + std::to_string(uid);
}

}  // namespace

bool Endpoint::is_loopback() const {
  std::array<std::uint8_t, 16> v6_loopback{};
  v6_loopback[15] = 1;
  if (address == v6_loopback) return true;
  const std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(mapped.begin(), mapped.end(), address.begin()) && address[12] == 127;
}

std::optional<Endpoint> parse_peer(std::string_view peer) {
  const bool v4 = peer.starts_with("ipv4:");
  if (!v4 && !peer.starts_with("ipv6:")) return std::nullopt;
  peer.remove_prefix(5);
  const auto colon = peer.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string host(peer.substr(0, colon));
  const auto port = parse_number(peer.substr(colon + 1), 10);
  if (!port || *port > 0xffff) return std::nullopt;
  Endpoint endpoint;
  endpoint.port = static_cast<std::uint16_t>(*port);
  if (v4) {
    in_addr address{};
    if (inet_pton(AF_INET, host.c_str(), &address) != 1) return std::nullopt;
    map_ipv4(&address, endpoint.address);
    return endpoint;
  }
  if (host.starts_with("%5B") && host.ends_with("%5D")) host = host.substr(3, host.size() - 6);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  if (inet_pton(AF_INET6, host.c_str(), endpoint.address.data()) != 1) return std::nullopt;
  return endpoint;
}

std::optional<std::uint32_t> find_socket_owner(std::istream& table, const Endpoint& local,
                                               const std::vector<int>& remote_ports) {
  std::string line;
  std::getline(table, line);  // headings
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string slot, here, there, state, queues, timer, retransmits, uid;
    fields >> slot >> here >> there >> state >> queues >> timer >> retransmits >> uid;
    if (state != kEstablished) continue;
    const auto here_end = parse_table_endpoint(here);
    const auto there_end = parse_table_endpoint(there);
    if (!here_end || !there_end || *here_end != local) continue;
    if (std::ranges::find(remote_ports, int{there_end->port}) == remote_ports.end()) continue;
    return parse_number(uid, 10);
  }
  return std::nullopt;
}

Caller PeerIdentifier::look_up(const std::string& peer, const std::vector<int>& ports) const {
  const auto endpoint = parse_peer(peer);
  if (!endpoint || !endpoint->is_loopback()) {
    if (!allow_remote_) return {};
    return {kAnonymous, kUser | kAdmin | kAgent, Method::kInsecure};
  }
  Caller caller{kAnonymous, kUser | kAdmin | kAgent, Method::kLoopback};
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream table(path);
    if (const auto uid = find_socket_owner(table, *endpoint, ports)) {
      caller.user = account_name(*uid);
      break;
    }
  }
  return caller;
}

Caller PeerIdentifier::identify(const std::string& peer) {
  const Time now = clock_.now();
  std::vector<int> ports;
  {
    const std::lock_guard lock(mutex_);
    const auto it = known_.find(peer);
    if (it != known_.end() && it->second.until > now) return it->second.caller;
    ports = server_ports_;
  }
  Caller caller = look_up(peer, ports);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMaxKnown) {
    std::erase_if(known_, [&](const auto& entry) { return entry.second.until <= now; });
  }
  if (known_.size() < kMaxKnown) known_[peer] = {caller, now + kKeep};
  return caller;
}

}  // namespace gpuq::auth
