#include <algorithm>
#include <string>

#include "client/lib/client.h"

namespace gpuq::client {

namespace {

constexpr const char* kDefaultPort = "7070";

bool is_port(const std::string& text) {
  if (text.empty() || text.size() > 5) return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return false;
  }
  const int port = std::stoi(text);
  return port >= 1 && port <= 65535;
}

bool is_host(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' ||
           c == ']';
  });
}

}  // namespace

Result<std::string> normalize_target(const std::string& target) {
  if (target.rfind("unix:", 0) == 0 && target.size() > 5) return target;
  const Error bad{ErrorCode::kInvalidArgument,
                  "server address '" + target + "' is not HOST, HOST:PORT or unix:/PATH"};
  std::string host = target;
  std::string port = kDefaultPort;
  const auto bracket = target.rfind(']');
  const auto colon = target.rfind(':');
  const bool has_port =
      colon != std::string::npos &&
      (bracket == std::string::npos ? target.find(':') == colon : colon > bracket);
  if (has_port) {
    host = target.substr(0, colon);
    port = target.substr(colon + 1);
  } else if (colon != std::string::npos && bracket == std::string::npos) {
    host = "[" + target + "]";  // a bare IPv6 address
  }
  if (!is_host(host) || !is_port(port)) return bad;
  return host + ":" + port;
}

}  // namespace gpuq::client
