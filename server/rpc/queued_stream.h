#pragma once
// QueuedStream: the writing half of a streaming call: a queue of messages, one write in flight, an
// end. push() and end() come from any thread and never block; what to do when the queue is full is
// the caller's decision.
#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace gpuq::rpc {

/// `Reactor`: ServerWriteReactor<Message> or ServerBidiReactor<..., Message>. Derived classes
/// override OnDone and may override written().
template <typename Reactor, typename Message>
class QueuedStream : public Reactor {
 public:
  using MessagePtr = std::shared_ptr<const Message>;

  /// False when `max_queued` messages wait already, or the stream has ended.
  bool push(MessagePtr message, std::size_t max_queued) {
    const std::lock_guard lock(mutex_);
    if (ending_) return true;  // nobody misses it
    if (queue_.size() >= max_queued) return false;
    queue_.push_back(std::move(message));
    if (!writing_) write_front();
    return true;
  }

  enum class Rest { kSend, kDrop };  ///< What becomes of messages still queued.
  /// Ends the stream. Later calls do nothing.
  void end(grpc::Status status, Rest rest) {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = std::move(status);
    if (rest == Rest::kDrop && queue_.size() > (writing_ ? 1U : 0U)) {
      queue_.erase(queue_.begin() + (writing_ ? 1 : 0), queue_.end());
    }
    if (!writing_ && queue_.empty()) finish_locked();
  }

  [[nodiscard]] std::size_t queued() const {
    const std::lock_guard lock(mutex_);
    return queue_.size();
  }

 protected:
  /// A message has been written; called without the lock.
  virtual void written() {}

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      queue_.pop_front();
      if (!ok) {
        queue_.clear();
        if (!ending_) ending_ = grpc::Status(grpc::StatusCode::CANCELLED, "the caller has gone");
      }
      if (!queue_.empty()) {
        write_front();
      } else if (ending_) {
        finish_locked();
        return;
      }
    }
    written();
  }

  void OnCancel() override {
    end(grpc::Status(grpc::StatusCode::CANCELLED, "the call was cancelled"), Rest::kDrop);
  }

 private:
  void write_front() {
    writing_ = true;
    this->StartWrite(queue_.front().get());
  }
  void finish_locked() {
    if (std::exchange(finished_, true)) return;
    this->Finish(*ending_);
  }

  mutable std::mutex mutex_;
  std::deque<MessagePtr> queue_;  // the front is being written while writing_
  bool writing_ = false;
  bool finished_ = false;
  std::optional<grpc::Status> ending_;
};

}  // namespace gpuq::rpc
