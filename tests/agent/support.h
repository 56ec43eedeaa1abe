#pragma once
// Common to the agent's tests: temporary directories, waiting on a real loop, orders with short
// times.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/dir_watcher.h"
#include "agent/instances.h"
#include "agent/shim/process.h"
#include "agent/state_dir.h"
#include "agent/types.h"
#include "common/runtime/clocks.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/files.h"

namespace gpuq::agent {

class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path().string() + "/gpuq-agent-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string bin(const std::string& name) { return std::string(GPUQ_BIN_DIR) + "/" + name; }

/// Runs the loop until `done`; false after `limit`.
inline bool run_until(EventLoop& loop, const std::function<bool()>& done,
                      Duration limit = std::chrono::seconds(30)) {
  const Time deadline = loop.now() + limit;
  bool reached = false;
  std::function<void()> look = [&] {
    reached = done();
    if (reached || loop.now() >= deadline) return loop.stop();
    loop.timer_after(Duration(2), look);
  };
  loop.post(look);
  loop.run();
  return reached;
}

inline StartOrder make_order(std::int64_t attempt_id, std::vector<std::string> command) {
  StartOrder order;
  order.fence = {"store-a", 1, attempt_id};
  order.job_id = 70 + attempt_id;
  order.job_name = "test-job";
  order.queue = "training";
  order.share = "research";
  order.command = std::move(command);
  order.working_directory = "/tmp";
  order.grace_ms = 20'000;
  order.run_immediately = true;
  return order;
}

inline std::vector<std::string> sh(const std::string& script) { return {"/bin/sh", "-c", script}; }

/// Instances over a state directory, as an agent has them; made anew, it is the next agent.
class TestAgent {
 public:
  TestAgent(EventLoop& loop, const std::string& state_dir, std::string shim = bin("gpuq-shim"))
      : state(std::move(StateDir::open(state_dir).value())),
        watcher(std::move(DirWatcher::create(loop).value())) {
    Instances::Options options;
    options.shim_path = std::move(shim);
    options.device_uuids = {"GPU-0", "GPU-1"};
    options.on_node_fault = [this](std::string why) { node_faults.push_back(std::move(why)); };
    instances = std::make_unique<Instances>(
        loop, *watcher, state, options,
        [this](const InstanceStatus& status) {
          changes.push_back(status);
          if (on_change) on_change(status);
        },
        [this](const std::string& dir, const InstanceStatus&) { discarded.push_back(dir); });
    instances->recover();
  }

  [[nodiscard]] InstanceStatus status(std::int64_t attempt_id, std::uint32_t instance = 0) const {
    const Instance* found = instances->find({attempt_id, instance});
    EXPECT_NE(found, nullptr);
    return found != nullptr ? found->status() : InstanceStatus{};
  }
  [[nodiscard]] bool is(std::int64_t attempt_id, InstanceState state_wanted) const {
    return status(attempt_id).state == state_wanted;
  }
  [[nodiscard]] std::string output(std::int64_t attempt_id) const {
    const auto text = read_file(instances->find({attempt_id, 0})->dir() + "/stdout.log");
    return text ? *text : "";  // not made yet
  }

  StateDir state;
  std::unique_ptr<DirWatcher> watcher;
  std::unique_ptr<Instances> instances;
  std::vector<InstanceStatus> changes;
  std::vector<std::string> discarded;
  std::vector<std::string> node_faults;
  std::function<void(const InstanceStatus&)> on_change;
};

inline bool process_gone(std::int64_t pid) {
  const auto info = shim::process_info(static_cast<pid_t>(pid));
  return !info || info->state == 'Z';
}

}  // namespace gpuq::agent
