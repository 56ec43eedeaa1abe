#pragma once
// Caller: who makes a call, as the server itself established it. Never read from a request. Every
// call makes one and passes authorize() with it; events store `user` as their actor. Values; any
// thread.
#include <cstdint>
#include <string>

namespace gpuq::auth {

/// How the identity was established.
enum class Method : std::uint8_t {
  kNone = 0,      ///< Not at all: no rights.
  kLoopback = 1,  ///< The kernel named the owner of the local connection.
  kInsecure = 2,  ///< A remote caller that `--insecure` lets in; nobody knows who it is.
};
const char* to_string(Method method);  ///< "none", "loopback", "insecure"

/// A set of roles.
enum Role : std::uint32_t {
  kNoRole = 0,
  kUser = 1U << 0,   ///< Submits jobs, looks at everything, changes and ends jobs.
  kAdmin = 1U << 1,  ///< Changes policy and nodes.
  kAgent = 1U << 2,  ///< Speaks for a node.
};

/// Name of a caller whose account could not be found out.
inline constexpr const char* kAnonymous = "anonymous";

struct Caller {
  std::string user = kAnonymous;
  std::uint32_t roles = kNoRole;
  Method method = Method::kNone;
};

}  // namespace gpuq::auth
