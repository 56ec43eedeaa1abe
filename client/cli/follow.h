#pragma once
// Waiting for the end of jobs, over lost connections.
#include <cstdint>
#include <functional>
#include <vector>

#include "client/lib/client.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace gpuq::cli {

struct FollowHooks {
  /// Every event of the jobs; may be empty.
  std::function<void(const v1::Event&)> on_event;
  /// The connection was lost and is being restored.
  std::function<void(const Error&)> on_lost;
};

constexpr Duration kRetryPause{500};

/// Whether the same call may succeed later: the server is away or overloaded.
bool may_pass(const Error& error);

/// Waits until all `ids` have ended and returns them in the order of `ids`. kNotFound names an id
/// that does not exist. When `stop` is stopped: as they are then. Tries for ever to reach a lost
/// server.
Result<std::vector<v1::Job>> wait_for_end(client::Client& client,
                                          const std::vector<std::int64_t>& ids,
                                          client::StreamStop& stop, const FollowHooks& hooks);

}  // namespace gpuq::cli
