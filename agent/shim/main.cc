// gpuq-shim DIRECTORY LOCK_FD: supervises one attempt instance. Started by gpuq-agent, which has
// taken the flock behind LOCK_FD; detaches from it and lives until no process of the instance is
// left.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "agent/shim/supervisor.h"

namespace {

constexpr int kUsage = 2;

// Leaves only stdin, stdout, stderr on /dev/null and the lock.
void detach_files(int lock_fd) {
  const int null_fd = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null_fd, fd);
  if (lock_fd > 3) ::close_range(3, static_cast<unsigned>(lock_fd) - 1, 0);
  ::close_range(static_cast<unsigned>(lock_fd) + 1, ~0U, 0);
  ::fcntl(lock_fd, F_SETFD, FD_CLOEXEC);
}

// Blocked for good: the end of a terminal or of the agent is no end of the instance.
void block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGUSR1, SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGQUIT}) {
    sigaddset(&set, signal);
  }
  ::sigprocmask(SIG_SETMASK, &set, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const int lock_fd = argc == 3 ? std::atoi(argv[2]) : 0;
  if (lock_fd < 3) {
    std::fprintf(stderr, "gpuq-shim is started by gpuq-agent, not by hand\n");
    return kUsage;
  }
  block_signals();
  detach_files(lock_fd);
  ::setsid();
  const pid_t child = ::fork();
  if (child != 0) ::_exit(child > 0 ? 0 : 1);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (::chdir("/") != 0) return 1;
  gpuq::shim::Supervisor supervisor(argv[1]);
  return supervisor.run() ? 0 : 1;
}
