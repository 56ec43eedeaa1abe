#pragma once
// A policy file's content as the message that Apply takes.
#include "core/model/policy.h"
#include "gpuq/v1/policy.pb.h"

namespace gpuq::cli {

/// Names the kinds that `doc` names; shares belong to the kind of their queues.
v1::PolicyDocument to_message(const PolicyDoc& doc);

}  // namespace gpuq::cli
