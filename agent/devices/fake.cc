#include "agent/devices/fake.h"

#include <charconv>
#include <map>

#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>

namespace gpuq::agent {
namespace {

constexpr std::uint32_t kMostDevices = 64;

// Namespace of our names; any fixed UUID does.
constexpr boost::uuids::uuid kNamespace = {{0x7e, 0x1d, 0x5a, 0x52, 0x0c, 0x8b, 0x4d, 0x0e, 0x9a,
                                            0x3f, 0x6b, 0x51, 0x25, 0xc4, 0x70, 0x11}};

std::int64_t known_memory_mib(const std::string& model) {
  static const std::map<std::string, std::int64_t> kMemory{
      {"T4", 15360},   {"V100", 16384},  {"L4", 23034},   {"A10G", 23028},
      {"A10", 23028},  {"A40", 46068},   {"L40S", 46068}, {"A100", 81920},
      {"H100", 81559}, {"H200", 143771}, {"B200", 183359}};
  const auto it = kMemory.find(model);
  return it == kMemory.end() ? 16384 : it->second;
}

Error wrong_groups(const std::string& text) {
  return Error{ErrorCode::kInvalidArgument,
               "'" + text + "' names no fake devices; write COUNTxMODEL, like 4xA10G, 64 at most"};
}

}  // namespace

Result<std::vector<FakeGroup>> parse_fake_groups(const std::string& text) {
  std::vector<FakeGroup> groups;
  std::uint32_t total = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    FakeGroup group;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), group.count);
    const auto used = static_cast<std::size_t>(rest - part.data());
    if (error != std::errc() || used + 1 >= part.size() || part[used] != 'x' || group.count == 0 ||
        group.count > kMostDevices) {
      return wrong_groups(text);
    }
    group.model = part.substr(used + 1);
    total += group.count;
    groups.push_back(std::move(group));
    at = end + 1;
  }
  if (total > kMostDevices) return wrong_groups(text);
  return groups;
}

std::vector<Device> make_fake_devices(const std::string& node_name,
                                      const std::vector<FakeGroup>& groups) {
  const boost::uuids::name_generator_sha1 generate(kNamespace);
  std::vector<Device> devices;
  for (const auto& group : groups) {
    for (std::uint32_t i = 0; i < group.count; ++i) {
      Device device;
      device.index = static_cast<std::uint32_t>(devices.size());
      device.uuid = "GPU-" + boost::uuids::to_string(
                                 generate(node_name + "/" + std::to_string(device.index)));
      device.model = group.model;
      device.product_name = "Fake " + group.model;
      device.memory_mib = group.memory_mib > 0 ? group.memory_mib : known_memory_mib(group.model);
      device.numa_node = 0;
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

}  // namespace gpuq::agent
