#include "agent/disposer.h"

#include <algorithm>
#include <utility>

#include "agent/journal.h"
#include "agent/shim/records.h"
#include "common/runtime/files.h"
#include "common/runtime/log.h"

namespace gpuq::agent {

Disposer::Disposer(std::int64_t upload_bytes)
    : upload_bytes_(upload_bytes), thread_([this] { run(); }) {}

Disposer::~Disposer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Disposer::dispose(const std::string& dir) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(dir);
  }
  changed_.notify_all();
}

void Disposer::retry(LogUploader uploader) {
  {
    std::lock_guard lock(mutex_);
    uploader_ = std::move(uploader);
    queue_.insert(queue_.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  changed_.notify_all();
}

void Disposer::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const std::string dir = queue_.front();
    queue_.pop_front();
    const LogUploader uploader = uploader_;
    lock.unlock();
    const bool done = upload(dir, uploader);
    if (done) {
      if (auto removed = remove_tree(dir); !removed) log_warning("{}", removed.error().message);
    }
    lock.lock();
    if (!done) waiting_.insert(dir);
  }
}

// False: to be tried again.
bool Disposer::upload(const std::string& dir, const LogUploader& uploader) const {
  const auto journal = read_journal(dir);
  if (!journal || upload_bytes_ == 0) return true;
  if (!uploader) return false;
  for (const bool is_stderr : {false, true}) {
    LogUpload upload;
    upload.fence = journal->order.fence;
    upload.job_id = journal->order.job_id;
    upload.instance = journal->order.instance;
    upload.stderr_stream = is_stderr;
    upload.path = dir + "/" + (is_stderr ? shim::kStderrFile : shim::kStdoutFile);
    upload.max_bytes = upload_bytes_;
    auto sent = uploader(upload);
    if (!sent && sent.error().code == ErrorCode::kUnavailable) return false;
    if (!sent) {
      log_warning("output of attempt {} was not uploaded: {}", upload.fence.attempt_id,
                  sent.error().message);
    }
  }
  return true;
}

}  // namespace gpuq::agent
