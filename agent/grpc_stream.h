#pragma once
// One bidirectional client stream with a queue of writes: what both streams of the agent share.
// Any thread may send and cancel; the virtual functions run on gRPC's threads. Keeps itself alive
// until on_done was called.
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_callback.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace gpuq::agent {

/// Counts streams that may still call back. Any thread.
class LiveStreams {
 public:
  void add() {
    std::lock_guard lock(mutex_);
    ++count_;
  }
  void remove() {
    std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
};

template <typename Out, typename In>
class GrpcStream : public grpc::ClientBidiReactor<Out, In>,
                   public std::enable_shared_from_this<GrpcStream<Out, In>> {
 public:
  /// After the derived class has made its call on `context()`.
  void begin(std::shared_ptr<LiveStreams> live) {
    live_ = std::move(live);
    live_->add();
    self_ = this->shared_from_this();
    this->AddHold();  // writes start outside of reactions
    this->StartRead(&in_);
    this->StartCall();
  }

  void send(Out message) {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) this->StartWrite(&queue_.front());
  }

  void cancel() { context_.TryCancel(); }

 protected:
  grpc::ClientContext& context() { return context_; }
  virtual void on_message(const In& message) = 0;
  virtual void on_written() {}
  virtual void on_done(const std::string& reason) = 0;

 private:
  void OnReadDone(bool ok) override {
    if (ok) {
      on_message(in_);
      this->StartRead(&in_);
      return;
    }
    end();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;  // the read fails as well and ends the stream
    {
      std::lock_guard lock(mutex_);
      queue_.pop_front();
      if (!queue_.empty() && !ended_) this->StartWrite(&queue_.front());
    }
    on_written();
  }

  void OnDone(const grpc::Status& status) override {
    on_done(status.ok() ? "the server closed the stream" : status.error_message());
    const auto live = live_;
    self_.reset();
    live->remove();
  }

  void end() {
    {
      std::lock_guard lock(mutex_);
      if (ended_) return;
      ended_ = true;
    }
    this->RemoveHold();
  }

  grpc::ClientContext context_;
  std::mutex mutex_;
  std::deque<Out> queue_;  // the front is being written
  bool ended_ = false;
  In in_;
  std::shared_ptr<LiveStreams> live_;
  std::shared_ptr<GrpcStream> self_;
};

}  // namespace gpuq::agent
