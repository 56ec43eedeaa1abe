#pragma once
// WatchHub: hands committed events to whoever follows them. Owner: the server's wiring. Thread: the
// engine's, for everything. Handlers must not block; those that fall behind take themselves out.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/engine/ports.h"
#include "core/state/state.h"
#include "gpuq/v1/job.pb.h"

namespace gpuq::rpc {

/// All that are given must hold; names are resolved when the event comes, so that a queue made
/// later counts as well.
struct WatchFilter {
  std::set<JobId> jobs;
  std::string queue;
  std::string share;
};

class WatchHub final : public Observer {
 public:
  using Id = std::uint64_t;
  /// `message`: the event on the wire with its token, shared by all watchers; null for events that
  /// are not shown. Returns false to be taken out.
  using Handler =
      std::function<bool(const Event&, const std::shared_ptr<const v1::WatchResponse>& message)>;

  explicit WatchHub(std::function<const State&()> state) : state_(std::move(state)) {}

  /// Every event committed from now on that matches.
  Id add(WatchFilter filter, Handler handler);
  /// Does nothing for one that is gone.
  void remove(Id id);
  [[nodiscard]] std::size_t size() const { return watchers_.size(); }

  /// Whether a watcher with `filter` is shown the event.
  [[nodiscard]] static bool matches(const State& state, const WatchFilter& filter,
                                    const Event& event);
  /// The message for one event; null when watchers are not shown it.
  [[nodiscard]] static std::shared_ptr<const v1::WatchResponse> message(const State& state,
                                                                        const Event& event);

  void on_committed(const std::vector<Event>& events) override;
  /// For the operator's eyes: watchers see that nothing happens.
  void on_read_only(const Error& why) override;
  void on_writable() override;

 private:
  struct Watcher {
    WatchFilter filter;
    Handler handler;
  };
  void deliver(const State& state, const Event& event);
  void deliver_to(const std::vector<Id>& ids, const State& state, const Event& event);
  void tell_dropped(const State& state, const Event& event);

  std::function<const State&()> state_;
  Id next_ = 1;
  std::map<Id, Watcher> watchers_;
  std::set<Id> broad_;  ///< Those that name no job.
  std::unordered_map<JobId, std::set<Id>> by_job_;
};

}  // namespace gpuq::rpc
