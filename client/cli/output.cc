#include "client/cli/output.h"

#include <optional>
#include <ostream>
#include <utility>

#include "client/cli/alarm.h"
#include "client/cli/follow.h"

namespace gpuq::cli {

namespace {

/// One output across several connections: knows what has been written.
class Copying {
 public:
  Copying(client::Client& client, const OutputSource& source, LineWriter& writer, LineWriter& notes)
      : client_(client), source_(source), writer_(writer), notes_(notes), offset_(source.offset) {}

  Result<> run(client::StreamStop& stop) {
    for (;;) {
      restart_ = false;
      auto done = client_.read_logs(
          request(), [this](const v1::LogChunk& chunk) { return take(chunk); }, &stop);
      if (restart_) continue;
      const bool lost = !done && done.error().code == ErrorCode::kUnavailable;
      if (!lost || !source_.follow || stop.stopped()) {
        writer_.finish(source_.prefix, rest_);
        return done;
      }
      if (stop.wait(kRetryPause)) return {};
      client_.wait_connected(Duration(2'000));
      reconnected_ = true;
      forget_ended_attempt();
    }
  }

 private:
  v1::ReadLogsRequest request() const {
    v1::ReadLogsRequest request;
    request.set_job_id(source_.job_id);
    request.set_attempt(source_.attempt);
    request.set_instance(source_.instance);
    request.set_stream(source_.stream);
    request.set_offset(offset_);
    request.set_follow(source_.follow);
    return request;
  }

  bool take(const v1::LogChunk& chunk) {
    if (chunk.attempt() != attempt_ && chunk.attempt() != 0) {
      const bool beginning_missed = reconnected_ && attempt_ != 0 && chunk.offset() > 0;
      if (attempt_ != 0) offset_ = 0;
      attempt_ = chunk.attempt();
      if (beginning_missed) {
        restart_ = true;
        return false;
      }
    }
    if (chunk.data().empty()) return true;
    // A negative offset asked for the last part, wherever that begins.
    if (offset_ >= 0 && chunk.offset() > offset_) say_dropped(chunk.offset() - offset_);
    offset_ = chunk.offset() + static_cast<std::int64_t>(chunk.data().size());
    return writer_.write(source_.prefix, chunk.data(), rest_);
  }

  void say_dropped(std::int64_t bytes) {
    writer_.finish(source_.prefix, rest_);
    notes_.line("gpuq: " + source_.prefix + std::to_string(bytes) +
                " bytes of output were dropped here (cap)");
  }

  /// While the connection was down a new attempt may have begun: its output starts at 0.
  void forget_ended_attempt() {
    if (source_.attempt != 0 || attempt_ == 0) return;
    v1::GetJobRequest request;
    request.set_job_id(source_.job_id);
    auto job = client_.get_job(request);
    if (job && job->attempt_count() != attempt_) {
      attempt_ = 0;
      offset_ = 0;
    }
  }

  client::Client& client_;
  const OutputSource& source_;
  LineWriter& writer_;
  LineWriter& notes_;
  std::int64_t offset_;
  std::int32_t attempt_ = 0;
  bool reconnected_ = false;
  bool restart_ = false;
  std::string rest_;
};

}  // namespace

bool LineWriter::write(const std::string& prefix, const std::string& data, std::string& rest) {
  const std::lock_guard lock(mutex_);
  if (prefix.empty()) {
    out_ << data << std::flush;
    return out_.good();
  }
  rest += data;
  std::size_t from = 0;
  for (auto end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', from)) {
    out_ << prefix << std::string_view(rest).substr(from, end + 1 - from);
    from = end + 1;
  }
  rest.erase(0, from);
  out_ << std::flush;
  return out_.good();
}

void LineWriter::finish(const std::string& prefix, std::string& rest) {
  if (rest.empty()) return;
  const std::lock_guard lock(mutex_);
  out_ << prefix << rest << '\n' << std::flush;
  rest.clear();
}

void LineWriter::line(const std::string& text) {
  const std::lock_guard lock(mutex_);
  out_ << text << '\n' << std::flush;
}

Result<> copy_output(client::Client& client, const OutputSource& source, LineWriter& writer,
                     LineWriter& notes, client::StreamStop& stop) {
  return Copying(client, source, writer, notes).run(stop);
}

struct OutputFollower::Copy {
  OutputSource source;
  client::StreamStop stop;
  std::optional<Error> error;
  std::thread thread;
};

OutputFollower::OutputFollower(client::Client& client, std::ostream& out, std::ostream& err)
    : client_(client), out_(out), err_(err) {}

OutputFollower::~OutputFollower() { (void)finish(Duration(0)); }

void OutputFollower::start(const OutputSource& source) {
  copies_.push_back(std::make_unique<Copy>());
  Copy& copy = *copies_.back();
  copy.source = source;
  LineWriter& writer = source.stream == v1::LOG_STREAM_STDERR ? err_ : out_;
  copy.thread = std::thread([this, &copy, &writer] {
    auto done = copy_output(client_, copy.source, writer, err_, copy.stop);
    if (!done) copy.error = done.error();
  });
}

Result<> OutputFollower::finish(Duration limit) {
  const Alarm alarm(limit, [this] {
    for (auto& copy : copies_) copy->stop.stop();
  });
  return finish();
}

Result<> OutputFollower::finish() {
  std::optional<Error> first;
  for (auto& copy : copies_) {
    if (copy->thread.joinable()) copy->thread.join();
    if (copy->error && !first) first = copy->error;
  }
  if (first) return *first;
  return {};
}

}  // namespace gpuq::cli
