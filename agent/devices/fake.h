#pragma once
// Devices that exist only in the configuration, so that a node without GPUs can be used in earnest:
// its jobs really run.
#include <cstdint>
#include <string>
#include <vector>

#include "agent/types.h"
#include "core/base/result.h"

namespace gpuq::agent {

struct FakeGroup {
  std::string model;
  std::uint32_t count = 0;
  std::int64_t memory_mib = 0;  ///< 0: that of the real model, 16384 for an unknown one.
};

/// "4xA10G" or "4xA10G,2xH100". INVALID_ARGUMENT otherwise, or above 64 devices in all.
Result<std::vector<FakeGroup>> parse_fake_groups(const std::string& text);
/// UUIDs follow from node name and index, so they are the same after every restart.
std::vector<Device> make_fake_devices(const std::string& node_name,
                                      const std::vector<FakeGroup>& groups);

}  // namespace gpuq::agent
