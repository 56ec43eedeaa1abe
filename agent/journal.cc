#include "agent/journal.h"

#include <nlohmann/json.hpp>

#include "common/runtime/files.h"

namespace gpuq::agent {
namespace {

using nlohmann::json;

json order_to_json(const StartOrder& order) {
  json devices = json::array();
  for (const auto& grant : order.devices) devices.push_back({grant.uuid, grant.milli});
  json value{{"store_id", order.fence.store_id},
             {"epoch", order.fence.epoch},
             {"attempt_id", order.fence.attempt_id},
             {"instance", order.instance},
             {"instances", order.instances},
             {"job_id", order.job_id},
             {"job_name", order.job_name},
             {"attempt_number", order.attempt_number},
             {"queue", order.queue},
             {"share", order.share},
             {"devices", devices},
             {"grace_ms", order.grace_ms},
             {"run_immediately", order.run_immediately},
             {"user", order.user}};
  return value;
}

StartOrder order_from_json(const json& value) {
  StartOrder order;
  value.at("store_id").get_to(order.fence.store_id);
  value.at("epoch").get_to(order.fence.epoch);
  value.at("attempt_id").get_to(order.fence.attempt_id);
  value.at("instance").get_to(order.instance);
  value.at("instances").get_to(order.instances);
  value.at("job_id").get_to(order.job_id);
  value.at("job_name").get_to(order.job_name);
  value.at("attempt_number").get_to(order.attempt_number);
  value.at("queue").get_to(order.queue);
  value.at("share").get_to(order.share);
  for (const auto& grant : value.at("devices")) {
    order.devices.push_back({grant.at(0).get<std::string>(), grant.at(1).get<std::uint32_t>()});
  }
  value.at("grace_ms").get_to(order.grace_ms);
  value.at("run_immediately").get_to(order.run_immediately);
  value.at("user").get_to(order.user);
  return order;
}

}  // namespace

Result<void> write_journal(const std::string& dir, const JournalEntry& entry,
                           const shim::LaunchSpec& launch) {
  json value{{"version", shim::kRecordVersion},
             {"boot_id", entry.boot_id},
             {"tag", entry.tag},
             {"received_wall_ms", entry.received_wall_ms},
             {"order", order_to_json(entry.order)}};
  value["launch"] = json::parse(shim::to_json(launch));
  auto written = write_new_file(dir + "/" + shim::kStartFile,
                                value.dump(-1, ' ', false, json::error_handler_t::replace));
  return written ? sync_dir(dir) : written;
}

Result<JournalEntry> read_journal(const std::string& dir) {
  const std::string path = dir + "/" + shim::kStartFile;
  auto text = read_file(path);
  if (!text) return text.error();
  try {
    const json value = json::parse(*text);
    JournalEntry entry;
    entry.order = order_from_json(value.at("order"));
    value.at("boot_id").get_to(entry.boot_id);
    value.at("tag").get_to(entry.tag);
    value.at("received_wall_ms").get_to(entry.received_wall_ms);
    return entry;
  } catch (const json::exception& e) {
    return Error{ErrorCode::kDataLoss, path + " is damaged: " + e.what()};
  }
}

}  // namespace gpuq::agent
