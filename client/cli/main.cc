#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/program.h"
#include "client/cli/terminal.h"

namespace {

/// Takes the place of standard streams that are closed, so that no socket gets their number and
/// with it what is meant for them. Writing to a closed standard output goes on to fail.
void fill_closed_streams() {
  const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", modes[fd]);
  }
}

/// What goes wrong is said once, by us. GRPC_VERBOSITY=DEBUG brings gRPC's own lines back.
void silence_libraries() {
  setenv("GRPC_VERBOSITY", "NONE", 0);
  google::protobuf::SetLogHandler(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  fill_closed_streams();
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
