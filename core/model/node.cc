#include "core/model/node.h"

namespace gpuq {

const char* to_string(NodeLink link) {
  switch (link) {
    case NodeLink::kUp:
      return "UP";
    case NodeLink::kUnreachable:
      return "UNREACHABLE";
    case NodeLink::kDown:
      return "DOWN";
  }
  return "UNKNOWN";
}

const char* to_string(NodeAdmin admin) {
  switch (admin) {
    case NodeAdmin::kOpen:
      return "OPEN";
    case NodeAdmin::kCordoned:
      return "CORDONED";
    case NodeAdmin::kDraining:
      return "DRAINING";
  }
  return "UNKNOWN";
}

}  // namespace gpuq
