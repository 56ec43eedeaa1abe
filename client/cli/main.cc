#include <google/protobuf/stubs/logging.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/program.h"
#include "client/cli/terminal.h"

namespace {

/// What goes wrong is said once, by us. GRPC_VERBOSITY=DEBUG brings gRPC's own lines back.
void silence_libraries() {
  setenv("GRPC_VERBOSITY", "NONE", 0);
  google::protobuf::SetLogHandler(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  silence_libraries();
  // A reader that went away (`gpuq ls | head`) ends the program quietly, as the default does; gRPC
  // writes to its sockets without the signal.
  std::signal(SIGPIPE, SIG_DFL);
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return gpuq::cli::run_program(arguments, gpuq::cli::standard_terminal(), environment);
}
