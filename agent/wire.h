#pragma once
// Between the agent's types and the messages of proto/gpuq/v1/agent.proto.
#include "agent/types.h"
#include "core/base/result.h"
#include "gpuq/v1/agent.pb.h"

namespace gpuq::agent {

v1::AgentMessage to_wire(const ToServer& message);
v1::InstanceStatus to_wire(const InstanceStatus& status);
/// INVALID_ARGUMENT for a message that this release does not know or that lacks what it must have.
Result<FromServer> from_wire(const v1::ServerMessage& message);

}  // namespace gpuq::agent
