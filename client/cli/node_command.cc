#include <algorithm>
#include <ostream>
#include <set>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/format.h"
#include "common/runtime/clocks.h"

namespace gpuq::cli {

namespace {

std::string short_name(const std::string& name, std::size_t prefix) {
  return name.size() > prefix ? name.substr(prefix) : "";
}

std::string link_text(const v1::Node& node) {
  return node.link() == v1::NODE_LINK_UNSPECIFIED
             ? ""
             : short_name(v1::NodeLink_Name(node.link()), std::string("NODE_LINK_").size());
}

std::string admin_text(const v1::Node& node) {
  if (node.admin_state() == v1::NODE_ADMIN_STATE_UNSPECIFIED) return "";
  return short_name(v1::NodeAdminState_Name(node.admin_state()),
                    std::string("NODE_ADMIN_STATE_").size());
}

std::string health_text(v1::Health health) {
  if (health == v1::HEALTH_UNSPECIFIED) return "";
  return short_name(v1::Health_Name(health), std::string("HEALTH_").size());
}

Colour node_colour(const v1::Node& node) {
  if (node.link() == v1::NODE_LINK_DOWN) return Colour::kRed;
  if (node.link() == v1::NODE_LINK_UNREACHABLE) return Colour::kYellow;
  return Colour::kGreen;
}

std::string models_text(const v1::Node& node) {
  std::set<std::string> models;
  for (const auto& device : node.devices()) models.insert(device.model());
  std::string text;
  for (const auto& model : models) text += (text.empty() ? "" : ",") + model;
  return text;
}

std::string gpus_text(const v1::Node& node) {
  std::int64_t used = 0;
  for (const auto& device : node.devices()) used += device.allocated_milli();
  return format_milli(used) + "/" + std::to_string(node.devices_size());
}

int list_nodes(Context& context, client::Client& client, const NodeOptions& options) {
  v1::ListNodesRequest request;
  request.set_service_environment(options.environment);
  auto answer = client.list_nodes(request);
  if (!answer) return context.fail(answer.error());
  if (context.json()) {
    for (const auto& node : answer->nodes()) context.print_json(node);
    return kDone;
  }
  if (answer->nodes().empty()) {
    context.note("no nodes: start gpuq-agent on them");
    return kDone;
  }
  using Align = Table::Align;
  Table table({{"NODE"},
               {"LINK"},
               {"ADMIN"},
               {"HEALTH"},
               {"GPUS", Align::kRight},
               {"MODEL"},
               {"CPUS", Align::kRight},
               {"MEMORY", Align::kRight},
               {"ENVIRONMENT"},
               {"NOTE"}});
  for (const auto& node : answer->nodes()) {
    table.add({node.node_name(), link_text(node), admin_text(node), health_text(node.health()),
               gpus_text(node), models_text(node),
               std::to_string(node.cpus_allocated()) + "/" + std::to_string(node.cpus()),
               format_memory(node.memory_mib()), node.service_environment(),
               node.admin_reason().empty() ? node.status_reason() : node.admin_reason()},
              1, node_colour(node));
  }
  table.print(context.terminal());
  return kDone;
}

void print_devices(const Context& context, const v1::Node& node) {
  if (node.devices().empty()) return;
  Table table({{"DEVICE", Table::Align::kRight},
               {"MODEL"},
               {"MEMORY", Table::Align::kRight},
               {"USED", Table::Align::kRight},
               {"HEALTH"},
               {"JOBS"},
               {"UUID"}});
  for (const auto& device : node.devices()) {
    std::string jobs;
    for (const auto id : device.job_ids()) jobs += (jobs.empty() ? "" : ",") + std::to_string(id);
    table.add({std::to_string(device.index()), device.model(), format_memory(device.memory_mib()),
               format_milli(device.allocated_milli()), health_text(device.health()), jobs,
               device.uuid()});
  }
  context.terminal().out << '\n';
  table.print(context.terminal());
}

void print_node_attempts(const Context& context, const v1::Node& node) {
  if (node.attempts().empty()) return;
  Table table({{"ATTEMPT"}, {"INSTANCE", Table::Align::kRight}, {"STATE"}, {"SHARE"}, {"NAME"}});
  for (const auto& one : node.attempts()) {
    table.add({std::to_string(one.job_id()) + "#" + std::to_string(one.attempt()),
               std::to_string(one.instance()), one.orphan() ? "ORPHAN" : format_state(one.state()),
               one.quota_share_name(), one.job_name()});
  }
  context.terminal().out << '\n';
  table.print(context.terminal());
}

void print_node(const Context& context, const v1::Node& node) {
  std::ostream& out = context.terminal().out;
  out << "Node " << node.node_name() << ": " << link_text(node) << ", " << admin_text(node) << ", "
      << health_text(node.health()) << '\n';
  if (!node.admin_reason().empty()) out << "  " << one_line(node.admin_reason()) << '\n';
  if (!node.status_reason().empty()) out << "  " << one_line(node.status_reason()) << '\n';
  out << "  environment "
      << (node.service_environment().empty() ? "(none selects it)" : node.service_environment())
      << ", agent " << node.agent_version() << ", last heard of "
      << format_ago(node.last_seen_ms(), wall_now_ms()) << '\n'
      << "  CPUs " << node.cpus_allocated() << "/" << node.cpus() << ", memory "
      << format_memory(node.memory_allocated_mib()) << "/" << format_memory(node.memory_mib())
      << '\n';
  if (!node.labels().empty()) {
    out << "  labels";
    for (const auto& [key, value] : node.labels()) out << ' ' << key << '=' << value;
    out << '\n';
  }
  print_devices(context, node);
  print_node_attempts(context, node);
}

int show_nodes(Context& context, client::Client& client, const NodeOptions& options) {
  for (const auto& name : options.nodes) {
    v1::GetNodeRequest request;
    request.set_node_name(name);
    auto node = client.get_node(request);
    if (!node) return context.fail(node.error());
    if (context.json()) {
      context.print_json(*node);
    } else {
      print_node(context, *node);
    }
  }
  return kDone;
}

int set_nodes(Context& context, client::Client& client, const NodeOptions& options,
              v1::NodeAdminState state) {
  int code = kDone;
  for (const auto& name : options.nodes) {
    v1::UpdateNodeRequest request;
    request.set_node_name(name);
    request.set_admin_state(state);
    request.set_reason(options.reason);
    auto node = client.update_node(request);
    if (!node) {
      code = std::max(code, context.fail(node.error()));
    } else if (context.json()) {
      context.print_json(*node);
    }
  }
  return code;
}

}  // namespace

int node(Context& context, const NodeOptions& options) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  switch (options.verb) {
    case NodeOptions::Verb::kList:
      return list_nodes(context, **client, options);
    case NodeOptions::Verb::kShow:
      return show_nodes(context, **client, options);
    case NodeOptions::Verb::kCordon:
      return set_nodes(context, **client, options, v1::NODE_ADMIN_STATE_CORDONED);
    case NodeOptions::Verb::kUncordon:
      return set_nodes(context, **client, options, v1::NODE_ADMIN_STATE_OPEN);
    case NodeOptions::Verb::kDrain:
      return set_nodes(context, **client, options, v1::NODE_ADMIN_STATE_DRAINING);
  }
  return kFailed;
}

}  // namespace gpuq::cli
