#pragma once
// Real NVIDIA devices, through the driver's management library, opened at run time: no part of it
// is needed to build or to run on a node without GPUs.
#include <string>
#include <vector>

#include "agent/types.h"
#include "core/base/result.h"

namespace gpuq::agent {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

/// All devices in the driver's order. NOT_FOUND: no such library (no driver here). UNAVAILABLE: the
/// library is there but does not work (driver not loaded, versions differ). A device that cannot be
/// asked is listed as not usable, if its UUID is known.
Result<std::vector<Device>> discover_nvml(const std::string& library);

/// "A10G" for "NVIDIA A10G", "A100" for "NVIDIA A100-SXM4-80GB", "RTX3090" for "NVIDIA GeForce RTX
/// 3090".
std::string short_model(const std::string& product_name);

}  // namespace gpuq::agent
