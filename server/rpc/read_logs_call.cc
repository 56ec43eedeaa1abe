// ReadLogs: output of one stream of one instance, from the agent while it has it, else from the
// files that agents handed in; with `follow` from attempt to attempt until the job has ended.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/rpc/job_calls.h"
#include "server/rpc/queued_stream.h"
#include "server/rpc/text_check.h"

namespace gpuq::rpc {

namespace {

constexpr std::size_t kMaxChunk = 256 * 1024;
constexpr std::size_t kMaxQueuedChunks = 32;  // then the agent is told to stop sending
constexpr Duration kRetry{500};               // for output that is neither here nor there yet
constexpr int kMaxTries = 60;                 // while the node of an ended attempt is away

// One attempt to read from, as the state or the archive has it.
struct Source {
  AttemptId attempt;
  std::int32_t number = 0;
  std::string node;
  bool live = false;
  bool refused = false;  // the node's agent said that it has none of it
};

class LogCall final : public QueuedStream<grpc::ServerWriteReactor<v1::LogChunk>, v1::LogChunk>,
                      public std::enable_shared_from_this<LogCall> {
 public:
  LogCall(ServiceContext& context, const v1::ReadLogsRequest& request)
      : context_(context), request_(request), offset_(request.offset()) {}

  Result<> prepare() const {
    if (request_.job_id() <= 0) return invalid("job_id is missing: give a job's number");
    for (const std::string& fault :
         {check_range("attempt", request_.attempt(), 0, 1'000'000'000),
          check_range("instance", request_.instance(), 0, kMaxInstances - 1)}) {
      if (!fault.empty()) return invalid(fault);
    }
    if (request_.stream() != v1::LOG_STREAM_STDOUT && request_.stream() != v1::LOG_STREAM_STDERR) {
      return invalid("stream is missing: use STDOUT or STDERR");
    }
    return {};
  }

  void begin(std::shared_ptr<LogCall> self) {
    self_ = self;
    stream_ = context_.streams.add([me = std::weak_ptr(self)](const Error& why) {
      if (const auto call = me.lock()) call->end(to_status(why), Rest::kDrop);
    });
    context_.engine.query([me = std::move(self)](const State& state) {
      if (me->request_.follow()) me->subscribe();
      me->locate(state);
    });
  }

  void refuse(std::shared_ptr<LogCall> self, const Error& error) {
    self_ = std::move(self);
    end(to_status(error), Rest::kDrop);
  }

 private:
  [[nodiscard]] JobId job_id() const { return JobId(request_.job_id()); }

  void subscribe() {
    watcher_ = context_.watchers.add({{job_id()}, "", ""},
                                     [me = weak_from_this()](const Event&, const auto&) {
                                       const auto call = me.lock();
                                       if (call == nullptr || call->gone_) return false;
                                       call->wake();
                                       return true;
                                     });
  }

  // Engine's thread: something about the job has changed, or time has passed.
  void wake() {
    if (!std::exchange(waiting_, false)) return;
    look_again();
  }

  void look_again() {
    context_.engine.query([me = shared_from_this()](const State& state) { me->locate(state); });
  }

  void wait(std::optional<Duration> at_most) {
    context_.executor.post([me = shared_from_this(), at_most] {
      if (me->gone_) return;
      me->waiting_ = true;
      if (!at_most) return;
      me->context_.executor.call_at(me->context_.clock.now() + *at_most, [me] { me->wake(); });
    });
  }

  // Engine's thread: which attempt comes next.
  void locate(const State& state) {
    if (gone_) return;
    const Job* job = state.find_job(job_id());
    if (job == nullptr)
      return context_.pool.post([me = shared_from_this()] { me->locate_archived(); });
    const auto attempts = state.attempts_of(job->id);
    const Attempt* wanted = nullptr;
    for (const Attempt* attempt : attempts) {
      if (fits(attempt->number, attempts.back()->number)) {
        wanted = attempt;
        break;
      }
    }
    if (wanted != nullptr) return open(state, *wanted);
    if (is_terminal(job->state) || fixed_and_done()) return nothing_left();
    if (request_.follow()) return waiting_on_state(state, *job);
    end(to_status({ErrorCode::kFailedPrecondition,
                   fmt::format("job {} has no output yet: it is {}; follow it to wait",
                               job_id().value, to_string(job->state))}),
        Rest::kSend);
  }

  // An event between the look and the wait must not be missed: both are on this thread.
  void waiting_on_state(const State&, const Job&) { waiting_ = true; }

  [[nodiscard]] bool fixed_and_done() const { return request_.attempt() > 0 && done_ > 0; }

  // The first of the attempts, in order, that is to be read next.
  [[nodiscard]] bool fits(std::int32_t number, std::int32_t latest) const {
    if (request_.attempt() > 0) return number == request_.attempt() && done_ == 0;
    return done_ == 0 ? number == latest : number > done_ && request_.follow();
  }

  void open(const State& state, const Attempt& attempt) {
    const auto index = static_cast<std::size_t>(request_.instance());
    if (index >= attempt.instances.size()) {
      return end(to_status(invalid(fmt::format("instance is {}: the attempt has {}",
                                               request_.instance(), attempt.instances.size()))),
                 Rest::kSend);
    }
    Source source{attempt.id, attempt.number, "", attempt.live()};
    const Node* node = state.find_node(attempt.instances[index].use.node);
    if (node != nullptr) source.node = node->name;
    read_from_agent(std::move(source));
  }

  void locate_archived() {
    auto archived = context_.history.archived(job_id());
    if (!archived) {
      return end(to_status(archived.error().code == ErrorCode::kNotFound ? no_job(job_id())
                                                                         : archived.error()),
                 Rest::kDrop);
    }
    const auto& attempts = archived->attempts;
    for (const Attempt& attempt : attempts) {
      if (!fits(attempt.number, attempts.back().number)) continue;
      return read_from_file({attempt.id, attempt.number, "", false});
    }
    nothing_left();
  }

  void nothing_left() {
    if (request_.attempt() > 0 && done_ == 0) {
      return end(to_status({ErrorCode::kNotFound, fmt::format("job {} has no attempt {}",
                                                              job_id().value, request_.attempt())}),
                 Rest::kSend);
    }
    end(grpc::Status::OK, Rest::kSend);
  }

  // Any thread. Agents keep the output until they have handed it in: so they are asked first.
  void read_from_agent(Source source) {
    v1::AgentLogRead read;
    read.set_attempt_id(source.attempt.value);
    read.set_instance(static_cast<std::uint32_t>(request_.instance()));
    read.set_stream(request_.stream() == v1::LOG_STREAM_STDERR ? v1::AGENT_LOG_STREAM_STDERR
                                                               : v1::AGENT_LOG_STREAM_STDOUT);
    {
      const std::lock_guard lock(mutex_);
      source_ = source;
      read.set_offset(offset_);
      paused_ = false;
      ++round_;
    }
    read.set_follow(request_.follow());
    const auto id = context_.log_hub.read(
        source.node, std::move(read),
        [me = weak_from_this(), round = round_](const v1::AgentLogChunk* chunk) {
          const auto call = me.lock();
          if (call == nullptr) return;
          if (chunk != nullptr) {
            call->chunk(round, *chunk);
          } else {
            call->lost(round);
          }
        });
    if (id == 0) return read_from_file(std::move(source));
    const std::lock_guard lock(mutex_);
    request_id_ = id;
  }

  // Thread of the agent's log session.
  void chunk(std::uint64_t round, const v1::AgentLogChunk& chunk) {
    Source source;
    LogHub::RequestId cancelled = 0;
    {
      const std::lock_guard lock(mutex_);
      if (round != round_ || paused_) return;
      source = source_;
      if (!chunk.data().empty()) {
        offset_ = chunk.offset() + static_cast<std::int64_t>(chunk.data().size());
      }
      if (!chunk.data().empty() && !chunk.end() && queued() >= kMaxQueuedChunks) {
        paused_ = true;
        cancelled = std::exchange(request_id_, 0);
      }
    }
    if (!chunk.data().empty()) push_data(source.number, chunk.offset(), chunk.data());
    if (cancelled != 0) {
      context_.log_hub.cancel(cancelled);
      written();  // the queue may have emptied meanwhile
    } else if (!chunk.error().empty()) {
      source.refused = true;
      context_.pool.post([me = shared_from_this(), source] { me->read_from_file(source); });
    } else if (chunk.end() && (chunk.instance_ended() || !request_.follow())) {
      finished(source);
    } else if (chunk.end()) {
      wait(kRetry);  // the agent can not follow this file: asked for the rest
    }
  }

  // Thread of the agent's log session: it ended before the agent said that this is all.
  void lost(std::uint64_t round) {
    Source source;
    {
      const std::lock_guard lock(mutex_);
      if (round != round_ || paused_) return;
      source = source_;
    }
    context_.pool.post([me = shared_from_this(), source] { me->read_from_file(source); });
  }

  void push_data(std::int32_t attempt, std::int64_t offset, const std::string& data) {
    auto message = std::make_shared<v1::LogChunk>();
    message->set_attempt(attempt);
    message->set_offset(offset);
    message->set_data(data);
    push(std::move(message), SIZE_MAX);
  }

  void written() override {
    Source source;
    {
      const std::lock_guard lock(mutex_);
      if (!paused_ || queued() > kMaxQueuedChunks / 4) return;
      paused_ = false;
      source = source_;
    }
    context_.pool.post([me = shared_from_this(), source] {
      if (!me->gone_) me->resume(source);
    });
  }

  void resume(const Source& source) {
    if (reading_file_) {
      read_from_file(source);
    } else {
      read_from_agent(source);
    }
  }

  // Pool.
  void read_from_file(const Source& source) {
    const LogKey key{job_id(), source.attempt, request_.instance(),
                     request_.stream() == v1::LOG_STREAM_STDERR};
    reading_file_ = true;
    for (;;) {
      auto part = context_.log_files.read(key, next_offset(), kMaxChunk);
      if (!part) return no_file(source, part.error());
      if (!part->data.empty()) push_data(source.number, part->offset, part->data);
      const std::lock_guard lock(mutex_);
      offset_ = part->offset + static_cast<std::int64_t>(part->data.size());
      if (part->end) break;
      if (queued() < kMaxQueuedChunks) continue;
      source_ = source;
      paused_ = true;
      return context_.pool.post([me = shared_from_this()] { me->written(); });  // may be empty now
    }
    reading_file_ = false;
    finished(source);
  }

  std::int64_t next_offset() {
    const std::lock_guard lock(mutex_);
    return offset_;
  }

  void no_file(const Source& source, const Error& error) {
    reading_file_ = false;
    if (error.code == ErrorCode::kOutOfRange) {
      return end(to_status({ErrorCode::kNotFound,
                            fmt::format("output of job {} attempt {} is no longer kept",
                                        job_id().value, source.number)}),
                 Rest::kSend);
    }
    if (error.code != ErrorCode::kNotFound) return end(to_status(error), Rest::kSend);
    // Whether the agent is connected by now says nothing: it was asked when it was not.
    const bool away = !source.node.empty() && !source.refused;
    // Not there yet: the agent has still to start it, or to come back.
    if (request_.follow() && (source.live || (away && ++tries_ < kMaxTries))) return wait(kRetry);
    if (away) {
      return end(to_status({ErrorCode::kUnavailable,
                            fmt::format("node {} is not connected: its output can not be read now",
                                        source.node)}),
                 Rest::kSend);
    }
    finished(source);  // the agent hands in what there is: there was nothing
  }

  // Everything of one attempt was sent.
  void finished(const Source& source) {
    done_ = source.number;
    offset_ = 0;
    tries_ = 0;
    if (!request_.follow() || request_.attempt() > 0) return end(grpc::Status::OK, Rest::kSend);
    look_again();
  }

  void OnDone() override {
    gone_ = true;
    context_.streams.remove(stream_);
    LogHub::RequestId id = 0;
    {
      const std::lock_guard lock(mutex_);
      id = std::exchange(request_id_, 0);
      ++round_;
    }
    if (id != 0) context_.log_hub.cancel(id);
    context_.executor.post([me = std::exchange(self_, nullptr)] {
      if (me->watcher_ != 0) me->context_.watchers.remove(me->watcher_);
    });
  }

  ServiceContext& context_;
  const v1::ReadLogsRequest request_;
  std::shared_ptr<LogCall> self_;  // until OnDone
  std::atomic<bool> gone_{false};
  std::uint64_t stream_ = 0;
  WatchHub::Id watcher_ = 0;           // engine's thread
  bool waiting_ = false;               // engine's thread
  std::atomic<std::int32_t> done_{0};  // number of the last attempt that was sent whole
  std::atomic<int> tries_{0};
  std::atomic<bool> reading_file_{false};

  std::mutex mutex_;
  std::int64_t offset_;
  Source source_;
  bool paused_ = false;
  std::uint64_t round_ = 0;
  LogHub::RequestId request_id_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<v1::LogChunk>* read_logs(ServiceContext& context,
                                                  grpc::CallbackServerContext* call,
                                                  const v1::ReadLogsRequest& request) {
  auto reactor = std::make_shared<LogCall>(context, request);
  const auth::Caller caller = context.peers.identify(std::string(call->peer()));
  Result<> ready = auth::authorize(caller, auth::Verb::kReadLog, {});
  if (ready) ready = reactor->prepare();
  LogCall* raw = reactor.get();
  if (ready) {
    raw->begin(std::move(reactor));
  } else {
    raw->refuse(std::move(reactor), ready.error());
  }
  return raw;
}

}  // namespace gpuq::rpc
