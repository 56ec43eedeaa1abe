#include "client/cli/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "client/cli/exit_code.h"
#include "core/base/check.h"

namespace gpuq::cli {

InterruptWatcher::InterruptWatcher(std::function<void()> handler) : handler_(std::move(handler)) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, &previous_);
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC));
  wake_.reset(eventfd(0, EFD_CLOEXEC));
  GPUQ_CHECK(signals_.valid() && wake_.valid());
  thread_ = std::thread([this] { watch(); });
}

InterruptWatcher::~InterruptWatcher() {
  const std::uint64_t one = 1;
  GPUQ_CHECK(write(wake_.get(), &one, sizeof one) == sizeof one);
  thread_.join();
  if (calls_.joinable()) calls_.join();
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

void InterruptWatcher::watch() {
  for (;;) {
    pollfd fds[2] = {{signals_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    signalfd_siginfo info{};
    if (fds[0].revents == 0 || read(signals_.get(), &info, sizeof info) != sizeof info) continue;
    if (calls_.joinable()) _exit(kInterrupted);
    calls_ = std::thread(handler_);
  }
}

}  // namespace gpuq::cli
