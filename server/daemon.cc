#include "server/daemon.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>

#include "common/runtime/clocks.h"
#include "common/runtime/defaults.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/files.h"
#include "common/runtime/log.h"
#include "core/engine/engine.h"
#include "server/history_adapter.h"
#include "server/rpc/server.h"
#include "server/store/sqlite_reader.h"
#include "server/store/sqlite_store.h"

namespace gpuq {

namespace {

constexpr Duration kCallsEnd{5'000};    // then calls are cut off
constexpr Duration kDrainEnds{15'000};  // then the stop no longer waits for the disk

// Core time: the boot clock, lifted above the last committed time once that is known.
class CoreTime final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return boot_.now() + Duration(lift_ms_.load()); }
  void lift_to(Time floor) {
    if (floor > now()) lift_ms_ += (floor - now()).count();
  }

 private:
  BootClock boot_;
  std::atomic<std::int64_t> lift_ms_{0};
};

rpc::RpcConfig rpc_config(const ServerConfig& config) {
  rpc::RpcConfig rpc;
  rpc.listen = config.listen;
  rpc.allow_remote = config.insecure;
  rpc.agents = {config.heartbeat_interval, config.unreachable_after, config.node_lost_timeout};
  rpc.log_dir = config.data_dir + "/logs";
  rpc.log_cap_bytes = config.output_cap_mib << 20;
  return rpc;
}

EngineConfig engine_config(const ServerConfig& config, const Clock& clock) {
  EngineConfig engine;
  engine.keep_ended_jobs = static_cast<std::size_t>(config.ended_jobs_in_memory);
  engine.max_shares_per_queue = static_cast<std::int32_t>(config.max_shares_per_queue);
  engine.max_units_per_share = static_cast<std::int32_t>(config.max_units_per_share);
  engine.default_grace = config.default_grace;
  engine.unconfirmed_stop_margin = config.unconfirmed_stop_margin;
  engine.wall_offset_ms = wall_now_ms() - to_ms(clock.now());
  return engine;
}

class Daemon {
 public:
  explicit Daemon(const ServerConfig& config) : config_(config), loop_(clock_, kStall) {}

  ~Daemon() {
    if (stopper_.joinable()) stopper_.join();
    // From the users to the used; the loop goes last, the store's callbacks are posted to it.
    if (rpc_ != nullptr) rpc_->finish_stop(Duration(0));
    engine_.reset();
    rpc_.reset();
    history_.reset();
    reader_.reset();
    store_.reset();
  }

  Result<> start() {
    auto store = store::SqliteStore::open(config_.data_dir, loop_);
    if (!store) return store.error();
    store_ = std::move(*store);
    auto reader = store::SqliteReader::open(store_->database_file());
    if (!reader) return reader.error();
    reader_ = std::move(*reader);
    history_ = std::make_unique<StoreHistory>(*reader_);
    rpc_ = std::make_unique<rpc::RpcServer>(loop_, clock_, rpc_config(config_));
    engine_ = std::make_unique<Engine>(*store_, rpc_->gateway(), rpc_->observer(), loop_, clock_,
                                       engine_config(config_, clock_));
    if (auto started = engine_->start(); !started) return started;
    clock_.lift_to(engine_->state().last_time());
    return rpc_->start(*engine_, *history_);
  }

  Result<> run(const std::string& port_file) {
    loop_.on_signals({SIGTERM, SIGINT}, [this](int signal) { stop(signal); });
    const auto ports = rpc_->ports();
    if (!port_file.empty() && !ports.empty()) {
      const std::string text = std::to_string(ports.front()) + "\n";
      if (auto written = write_file(port_file, text, Durability::kAtomicOnly, 0644); !written) {
        return written;
      }
    }
    const State& state = engine_->state();
    log_info("gpuqd {}: listening on {} (port {}), data in {}, epoch {}, {} jobs, {} nodes",
             version(), config_.listen.front(), ports.empty() ? 0 : ports.front(), config_.data_dir,
             engine_->identity().epoch, state.jobs().size(), state.nodes().size());
    loop_.run();
    log_info("stopped");
    return {};
  }

 private:
  // Calls are ended first, as their answers need the loop; then what is queued is committed.
  void stop(int signal) {
    if (stopping_) return;
    stopping_ = true;
    log_info("stopping (signal {}); running jobs go on", signal);
    loop_.timer_after(kCallsEnd + kDrainEnds, [this] {
      log_error("stopped without the last commit: the disk does not answer");
      loop_.stop();
    });
    rpc_->begin_stop();
    stopper_ = std::thread([this] {
      rpc_->finish_stop(kCallsEnd);
      loop_.post([this] { engine_->drain([this] { loop_.stop(); }); });
    });
  }

  const ServerConfig& config_;
  CoreTime clock_;
  EventLoop loop_;
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<store::SqliteReader> reader_;
  std::unique_ptr<StoreHistory> history_;
  std::unique_ptr<rpc::RpcServer> rpc_;
  std::unique_ptr<Engine> engine_;
  std::thread stopper_;
  bool stopping_ = false;
};

}  // namespace

Result<> run_daemon(const ServerConfig& config, const std::string& port_file) {
  if (auto made = make_dirs(config.data_dir); !made) return made;
  Daemon daemon(config);
  if (auto started = daemon.start(); !started) return started;
  return daemon.run(port_file);
}

}  // namespace gpuq
