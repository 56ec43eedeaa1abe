#pragma once
// The agent session between wire and core: what agents say as commands, orders as messages. Pure
// but for to_start, which reads the state for names: engine's thread.
#include <optional>
#include <string>

#include "core/engine/command.h"
#include "core/engine/ports.h"
#include "core/state/state.h"
#include "gpuq/v1/agent.pb.h"

namespace gpuq::rpc {

inline constexpr std::size_t kMaxNodeDevices = 1024;

/// Shape checks included: kInvalidArgument with one sentence. Statuses of other stores than
/// `store_id` are left out: the engine cannot know them.
Result<RegisterNodeCommand> to_register(const v1::Hello& hello, const std::string& store_id);

/// kInvalidArgument for a status without state, attempt or with an instance out of range.
Result<ReportedInstance> to_reported(const v1::InstanceStatus& status);
StopCause agent_cause(v1::AgentStopReason reason);

v1::Fence to_proto(const Fence& fence);
v1::AgentStopReason to_proto(StopCause cause);

/// Everything but the parts that come from the spec.
v1::Start to_start(const State& state, const StartOrder& order);
/// Completes `start` by the stored spec bytes. kDataLoss when they are no spec.
Result<> add_spec(const std::string& bytes, v1::Start& start);

/// `hello` says what the agent has, `reply` what the engine made of it.
v1::Welcome to_welcome(const v1::Hello& hello, const Reply& reply, const StoreIdentity& identity,
                       Duration heartbeat_interval, const char* server_version);

}  // namespace gpuq::rpc
