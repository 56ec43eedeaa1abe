// A table of jobs for the simulator: what its columns mean and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/policy/scenario_file.h"
#include "common/policy/trace_file.h"
#include "core/sim/runner.h"

namespace gpuq {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kScenario = R"(
scenario: Two GPUs
shares:
  A: {capacity: 2, strategy: RESERVE}
defaults: {runtime: 5m}
timeline:
  - {at: 20s, submit: {job: written, share: A}}
)";

sim::Scenario scenario() { return *parse_scenario_text(kScenario, "s.yaml"); }

Result<void> add(const std::string& table, sim::Scenario& to) {
  std::istringstream in(table);
  return add_trace(in, "t.csv", to);
}

std::string refusal(const std::string& table) {
  sim::Scenario to = scenario();
  const std::size_t steps = to.timeline.size();
  const auto added = add(table, to);
  EXPECT_EQ(to.timeline.size(), steps);
  return added ? "taken" : added.error().message;
}

const sim::SubmitStep& submit(const sim::Scenario& scenario, std::size_t i) {
  return std::get<sim::SubmitStep>(scenario.timeline.at(i).what);
}

TEST(Trace, RowsJoinTheTimelineInOrderOfTime) {
  sim::Scenario to = scenario();
  ASSERT_TRUE(
      add("submit_s,job,share,gpus,instances,runtime_s,priority,timeout_s,preemptible\n"
          "30,late,A,1,,1.5,,,\n"
          "0.25,early,A,0.5,2,,7,60,false\r\n"
          "\n",
          to));
  ASSERT_EQ(to.timeline.size(), 3U);
  EXPECT_EQ(to.timeline[0].at, Time(Duration(250)));
  EXPECT_TRUE(to.timeline[0].traced);
  EXPECT_EQ(to.timeline[0].line, 3);
  const sim::SubmitStep& early = submit(to, 0);
  EXPECT_EQ(early.request.name, "early");
  ASSERT_EQ(early.request.units.size(), 1U);
  EXPECT_EQ(early.request.units[0].first, "gpu");
  EXPECT_EQ(early.request.units[0].second, Amount(500));
  EXPECT_EQ(early.request.instances, 2);
  EXPECT_EQ(early.request.priority, 7);
  EXPECT_EQ(early.request.timeout, Duration(minutes(1)));
  EXPECT_FALSE(early.request.preemptible);
  EXPECT_EQ(early.runtime, Duration(minutes(5)));
  EXPECT_EQ(submit(to, 1).request.name, "written");
  EXPECT_EQ(submit(to, 2).request.name, "late");
  EXPECT_EQ(submit(to, 2).runtime, Duration(1'500));
}

TEST(Trace, NamesAreMadeAndQuotesUnderstood) {
  sim::Scenario to = scenario();
  ASSERT_TRUE(add("share,submit_s,job\nA,1,\nA,2,\"a, \"\"b\"\"\"\n", to));
  EXPECT_EQ(submit(to, 0).request.name, "trace-1");
  EXPECT_EQ(submit(to, 1).request.name, "a, \"b\"");
}

TEST(Trace, EveryWrongRowIsNamed) {
  EXPECT_EQ(refusal(""), "t.csv: the file is empty");
  EXPECT_EQ(refusal("job,share\n"), "t.csv:1: the column submit_s is missing");
  EXPECT_THAT(refusal("submit_s,gpu\n1,1\n"), HasSubstr("t.csv:1: there is no column 'gpu'"));
  EXPECT_THAT(refusal("submit_s,job,job\n"), HasSubstr("the column 'job' is there twice"));
  EXPECT_EQ(refusal("submit_s,gpus\n1,-1\n2\n,1\n3,0\n"),
            "t.csv:2: gpus: '-1' is negative: write 0 or more\n"
            "t.csv:3: 1 fields: the heading has 2\n"
            "t.csv:4: submit_s is empty\n"
            "t.csv:5: gpus: 0 units: a job asks for more than none");
  EXPECT_THAT(refusal("submit_s\n-1\n"), HasSubstr("'-1' is no number of seconds"));
  EXPECT_THAT(refusal("submit_s,preemptible\n1,yes\n"), HasSubstr("must be true or false"));
  EXPECT_THAT(refusal("submit_s,job\n1,\"open\n"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(refusal("submit_s,job\n1,written\n"), HasSubstr("job 'written' is there twice"));
  EXPECT_THAT(refusal("submit_s,checkpoint_s\n1,0\n"), HasSubstr("checkpoint_s"));
}

TEST(Trace, WhatTheEngineRefusesNamesTheTable) {
  sim::Scenario to = scenario();
  ASSERT_TRUE(add("submit_s,share\n1,nobody\n", to));
  const auto run = sim::run_scenario(to);
  ASSERT_FALSE(run.has_value());
  EXPECT_THAT(run.error().message, HasSubstr("t.csv:2: "));
}

TEST(Series, HoldsMeansOverSpansThatGrowWithTheRun) {
  sim::Scenario to = scenario();
  // A: one GPU for the first 40 s (job a) and two from 20 s to 40 s; `c` waits from 30 s.
  ASSERT_TRUE(add("submit_s,job,share,runtime_s\n0,a,A,40\n30,c,A,10\n", to));
  sim::RunOptions options;
  options.samples = 4;
  const auto run = sim::run_scenario(to, options);
  ASSERT_TRUE(run.has_value()) << run.error().message;
  const sim::Series& series = run->series;
  ASSERT_EQ(series.shares, std::vector<std::string>{"A"});
  // `written` runs from 20 s to 320 s: four spans of 2^k seconds that hold 320 are 128 s long.
  EXPECT_EQ(series.span, Duration(seconds(128)));
  ASSERT_EQ(series.held.size(), 3U);
  // 40 s of a, 108 s of written, 10 s of c, in 128 s.
  EXPECT_DOUBLE_EQ(series.held[0][0], 158.0 / 128);
  EXPECT_DOUBLE_EQ(series.held[1][0], 1.0);
  EXPECT_DOUBLE_EQ(series.waiting[0], 10.0 / 128);
  EXPECT_DOUBLE_EQ(series.waiting[1], 0.0);
}

}  // namespace
}  // namespace gpuq
