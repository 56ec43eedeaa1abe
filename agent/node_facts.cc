#include "agent/node_facts.h"

#include <netdb.h>
#include <pwd.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include "common/runtime/unique_fd.h"

namespace gpuq::agent {
namespace {

// First number of a file; 0 if there is none ("max").
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  file >> value;
  return file ? value : 0;
}

std::int64_t machine_memory_kib() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::int64_t value = 0;
  std::string unit;
  while (file >> key >> value >> unit) {
    if (key == "MemTotal:") return value;
  }
  return 0;
}

std::string numeric_address(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "";
}

// Connecting a datagram socket sends nothing; it only makes the kernel choose the way.
std::string local_address_for(const addrinfo& remote) {
  const UniqueFd fd(::socket(remote.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || ::connect(fd.get(), remote.ai_addr, remote.ai_addrlen) != 0) return "";
  sockaddr_storage local{};
  socklen_t size = sizeof(local);
  auto* address = reinterpret_cast<sockaddr*>(&local);
  if (::getsockname(fd.get(), address, &size) != 0) return "";
  return numeric_address(address, size);
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  const std::string full = name.data();
  return full.substr(0, full.find('.'));
}

std::uint32_t cpu_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
  }
  return static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::int64_t memory_mib() {
  std::int64_t mib = machine_memory_kib() / 1024;
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::int64_t limit = number_in(path) >> 20;
    if (limit > 0) mib = std::min(mib, limit);
  }
  return mib;
}

std::string account_name() {
  const passwd* account = ::getpwuid(::geteuid());  // NOLINT: before the loop runs
  return account != nullptr ? account->pw_name : std::to_string(::geteuid());
}

std::string address_towards(const std::string& server) {
  const auto colon = server.rfind(':');
  std::string host = server.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : server.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  std::string address;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) == 0) {
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
    for (const addrinfo* it = found; it != nullptr && address.empty(); it = it->ai_next) {
      address = local_address_for(*it);
    }
  }
  return address.empty() ? host_name() : address;
}

}  // namespace gpuq::agent
