#pragma once
// All attempt instances of this node: carries out the server's orders, adopts what an earlier agent
// started, and tells of every change.
//
// An instance's directory is its truth: after a restart recover() finds everything again. Loop
// thread only. Owner: main.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/dir_watcher.h"
#include "agent/instance.h"
#include "agent/state_dir.h"
#include "agent/types.h"
#include "common/runtime/event_loop.h"

namespace gpuq::agent {

class Instances {
 public:
  struct Options {
    std::string shim_path;
    std::string checkpoint_root;     ///< Empty: checkpoints/ of the state directory.
    std::int64_t log_cap_bytes = 0;  ///< Where the order names none; 0 = no cap.
    unsigned umask = 022;
    std::vector<std::string> device_uuids;
    /// A start could not begin, for no fault of the job. May be empty.
    std::function<void(std::string why)> on_node_fault;
  };
  /// After each change of state, except for the state in which an order leaves an instance (that is
  /// the order's result).
  using OnChange = std::function<void(const InstanceStatus&)>;
  /// The directory of a forgotten instance is now the callee's, to be removed.
  using OnDiscard = std::function<void(const std::string& dir, const InstanceStatus&)>;

  Instances(EventLoop& loop, DirWatcher& watcher, StateDir& state, Options options,
            OnChange on_change, OnDiscard on_discard);
  ~Instances();

  /// Once, before the first order: adopts living instances, collects the ends of the others.
  void recover();

  // Orders. The caller has checked the fence. Each returns the instances' states after it.
  InstanceStatus start(const StartOrder& order);
  std::vector<InstanceStatus> go(const GoOrder& order);
  std::vector<InstanceStatus> stop(const StopOrder& order);
  void forget(const ForgetOrder& order);

  [[nodiscard]] std::vector<InstanceStatus> list() const;
  [[nodiscard]] bool empty() const { return instances_.empty(); }
  /// Null if there is none.
  [[nodiscard]] const Instance* find(InstanceKey key) const;
  /// Where a forgotten instance's files are until its output has been handed in; empty = gone.
  [[nodiscard]] std::string forgotten_dir(InstanceKey key) const;

 private:
  struct Entry;
  using Entries = std::map<InstanceKey, std::shared_ptr<Entry>>;

  [[nodiscard]] std::vector<std::shared_ptr<Entry>> of_attempt(std::int64_t attempt_id) const;
  [[nodiscard]] std::string device_conflict(const StartOrder& order) const;
  Result<void> journal(const StartOrder& order, const std::string& dir);
  [[nodiscard]] shim::LaunchSpec make_launch(const StartOrder& order, const std::string& dir,
                                             const std::string& tag) const;
  InstanceStatus failed_to_begin(const StartOrder& order, const Error& why);
  void recover_one(InstanceKey key);
  void run_supervisor(const std::shared_ptr<Entry>& entry);
  Result<void> watch(const std::shared_ptr<Entry>& entry);
  void on_event(const std::shared_ptr<Entry>& entry, const std::string& name, bool closed);
  void on_supervisor_gone(const std::shared_ptr<Entry>& entry);
  void refresh(const std::shared_ptr<Entry>& entry);

  EventLoop& loop_;
  DirWatcher& watcher_;
  StateDir& state_;
  Options options_;
  OnChange on_change_;
  OnDiscard on_discard_;
  Entries instances_;
  std::set<std::int64_t> stopped_unknown_;  // a late Start of these is refused
  std::shared_ptr<bool> alive_;             // timers and watches outlive us in the loop
};

}  // namespace gpuq::agent
