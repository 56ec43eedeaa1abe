#include "agent/agent.h"

#include <utility>

#include "agent/dir_watcher.h"
#include "agent/disposer.h"
#include "agent/grpc_transport.h"
#include "agent/instances.h"
#include "agent/log_reader.h"
#include "agent/node_facts.h"
#include "agent/session.h"
#include "agent/start_health.h"
#include "agent/state_dir.h"
#include "common/runtime/clocks.h"
#include "common/runtime/defaults.h"
#include "common/runtime/files.h"
#include "common/runtime/log.h"

namespace gpuq::agent {
namespace {

constexpr Duration kLogStreamRetry{2'000};

Hello describe_node(const AgentConfig& config, const StateDir& state,
                    const std::vector<Device>& devices) {
  Hello hello;
  hello.node_name = config.node_name;
  hello.agent_version = version();
  hello.capabilities = {"logs", "upload", "gang-barrier"};
  hello.boot_id = boot_id();
  hello.state_dir_id = state.id();
  hello.labels = config.labels;
  hello.cpus = static_cast<std::uint32_t>(config.cpus);
  hello.memory_mib = config.memory_mib;
  hello.devices = devices;
  hello.confinement = "process groups and a subreaper; CPUs and memory are not limited";
  hello.run_user = account_name();
  hello.address = config.address;
  return hello;
}

Instances::Options instance_options(const AgentConfig& config, const std::vector<Device>& devices,
                                    StartHealth& health) {
  Instances::Options options;
  options.shim_path = config.shim_path;
  options.checkpoint_root = config.checkpoint_root;
  options.log_cap_bytes = config.output_cap_bytes;
  options.umask = static_cast<unsigned>(config.umask);
  for (const auto& device : devices) options.device_uuids.push_back(device.uuid);
  options.on_node_fault = [&health](std::string why) {
    health.failed(std::move(why), boottime_now_ms());
  };
  return options;
}

}  // namespace

struct Agent::Parts {
  Parts(EventLoop& l, const AgentConfig& config, StateDir s, std::unique_ptr<DirWatcher> w,
        const std::vector<Device>& devices)
      : loop(l),
        node_name(config.node_name),
        state(std::move(s)),
        watcher(std::move(w)),
        disposer(config.upload_bytes),
        health(state.path(), config.min_free_bytes),
        transport(loop, config.server),
        instances(
            loop, *watcher, state, instance_options(config, devices, health),
            [this](const InstanceStatus& status) { on_change(status); },
            [this](const std::string& dir, const InstanceStatus&) { disposer.dispose(dir); }),
        reader(*watcher, instances,
               [this](LogChunk chunk) { transport.send_log(std::move(chunk)); }),
        session(loop, transport, state, instances, session_options(config, devices)) {}
  ~Parts() { loop.cancel_timer(log_timer); }

  Session::Options session_options(const AgentConfig& config, const std::vector<Device>& devices) {
    Session::Options options;
    options.node = describe_node(config, state, devices);
    options.random_below = random_below;
    options.trouble = [this] { return health.check(boottime_now_ms()); };
    options.on_established = [this] {
      open_logs();
      disposer.retry(transport.uploader());
    };
    return options;
  }

  void on_change(const InstanceStatus& status) {
    session.report(status);
    reader.on_change({status.fence.attempt_id, status.instance});
  }

  void open_logs() {
    loop.cancel_timer(log_timer);
    reader.reset();
    transport.open_logs(
        node_name, state.id(),
        {[this](const LogRead& read) { reader.read(read); },
         [this](std::uint64_t request) { reader.cancel(request); }, [this] { reader.on_sent(); },
         [this](const std::string& reason) { on_logs_closed(reason); }});
  }

  void on_logs_closed(const std::string& reason) {
    log_debug("log stream closed: {}", reason);
    reader.reset();
    log_timer = loop.timer_after(kLogStreamRetry, [this] {
      if (session.established()) open_logs();
    });
  }

  EventLoop& loop;
  const std::string node_name;
  StateDir state;
  std::unique_ptr<DirWatcher> watcher;
  Disposer disposer;
  StartHealth health;
  GrpcTransport transport;
  Instances instances;
  LogReader reader;
  Session session;
  EventLoop::TimerId log_timer = 0;
};

Agent::Agent(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Agent::~Agent() = default;

Result<std::unique_ptr<Agent>> Agent::create(EventLoop& loop, const AgentConfig& config) {
  auto devices = find_devices(config);
  if (!devices) return devices.error();
  auto state = StateDir::open(config.state_dir);
  if (!state) return state.error();
  auto watcher = DirWatcher::create(loop);
  if (!watcher) return watcher.error();
  log_info("node {}: {} devices, {} CPUs, {} MiB, state in {}", config.node_name, devices->size(),
           config.cpus, config.memory_mib, state->path());
  for (const auto& device : *devices) {
    log_info("device {}: {} {}{}", device.index, device.model, device.uuid,
             device.usable ? "" : " NOT USABLE: " + device.unusable_reason);
  }
  auto parts =
      std::make_unique<Parts>(loop, config, std::move(*state), std::move(*watcher), *devices);
  return std::unique_ptr<Agent>(new Agent(std::move(parts)));
}

void Agent::start() {
  parts_->instances.recover();
  parts_->session.start();
}

}  // namespace gpuq::agent
