#pragma once
// The steps of reading a scenario, in the order in which scenario_file.cc takes them: cluster and
// policy, timeline, expectations. Each adds to the scenario and to what later steps check names
// against.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/policy/scenario_file.h"
#include "common/policy/yaml_reader.h"

namespace gpuq {

inline constexpr const char* kShortFormUnit = "gpu";
inline constexpr const char* kShortFormPool = "pool";
inline constexpr const char* kShortFormQueue = "q";

struct ScenarioReader {
  sim::Scenario scenario;
  ScenarioOptions options;
  std::vector<FileIssue> issues;
  std::map<std::string, FilePosition> positions;
  bool short_form = false;
  Duration default_runtime{std::chrono::hours(1)};
  std::map<std::string, int> jobs;  ///< Name -> line of its submit.
  std::set<std::string> nodes;
  /// Shares by "share" and "queue/share"; the number of limits of each. A name that several queues
  /// have counts as kAmbiguous.
  std::map<std::string, std::size_t> shares;
  static constexpr std::size_t kAmbiguous = ~std::size_t{0};

  void add_error_at(const YamlNode& node, const std::string& path, std::string message) {
    add_error(node, path, std::move(message), issues);
  }
  /// Each adds an issue when there is no such thing.
  void check_job(const YamlNode& node, const std::string& path, const std::string& name);
  void check_node(const YamlNode& node, const std::string& path, const std::string& name);
  bool check_share(const YamlNode& node, const std::string& path, const std::string& name);
};

void read_cluster_and_policy(MapReader& root, ScenarioReader& reader);
void read_timeline(MapReader& root, ScenarioReader& reader);
void read_expectations(MapReader& root, ScenarioReader& reader);

}  // namespace gpuq
