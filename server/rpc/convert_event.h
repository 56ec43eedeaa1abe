#pragma once
// Committed events on the wire, and the resume tokens of watch streams.
#include <optional>
#include <string>
#include <string_view>

#include "core/state/state.h"
#include "gpuq/v1/events.pb.h"

namespace gpuq::rpc {

/// False for events that watchers are not shown. Names come from the state as it is now: they are
/// empty for what has left it. Engine's thread.
bool fill_event(const State& state, const Event& event, v1::Event& out);

/// Token to go on after `event` of the store `store_id`. Pure.
std::string resume_token(std::string_view store_id, EventId event);
/// kInvalidArgument for text that is no token, kOutOfRange for one of another store.
Result<EventId> read_resume_token(std::string_view store_id, std::string_view token);

}  // namespace gpuq::rpc
