#include "agent/devices/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

namespace gpuq::agent {
namespace {

// The part of NVML's C interface that is used here; the layouts are those of its versioned entry
// points.
using NvmlDevice = void*;
using NvmlReturn = int;
constexpr NvmlReturn kSuccess = 0;
constexpr unsigned kMostLinks = 18;
constexpr unsigned kEnabled = 1;

struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

struct Nvml {
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  const char* (*error_string)(NvmlReturn) = nullptr;
  NvmlReturn (*count)(unsigned*) = nullptr;
  NvmlReturn (*handle)(unsigned, NvmlDevice*) = nullptr;
  NvmlReturn (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlReturn (*name)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlReturn (*pci)(NvmlDevice, NvmlPciInfo*) = nullptr;
  NvmlReturn (*link_state)(NvmlDevice, unsigned, unsigned*) = nullptr;      // may be missing
  NvmlReturn (*link_remote)(NvmlDevice, unsigned, NvmlPciInfo*) = nullptr;  // may be missing

  [[nodiscard]] std::string text(NvmlReturn code) const {
    const char* known = error_string != nullptr ? error_string(code) : nullptr;
    return known != nullptr ? known : "error " + std::to_string(code);
  }
};

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <typename Fn>
bool load(void* library, const char* symbol, Fn& out) {
  out = reinterpret_cast<Fn>(::dlsym(library, symbol));
  return out != nullptr;
}

Result<Nvml> load_functions(void* library, const std::string& path) {
  Nvml nvml;
  load(library, "nvmlErrorString", nvml.error_string);
  load(library, "nvmlDeviceGetNvLinkState", nvml.link_state);
  load(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", nvml.link_remote);
  const bool complete = load(library, "nvmlInit_v2", nvml.init) &&
                        load(library, "nvmlShutdown", nvml.shutdown) &&
                        load(library, "nvmlDeviceGetCount_v2", nvml.count) &&
                        load(library, "nvmlDeviceGetHandleByIndex_v2", nvml.handle) &&
                        load(library, "nvmlDeviceGetUUID", nvml.uuid) &&
                        load(library, "nvmlDeviceGetName", nvml.name) &&
                        load(library, "nvmlDeviceGetMemoryInfo", nvml.memory) &&
                        load(library, "nvmlDeviceGetPciInfo_v3", nvml.pci);
  if (!complete) {
    return Error{ErrorCode::kUnavailable,
                 path + " lacks functions of NVML; is the driver too old?"};
  }
  return nvml;
}

// "00000000:00:1E.0" of the driver is "0000:00:1e.0" in sysfs.
std::int32_t numa_node(std::string pci_address) {
  if (pci_address.size() > 12) pci_address.erase(0, pci_address.size() - 12);
  std::transform(pci_address.begin(), pci_address.end(), pci_address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::ifstream file("/sys/bus/pci/devices/" + pci_address + "/numa_node");
  std::int32_t node = -1;
  file >> node;
  return file ? node : -1;
}

void read_details(const Nvml& nvml, NvmlDevice handle, Device& device) {
  std::array<char, 96> text{};
  const auto unusable = [&](const char* what, NvmlReturn code) {
    device.usable = false;
    device.unusable_reason = std::string(what) + ": " + nvml.text(code);
  };
  NvmlReturn code = nvml.name(handle, text.data(), text.size());
  if (code != kSuccess) return unusable("its name cannot be read", code);
  device.product_name = text.data();
  device.model = short_model(device.product_name);
  NvmlMemory memory{};
  code = nvml.memory(handle, &memory);
  if (code != kSuccess) return unusable("its memory cannot be read", code);
  device.memory_mib = static_cast<std::int64_t>(memory.total >> 20);
  NvmlPciInfo pci{};
  code = nvml.pci(handle, &pci);
  if (code != kSuccess) return unusable("its PCI address cannot be read", code);
  device.pci_address = pci.bus_id;
  device.numa_node = numa_node(device.pci_address);
}

void read_links(const Nvml& nvml, NvmlDevice handle,
                const std::map<std::string, std::string>& uuids, Device& device) {
  if (nvml.link_state == nullptr || nvml.link_remote == nullptr) return;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    unsigned state = 0;
    NvmlPciInfo remote{};
    if (nvml.link_state(handle, link, &state) != kSuccess || state != kEnabled) continue;
    if (nvml.link_remote(handle, link, &remote) != kSuccess) continue;
    const auto peer = uuids.find(remote.bus_id);
    if (peer == uuids.end()) continue;  // a switch
    auto& peers = device.link_peers;
    if (std::find(peers.begin(), peers.end(), peer->second) == peers.end()) {
      peers.push_back(peer->second);
    }
  }
}

Result<std::vector<Device>> list_devices(const Nvml& nvml) {
  unsigned count = 0;
  if (const NvmlReturn code = nvml.count(&count); code != kSuccess) {
    return Error{ErrorCode::kUnavailable, "NVML cannot count the devices: " + nvml.text(code)};
  }
  std::vector<Device> devices;
  std::vector<NvmlDevice> handles;
  std::map<std::string, std::string> uuid_by_address;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice handle = nullptr;
    std::array<char, 96> uuid{};
    if (nvml.handle(i, &handle) != kSuccess) continue;  // without a UUID it cannot be named
    if (nvml.uuid(handle, uuid.data(), uuid.size()) != kSuccess) continue;
    Device device;
    device.index = i;
    device.uuid = uuid.data();
    read_details(nvml, handle, device);
    uuid_by_address[device.pci_address] = device.uuid;
    devices.push_back(std::move(device));
    handles.push_back(handle);
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    read_links(nvml, handles[i], uuid_by_address, devices[i]);
  }
  return devices;
}

}  // namespace

Result<std::vector<Device>> discover_nvml(const std::string& library_path) {
  const Library library(::dlopen(library_path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) {
    const char* why = ::dlerror();  // NOLINT: one thread
    return Error{ErrorCode::kNotFound, why != nullptr ? why : "cannot load " + library_path};
  }
  const auto nvml = load_functions(library.get(), library_path);
  if (!nvml) return nvml.error();
  if (const NvmlReturn code = nvml->init(); code != kSuccess) {
    return Error{ErrorCode::kUnavailable, "NVML does not start: " + nvml->text(code)};
  }
  auto devices = list_devices(*nvml);
  nvml->shutdown();
  return devices;
}

std::string short_model(const std::string& product_name) {
  std::istringstream words(product_name);
  std::string word;
  while (words >> word) {
    if (word == "NVIDIA" || word == "Tesla" || word == "GeForce" || word == "Quadro") continue;
    if (word == "RTX" || word == "GTX" || word == "TITAN") {
      std::string next;
      words >> next;
      word += next;
    }
    return word.substr(0, word.find('-'));
  }
  return product_name;
}

}  // namespace gpuq::agent
