#include "agent/session.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/runtime/log.h"

namespace gpuq::agent {
namespace {

// So many heartbeats without an answer and the connection is given up.
constexpr std::uint64_t kUnansweredHeartbeats = 3;
// A connection that gets no Welcome within this time is given up.
constexpr Duration kWelcomeTimeout{20'000};

}  // namespace

Session::Session(EventLoop& loop, Transport& transport, StateDir& state, Instances& instances,
                 Options options)
    : loop_(loop),
      transport_(transport),
      state_(state),
      instances_(instances),
      options_(std::move(options)),
      backoff_(options_.backoff_min) {}

Session::~Session() {
  loop_.cancel_timer(timer_);
  transport_.close();
}

void Session::start() { connect(); }

void Session::connect() {
  connected_ = true;
  changed_since_hello_.clear();
  heartbeat_ = acknowledged_ = 0;
  transport_.open({[this](const FromServer& message) { on_message(message); },
                   [this](const std::string& reason) { retry_later(reason); }});
  Hello hello = options_.node;
  hello.attempts = instances_.list();
  if (options_.trouble) hello.trouble = told_trouble_ = options_.trouble();
  if (!state_.seen().store_id.empty()) hello.highest_fence = state_.seen();
  transport_.send(hello);
  timer_ = loop_.timer_after(kWelcomeTimeout, [this] { disconnect("no welcome from the server"); });
}

void Session::disconnect(const std::string& reason) {
  transport_.close();
  retry_later(reason);
}

void Session::retry_later(const std::string& reason) {
  loop_.cancel_timer(timer_);
  if (established_) {
    log_warning("session with the server lost: {}", reason);
  } else if (reason != last_reason_) {
    log_warning("no session with the server: {}; retrying", reason);
  }
  last_reason_ = reason;
  connected_ = established_ = false;
  // Between half and the whole of the back-off, so that agents do not come back in step.
  const auto half = static_cast<unsigned>(backoff_.count() / 2);
  const Duration wait{half + options_.random_below(half + 1)};
  backoff_ = std::min(backoff_ * 2, options_.backoff_max);
  timer_ = loop_.timer_after(wait, [this] { connect(); });
}

void Session::on_heartbeat_due() {
  if (heartbeat_ - acknowledged_ >= kUnansweredHeartbeats) {
    disconnect("the server does not answer heartbeats");
    return;
  }
  send_trouble();
  transport_.send(Heartbeat{++heartbeat_});
  timer_ = loop_.timer_after(heartbeat_interval_, [this] { on_heartbeat_due(); });
}

void Session::send_trouble() {
  if (!options_.trouble) return;
  std::string trouble = options_.trouble();
  // Not for each change of its numbers.
  if (trouble.empty() == told_trouble_.empty()) return;
  if (trouble.empty()) {
    log_info("new attempts can start again");
  } else {
    log_warning("no new attempts: {}", trouble);
  }
  transport_.send(NodeHealth{trouble});
  told_trouble_ = std::move(trouble);
}

void Session::report(const InstanceStatus& status) {
  if (established_) {
    send_report(status);
  } else if (connected_) {
    changed_since_hello_[{status.fence.attempt_id, status.instance}] = status;
  }
}

void Session::send_report(const InstanceStatus& status) {
  log_debug("attempt {} instance {}: {}", status.fence.attempt_id, status.instance,
            to_string(status.state));
  transport_.send(AttemptReport{next_report_++, status});
}

void Session::on_message(const FromServer& message) {
  std::visit(
      [this](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, Welcome> || std::is_same_v<M, Refused>) {
          handle(m);
        } else if (established_) {
          handle(m);
        }
      },
      message);
}

bool Session::accepts(const Fence& fence, std::string& why) {
  const Fence& seen = state_.seen();
  if (fence.store_id != seen.store_id) {
    why =
        "the order is from another store (" + fence.store_id + ", known is " + seen.store_id + ")";
    return false;
  }
  if (fence.epoch < seen.epoch) {
    why = "the order is from epoch " + std::to_string(fence.epoch) + ", epoch " +
          std::to_string(seen.epoch) + " has been seen";
    return false;
  }
  if (fence.epoch == seen.epoch) return true;
  auto stored = state_.set_seen(fence.store_id, fence.epoch);
  if (!stored) why = stored.error().message;
  return stored.has_value();
}

void Session::handle(const Welcome& welcome) {
  const Fence& seen = state_.seen();
  const bool other_store = !seen.store_id.empty() && seen.store_id != welcome.server.store_id;
  if (other_store && !instances_.empty()) {
    return disconnect("the server has another store (" + welcome.server.store_id +
                      ") than the attempts on this node (" + seen.store_id + ")");
  }
  if (!other_store && welcome.server.epoch < seen.epoch) {
    return disconnect("the server's epoch " + std::to_string(welcome.server.epoch) +
                      " is older than one already seen, " + std::to_string(seen.epoch));
  }
  if (other_store || seen.store_id.empty() || welcome.server.epoch > seen.epoch) {
    auto stored = state_.set_seen(welcome.server.store_id, welcome.server.epoch);
    if (!stored) return disconnect(stored.error().message);
  }
  log_info("session with the server established (epoch {})", welcome.server.epoch);
  established_ = true;
  last_reason_.clear();
  backoff_ = options_.backoff_min;
  heartbeat_interval_ = Duration(welcome.heartbeat_interval_ms);
  loop_.cancel_timer(timer_);
  // What is no longer ours goes first.
  for (const auto& fence : welcome.stop) {
    for (const auto& status : instances_.stop({fence, StopReason::kOrphan, std::nullopt})) {
      send_report(status);
    }
  }
  for (const auto& fence : welcome.forget) instances_.forget({fence});
  for (const auto& [key, status] : changed_since_hello_) send_report(status);
  changed_since_hello_.clear();
  on_heartbeat_due();
  if (options_.on_established) options_.on_established();
}

void Session::handle(const Refused& refused) {
  disconnect("the server refuses this node: " + refused.reason);
}

void Session::handle(const HeartbeatAck& ack) {
  acknowledged_ = std::max(acknowledged_, std::min(ack.sequence, heartbeat_));
}

void Session::handle(const StartOrder& order) {
  std::string why;
  if (accepts(order.fence, why)) {
    const InstanceStatus status = instances_.start(order);
    // Before the report: the server must not try again here at once.
    send_trouble();
    return send_report(status);
  }
  log_warning("start of attempt {} refused: {}", order.fence.attempt_id, why);
  InstanceStatus status;
  status.fence = order.fence;
  status.instance = order.instance;
  status.job_id = order.job_id;
  status.state = InstanceState::kRefused;
  status.status_reason = why;
  send_report(status);
}

void Session::handle(const GoOrder& order) {
  std::string why;
  if (!accepts(order.fence, why)) return log_warning("go ignored: {}", why);
  for (const auto& status : instances_.go(order)) send_report(status);
}

void Session::handle(const StopOrder& order) {
  std::string why;
  if (!accepts(order.fence, why)) return log_warning("stop ignored: {}", why);
  for (const auto& status : instances_.stop(order)) send_report(status);
}

void Session::handle(const ForgetOrder& order) {
  std::string why;
  if (!accepts(order.fence, why)) return log_warning("forget ignored: {}", why);
  instances_.forget(order);
}

// Final reports are kept until Forget, the others are renewed by the next Hello: nothing waits for
// this.
void Session::handle(const AckReport&) {}

}  // namespace gpuq::agent
