// Watch: events from a point in the past, then live, without gap or repetition. What was committed
// before the call was registered is read from the store up to that very event, while live ones wait
// in a bounded buffer; a reader that can not keep up is sent away with a token to resume from.
#include <fmt/format.h>

#include <deque>
#include <memory>
#include <utility>

#include "server/rpc/convert_event.h"
#include "server/rpc/job_calls.h"
#include "server/rpc/queued_stream.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

constexpr std::size_t kMaxQueued = 20'000;    // messages that wait for a slow reader
constexpr std::size_t kMaxBuffered = 20'000;  // live ones while the past is being read
constexpr std::int32_t kPastPage = 1'000;
constexpr int kMaxJobs = 1'000;

class WatchCall final
    : public QueuedStream<grpc::ServerWriteReactor<v1::WatchResponse>, v1::WatchResponse>,
      public std::enable_shared_from_this<WatchCall> {
 public:
  explicit WatchCall(ServiceContext& context) : context_(context) {}

  Result<> prepare(const v1::WatchRequest& request) {
    if (request.job_ids_size() > kMaxJobs) {
      return invalid(
          fmt::format("job_ids has {} entries: at most {}", request.job_ids_size(), kMaxJobs));
    }
    for (const std::int64_t id : request.job_ids()) filter_.jobs.insert(JobId(id));
    filter_.queue = request.job_queue();
    filter_.share = request.quota_share_name();
    from_beginning_ = request.from_beginning() && request.resume_token().empty();
    if (request.resume_token().empty()) return {};
    auto token = read_resume_token(context_.store_id, request.resume_token());
    if (!token) return token.error();
    resume_after_ = *token;
    has_token_ = true;
    return {};
  }

  void begin(std::shared_ptr<WatchCall> self) {
    self_ = self;
    stream_ = context_.streams.add([me = std::weak_ptr(self)](const Error& why) {
      if (const auto call = me.lock()) call->end(to_status(why), Rest::kDrop);
    });
    context_.engine.query([me = std::move(self)](const State& state) { me->subscribe(state); });
  }

  void refuse(std::shared_ptr<WatchCall> self, const Error& error) {
    self_ = std::move(self);
    end(to_status(error), Rest::kDrop);
  }

 private:
  // Engine's thread: from here on every event reaches handle().
  void subscribe(const State& state) {
    const EventId newest(state.counters().next_event - 1);
    if (!has_token_ && !from_beginning_) resume_after_ = newest;
    if (resume_after_ > newest) {
      return end(to_status({ErrorCode::kOutOfRange,
                            "resume_token lies in the future of this store: watch without it"}),
                 Rest::kDrop);
    }
    if (watcher_ == 0) {
      push_token(resume_after_);
      watcher_ = context_.watchers.add(
          filter_, [me = weak_from_this()](const Event& event, const auto& message) {
            const auto call = me.lock();
            return call != nullptr && call->handle(event, message);
          });
    }
    catch_up_to_ = newest;
    if (resume_after_ == newest) return go_live();
    context_.pool.post([me = shared_from_this()] { me->read_past(); });
  }

  // Pool.
  void read_past() {
    if (from_beginning_) {
      auto first = context_.history.first_event();
      if (!first) return end(to_status(first.error()), Rest::kDrop);
      resume_after_ = EventId(first->value - 1);
      from_beginning_ = false;
    }
    auto page = context_.history.events_after(resume_after_, kPastPage);
    if (!page) return end(to_status(page.error()), Rest::kDrop);
    context_.engine.query([me = shared_from_this(), past = std::move(*page)](const State& state) {
      me->push_past(state, past);
    });
  }

  // Engine's thread. The reader's pace bounds the reading: a full queue waits for written().
  void push_past(const State& state, const PastEvents& past) {
    for (const Event& event : past.events) {
      if (event.id > catch_up_to_) break;
      resume_after_ = event.id;
      if (!WatchHub::matches(state, filter_, event)) continue;
      if (auto message = WatchHub::message(state, event)) push(std::move(message), SIZE_MAX);
    }
    if (past.last > resume_after_) resume_after_ = std::min(past.last, catch_up_to_);
    if (resume_after_ >= catch_up_to_ || past.events.empty()) {
      if (!overflowed_) return go_live();
      // Too much came in meanwhile: read on to where the log ends now.
      overflowed_ = false;
      buffer_.clear();
      return subscribe(state);
    }
    waiting_for_room_ = true;
    written();
  }

  void go_live() {
    live_ = true;
    for (auto& message : std::exchange(buffer_, {})) push(std::move(message), SIZE_MAX);
  }

  // Engine's thread: one committed event.
  bool handle(const Event& event, const std::shared_ptr<const v1::WatchResponse>& message) {
    if (gone_) return false;
    if (message == nullptr || event.id <= catch_up_to_) return true;
    if (!live_) {
      if (buffer_.size() >= kMaxBuffered) overflowed_ = true;
      if (!overflowed_) buffer_.push_back(message);
      return true;
    }
    if (push(message, kMaxQueued)) return true;
    end(to_status({ErrorCode::kResourceExhausted,
                   "events were read too slowly: list again, or resume from the last token"}),
        Rest::kDrop);
    return false;
  }

  void push_token(EventId event) {
    auto message = std::make_shared<v1::WatchResponse>();
    message->set_resume_token(resume_token(context_.store_id, event));
    push(std::move(message), SIZE_MAX);
  }

  void written() override {
    if (queued() > kPastPage) return;
    context_.executor.post([me = shared_from_this()] {
      if (!std::exchange(me->waiting_for_room_, false)) return;
      me->context_.pool.post([me] { me->read_past(); });
    });
  }

  void OnDone() override {
    gone_ = true;
    context_.streams.remove(stream_);
    context_.executor.post([me = std::exchange(self_, nullptr)] {
      if (me->watcher_ != 0) me->context_.watchers.remove(me->watcher_);
    });
  }

  ServiceContext& context_;
  std::shared_ptr<WatchCall> self_;  // until OnDone
  WatchFilter filter_;
  bool has_token_ = false;
  bool from_beginning_ = false;
  std::atomic<bool> gone_{false};
  std::uint64_t stream_ = 0;
  // Engine's thread, and the pool's while a page is being read.
  EventId resume_after_;  // everything up to it is queued
  EventId catch_up_to_;   // everything up to it comes from the store
  WatchHub::Id watcher_ = 0;
  bool live_ = false;
  bool waiting_for_room_ = false;
  bool overflowed_ = false;
  std::deque<std::shared_ptr<const v1::WatchResponse>> buffer_;
};

}  // namespace

grpc::ServerWriteReactor<v1::WatchResponse>* watch(ServiceContext& context,
                                                   grpc::CallbackServerContext* call,
                                                   const v1::WatchRequest& request) {
  auto reactor = std::make_shared<WatchCall>(context);
  const auth::Caller caller = context.peers.identify(std::string(call->peer()));
  Result<> ready = auth::authorize(caller, auth::Verb::kWatchEvents, {});
  if (ready) ready = reactor->prepare(request);
  WatchCall* raw = reactor.get();
  if (ready) {
    raw->begin(std::move(reactor));
  } else {
    raw->refuse(std::move(reactor), ready.error());
  }
  return raw;
}

}  // namespace gpuq::rpc
