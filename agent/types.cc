#include "agent/types.h"

namespace gpuq::agent {

const char* to_string(InstanceState state) {
  switch (state) {
    case InstanceState::kStarting:
      return "STARTING";
    case InstanceState::kPrepared:
      return "PREPARED";
    case InstanceState::kRunning:
      return "RUNNING";
    case InstanceState::kExited:
      return "EXITED";
    case InstanceState::kStartFailed:
      return "START_FAILED";
    case InstanceState::kRefused:
      return "REFUSED";
    case InstanceState::kLost:
      return "LOST";
  }
  return "?";
}

const char* to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return "";
    case StopReason::kPreempted:
      return "PREEMPTED";
    case StopReason::kTimeout:
      return "TIMEOUT";
    case StopReason::kTerminated:
      return "TERMINATED";
    case StopReason::kNodeDrain:
      return "NODE_DRAIN";
    case StopReason::kOrphan:
      return "ORPHAN";
    case StopReason::kGangFailed:
      return "GANG_FAILED";
  }
  return "";
}

StopReason parse_stop_reason(const std::string& text) {
  for (const StopReason reason :
       {StopReason::kPreempted, StopReason::kTimeout, StopReason::kTerminated,
        StopReason::kNodeDrain, StopReason::kOrphan, StopReason::kGangFailed}) {
    if (text == to_string(reason)) return reason;
  }
  return StopReason::kNone;
}

}  // namespace gpuq::agent
