#pragma once
// SpecCache: specs of jobs submitted lately, so that a start on an idle pool reads no disk. Bounded
// by bytes, oldest out first. Thread: the engine's.
#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/ids.h"
#include "core/base/shared_bytes.h"

namespace gpuq::rpc {

class SpecCache {
 public:
  explicit SpecCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  void put(JobId job, SharedBytes spec) {
    const std::size_t size = spec.get().size();
    if (size > max_bytes_) return;
    bytes_ += size;
    order_.push_back(job);
    specs_.emplace(job, std::move(spec));
    while (bytes_ > max_bytes_) drop_oldest();
  }
  /// Null when it is not here.
  [[nodiscard]] const std::string* find(JobId job) const {
    const auto it = specs_.find(job);
    return it == specs_.end() ? nullptr : &it->second.get();
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void drop_oldest() {
    const auto it = specs_.find(order_.front());
    order_.pop_front();
    if (it == specs_.end()) return;
    bytes_ -= it->second.get().size();
    specs_.erase(it);
  }

  const std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::deque<JobId> order_;
  std::unordered_map<JobId, SharedBytes> specs_;
};

}  // namespace gpuq::rpc
