#include "common/policy/scenario_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/policy/scenario_reader.h"
#include "core/base/text.h"

namespace gpuq {

void ScenarioReader::check_job(const YamlNode& node, const std::string& path,
                               const std::string& name) {
  if (options.other_jobs || jobs.contains(name)) return;
  add_error_at(node, path, fmt::format("there is no job {}", quote(name)));
}

void ScenarioReader::check_node(const YamlNode& node, const std::string& path,
                                const std::string& name) {
  if (!nodes.contains(name)) {
    add_error_at(node, path, fmt::format("there is no node {}", quote(name)));
  }
}

bool ScenarioReader::check_share(const YamlNode& node, const std::string& path,
                                 const std::string& name) {
  const auto found = shares.find(name);
  if (found == shares.end()) {
    add_error_at(node, path, fmt::format("there is no share {}", quote(name)));
  } else if (found->second == kAmbiguous) {
    add_error_at(node, path,
                 fmt::format("several queues have a share {}: write QUEUE/SHARE", quote(name)));
  }
  return found != shares.end() && found->second != kAmbiguous;
}

namespace {

void read_defaults(MapReader& root, ScenarioReader& reader) {
  const YamlNode* node = root.find("defaults");
  if (node == nullptr) return;
  MapReader map(*node, "defaults", reader.issues);
  map.duration("runtime", reader.default_runtime);
  map.duration("grace", reader.scenario.default_grace);
  reader.scenario.default_runtime = reader.default_runtime;
  map.finish();
}

}  // namespace

Result<sim::Scenario> parse_scenario_text(std::string_view text, const std::string& file_name,
                                          const ScenarioOptions& options) {
  ScenarioReader reader;
  reader.options = options;
  reader.scenario.file = file_name;
  const auto root = parse_yaml(text, reader.issues);
  if (!root) return as_error(reader.issues, file_name);
  reader.positions = yaml_positions(*root);
  MapReader map(*root, "", reader.issues);
  if (root->kind != YamlNode::Kind::kMap) return as_error(reader.issues, file_name);
  map.require("scenario");
  map.text("scenario", reader.scenario.title);
  map.texts("rule", reader.scenario.rules);
  read_cluster_and_policy(map, reader);
  read_defaults(map, reader);
  read_timeline(map, reader);
  read_expectations(map, reader);
  map.finish();
  if (has_errors(reader.issues)) return as_error(reader.issues, file_name);
  return std::move(reader.scenario);
}

bool is_scenario_text(std::string_view text) {
  std::vector<FileIssue> issues;
  const auto root = parse_yaml(text, issues);
  return root && std::ranges::find(root->keys, "scenario", &YamlKey::name) != root->keys.end();
}

Result<sim::Scenario> parse_scenario_file(const std::string& path, const ScenarioOptions& options) {
  const auto text = read_policy_file(path);
  if (!text) return text.error();
  return parse_scenario_text(*text, path, options);
}

}  // namespace gpuq
