#pragma once
// authorize(): the one gate that every call passes. Table-driven; what the table does not allow is
// refused. Pure; any thread.
#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "server/auth/caller.h"

namespace gpuq::auth {

enum class Verb : std::uint8_t {
  kSubmitJob = 1,
  kReadJob,
  kUpdateJob,
  kCancelJob,
  kReadLog,
  kWatchEvents,
  kReadPolicy,
  kChangePolicy,
  kReadNode,
  kChangeNode,
  kReadStatus,
  kAgentSession,
  kAgentLogs,
};
const char* to_string(Verb verb);  ///< "submit a job", ...: completes "may not ...".

/// What the verb is done to. `owner` is set where rights may depend on whose it is.
struct Object {
  const char* kind = "";  ///< "job", "queue", "node", ...; static text.
  std::string name;
  std::string owner;
};

/// kUnauthenticated for a caller of method kNone, kPermissionDenied (naming what is missing) for
/// anything that is not allowed, unknown verbs included.
Result<> authorize(const Caller& caller, Verb verb, const Object& object);

}  // namespace gpuq::auth
