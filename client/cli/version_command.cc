#include <ostream>

#include <nlohmann/json.hpp>

#include "client/cli/commands.h"
#include "client/cli/json_out.h"
#include "common/runtime/defaults.h"

namespace gpuq::cli {

int print_version(Context& context, const VersionOptions& /*options*/) {
  auto client = context.client();
  auto server = client ? (*client)->server_info() : Result<v1::ServerInfo>(client.error());
  std::ostream& out = context.terminal().out;
  if (context.json()) {
    nlohmann::ordered_json object;
    object["version"] = version();
    object["server"] = server ? nlohmann::ordered_json::parse(to_json(*server)) : nullptr;
    out << object.dump() << '\n';
    return kDone;
  }
  out << "gpuq " << version() << '\n';
  if (server) {
    out << "server " << server->version() << " at " << (*client)->target()
        << (server->read_only() ? ", read-only: " + server->read_only_reason() : "") << '\n';
  } else {
    out << "server: " << one_line(server.error().message) << '\n';
  }
  return kDone;
}

}  // namespace gpuq::cli
