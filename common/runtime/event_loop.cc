#include "common/runtime/event_loop.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace gpuq {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// A descriptor registered with the reactor but owned by somebody else.
struct Watch {
  Watch(asio::io_context& io, int fd, std::function<void()> callback)
      : descriptor(io, fd), ready(std::move(callback)) {}
  ~Watch() { descriptor.release(); }

  asio::posix::stream_descriptor descriptor;
  std::function<void()> ready;
};

}  // namespace

struct EventLoop::Impl {
  explicit Impl(Duration grace) : stall_grace(grace), guard(io.get_executor()), timer(io) {}

  const Duration stall_grace;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard;
  asio::steady_timer timer;
  std::optional<Time> timer_set_for;
  std::map<std::pair<Time, TimerId>, Task> timers;
  std::unordered_map<TimerId, Time> timer_times;
  TimerId next_timer = 1;
  std::unordered_map<WatchId, std::shared_ptr<Watch>> watches;
  WatchId next_watch = 1;
  std::unique_ptr<asio::signal_set> signals;
  std::function<void(int)> on_signal;

  void arm_timer(const Clock& clock) {
    if (timers.empty()) return;
    const Time first = timers.begin()->first.first;
    if (timer_set_for && *timer_set_for <= first) return;
    timer_set_for = first;
    // The steady clock only wakes us; whether the time has come is asked of `clock`.
    const Time now = clock.now();
    const auto wait =
        first <= now ? Duration(0) : std::min<Duration>(first - now, std::chrono::hours(1));
    wake_after(wait, clock, first);
  }

  void wake_after(Duration wait, const Clock& clock, std::optional<Time> due) {
    timer.expires_after(wait);
    timer.async_wait([this, &clock, due](const error_code& error) {
      if (error) return;
      if (due && stall_grace > Duration(0) && clock.now() - *due >= stall_grace) {
        timer_set_for = kNoTime;  // no other timer may cut the grace short
        return wake_after(stall_grace, clock, std::nullopt);
      }
      timer_set_for.reset();
      run_timers(clock);
      arm_timer(clock);
    });
  }

  void run_timers(const Clock& clock) {
    const Time now = clock.now();
    const TimerId end = next_timer;  // timers set by these tasks wait for the next turn
    while (!timers.empty()) {
      const auto it = timers.begin();
      if (it->first.first > now || it->first.second >= end) return;
      Task task = std::move(it->second);
      timer_times.erase(it->first.second);
      timers.erase(it);
      task();
    }
  }

  void wait_readable(WatchId id, const std::shared_ptr<Watch>& watch) {
    watch->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                 [this, id, watch](const error_code& error) {
                                   if (error || watches.count(id) == 0) return;
                                   watch->ready();
                                   if (watches.count(id) != 0) wait_readable(id, watch);
                                 });
  }

  void wait_signal() {
    signals->async_wait([this](const error_code& error, int signal) {
      if (error) return;
      wait_signal();
      on_signal(signal);
    });
  }
};

EventLoop::EventLoop(const Clock& clock, Duration stall_grace)
    : clock_(clock), impl_(std::make_shared<Impl>(stall_grace)) {}

EventLoop::~EventLoop() = default;

void EventLoop::post(Task task) { asio::post(impl_->io, std::move(task)); }

EventLoop::TimerId EventLoop::timer_at(Time when, Task task) {
  const TimerId id = impl_->next_timer++;
  impl_->timers.emplace(std::make_pair(when, id), std::move(task));
  impl_->timer_times.emplace(id, when);
  impl_->arm_timer(clock_);
  return id;
}

EventLoop::TimerId EventLoop::timer_after(Duration delay, Task task) {
  return timer_at(clock_.now() + delay, std::move(task));
}

void EventLoop::cancel_timer(TimerId id) {
  const auto it = impl_->timer_times.find(id);
  if (it == impl_->timer_times.end()) return;
  impl_->timers.erase({it->second, id});
  impl_->timer_times.erase(it);
}

EventLoop::WatchId EventLoop::watch_readable(int fd, std::function<void()> ready) {
  const WatchId id = impl_->next_watch++;
  auto watch = std::make_shared<Watch>(impl_->io, fd, std::move(ready));
  impl_->watches.emplace(id, watch);
  impl_->wait_readable(id, watch);
  return id;
}

void EventLoop::unwatch(WatchId id) {
  const auto it = impl_->watches.find(id);
  if (it == impl_->watches.end()) return;
  // Taken out of the reactor now: the owner may close the descriptor as soon as this returns.
  it->second->descriptor.release();
  impl_->watches.erase(it);
}

void EventLoop::on_signals(const std::vector<int>& signals, std::function<void(int)> handler) {
  impl_->signals = std::make_unique<asio::signal_set>(impl_->io);
  for (const int signal : signals) impl_->signals->add(signal);
  impl_->on_signal = std::move(handler);
  impl_->wait_signal();
}

void EventLoop::run() {
  impl_->io.restart();
  impl_->io.run();
}

std::size_t EventLoop::run_ready() {
  impl_->io.restart();
  return impl_->io.poll();
}

void EventLoop::stop() { impl_->io.stop(); }

}  // namespace gpuq
