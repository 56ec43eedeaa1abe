// Every scenario file of this folder and of docs/policy is one test, run through the engine with
// all invariants checked.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/policy/scenario_file.h"
#include "core/sim/runner.h"

namespace gpuq {
namespace {

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const char* folder : {GPUQ_SOURCE_DIR "/tests/scenario", GPUQ_SOURCE_DIR "/docs/policy"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class ScenarioTest : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioTest, Holds) {
  const auto scenario = parse_scenario_file(GetParam());
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  const auto result = sim::run_scenario(*scenario);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  for (const sim::Failure& failure : result->failures) {
    ADD_FAILURE() << GetParam() << ":" << failure.line << ": " << failure.message;
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// What the page for administrators shows as an example is true.
TEST(ScenarioOfTheDocs, Holds) {
  std::ifstream in(GPUQ_SOURCE_DIR "/docs/SIMULATE.md");
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  const std::string fence = "```yaml\n";
  const std::size_t begin = page.find(fence) + fence.size();
  const auto scenario =
      parse_scenario_text(page.substr(begin, page.find("```", begin) - begin), "SIMULATE.md");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
  ASSERT_EQ(scenario->expect.size(), 2U);
  const auto result = sim::run_scenario(*scenario);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  for (const sim::Failure& failure : result->failures) ADD_FAILURE() << failure.message;
}

INSTANTIATE_TEST_SUITE_P(Files, ScenarioTest, testing::ValuesIn(scenario_files()), name_of);

}  // namespace
}  // namespace gpuq
