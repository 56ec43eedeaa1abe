#include "server/rpc/worker_pool.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

namespace gpuq::rpc {

struct WorkerPool::Impl {
  explicit Impl(std::size_t threads) : pool(threads) {}
  boost::asio::thread_pool pool;
};

WorkerPool::WorkerPool(std::size_t threads) : impl_(std::make_unique<Impl>(threads)) {}
WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::post(std::function<void()> task) {
  boost::asio::post(impl_->pool, std::move(task));
}

void WorkerPool::stop() { impl_->pool.join(); }

}  // namespace gpuq::rpc
