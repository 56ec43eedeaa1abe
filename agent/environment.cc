#include "agent/environment.h"

#include <algorithm>
#include <map>

#include "agent/shim/records.h"

namespace gpuq::agent {
namespace {

std::string device_list(const StartOrder& order) {
  std::string out;
  for (const auto& grant : order.devices) {
    if (!out.empty()) out += ',';
    out += grant.uuid;
  }
  return out;
}

void add_gang(const StartOrder& order, std::map<std::string, std::string>& env) {
  if (!order.gang) return;
  const auto per_node = std::max<std::size_t>(1, order.devices.size());
  env["MASTER_ADDR"] = order.gang->master_address;
  env["MASTER_PORT"] = std::to_string(order.gang->master_port);
  env["NNODES"] = std::to_string(order.instances);
  env["NODE_RANK"] = std::to_string(order.gang->node_rank);
  env["NPROC_PER_NODE"] = std::to_string(per_node);
  env["WORLD_SIZE"] = std::to_string(order.instances * per_node);
}

}  // namespace

std::vector<std::string> make_environment(const StartOrder& order, const EnvironmentFacts& facts) {
  std::map<std::string, std::string> env{{"PATH", facts.path},   {"HOME", facts.home},
                                         {"USER", facts.user},   {"LOGNAME", facts.user},
                                         {"SHELL", facts.shell}, {"PYTHONUNBUFFERED", "1"}};
  if (!facts.lang.empty()) env["LANG"] = facts.lang;
  for (const auto& [name, value] : order.environment) env[name] = value;
  env["TMPDIR"] = facts.temporary_dir;
  env["CUDA_VISIBLE_DEVICES"] = device_list(order);
  env["GPUQ_JOB_ID"] = std::to_string(order.job_id);
  env["GPUQ_JOB_NAME"] = order.job_name;
  env["GPUQ_ATTEMPT"] = std::to_string(order.attempt_number);
  env["GPUQ_QUEUE"] = order.queue;
  env["GPUQ_SHARE"] = order.share;
  env["GPUQ_CHECKPOINT_DIR"] = facts.checkpoint_dir;
  env["GPUQ_PREEMPTION_COUNT"] = std::to_string(order.preemption_count);
  env["GPUQ_STOP_REASON_FILE"] = facts.stop_reason_file;
  env[shim::kTagVariable] = facts.tag;
  add_gang(order, env);
  std::vector<std::string> lines;
  for (const auto& [name, value] : env) lines.push_back(name + "=" + value);
  return lines;
}

}  // namespace gpuq::agent
