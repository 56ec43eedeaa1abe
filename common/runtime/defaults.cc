#include "common/runtime/defaults.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#ifndef GPUQ_VERSION
#define GPUQ_VERSION "0.1.0"
#endif

namespace gpuq {
namespace {

std::string data_home() {
  if (const char* xdg = std::getenv("XDG_DATA_HOME"); xdg != nullptr && *xdg == '/') return xdg;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') {
    const passwd* account = getpwuid(getuid());  // NOLINT: called before threads start
    home = account != nullptr ? account->pw_dir : "/tmp";
  }
  return std::string(home) + "/.local/share";
}

std::string data_dir(const char* name) {
  return (geteuid() == 0 ? std::string("/var/lib") : data_home()) + "/" + name;
}

}  // namespace

std::string default_server_address() {
  return std::string(kDefaultHost) + ":" + std::to_string(kDefaultPort);
}

std::string default_server_data_dir() { return data_dir("gpuq"); }

std::string default_agent_state_dir() { return data_dir("gpuq-agent"); }

std::string executable_dir() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : path.parent_path().string();
}

const char* version() { return GPUQ_VERSION; }

}  // namespace gpuq
