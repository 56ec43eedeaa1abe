#include "client/lib/stream_stop.h"

#include <grpcpp/client_context.h>

namespace gpuq::client {

void StreamStop::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  if (context_ != nullptr) context_->TryCancel();
}

bool StreamStop::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

bool StreamStop::wait(Duration limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return stopped_; });
}

StreamScope::StreamScope(StreamStop* stop, grpc::ClientContext* context) : stop_(stop) {
  if (stop_ == nullptr) return;
  const std::lock_guard lock(stop_->mutex_);
  stop_->context_ = context;
  if (stop_->stopped_) context->TryCancel();
}

StreamScope::~StreamScope() {
  if (stop_ == nullptr) return;
  const std::lock_guard lock(stop_->mutex_);
  stop_->context_ = nullptr;
}

}  // namespace gpuq::client
