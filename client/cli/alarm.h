#pragma once
// A call after some time, unless the object goes first.
#include <functional>
#include <thread>

#include "client/lib/stream_stop.h"
#include "core/base/time.h"

namespace gpuq::cli {

/// `action` runs on a thread of its own, once, or never. The destructor waits for one that runs.
class Alarm {
 public:
  Alarm(Duration delay, std::function<void()> action)
      : thread_([this, delay, action = std::move(action)] {
          if (!cancelled_.wait(delay)) action();
        }) {}
  ~Alarm() {
    cancelled_.stop();
    thread_.join();
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  client::StreamStop cancelled_;
  std::thread thread_;
};

}  // namespace gpuq::cli
