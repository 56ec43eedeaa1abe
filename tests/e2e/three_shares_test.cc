// The three-share demonstration of docs/SCHEDULING.md with real processes, driven and observed by
// the command line alone.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

using Json = nlohmann::json;

class ThreeShares : public ClusterTest {
 protected:
  void SetUp() override {
    cluster_.start(3);
    cluster_.apply(slurp(std::string(GPUQ_SOURCE_DIR) + "/config/policy-example.yaml"));
  }

  void submit(const std::string& name, const std::string& share, int priority,
              const std::string& script) {
    ids_[name] = cluster_.submit_script({"--name", name, "--queue", "demo", "--share", share,
                                         "--unit", "a10g", "--priority", std::to_string(priority)},
                                        script);
  }
  std::string id(const std::string& name) const { return std::to_string(ids_.at(name)); }

  Json show(const std::string& name) {
    return Json::parse(cluster_.gpuq({"show", id(name), "--json"}).out);
  }
  Json held(const std::string& share) {
    const auto status = Json::parse(cluster_.gpuq({"status", "--json"}).out);
    for (const auto& unit : status["units"]) {
      for (const auto& one : unit["shares"]) {
        if (one["quota_share_name"] == share) return one["held"];
      }
    }
    return nullptr;
  }

  /// Waits until exactly `running` run and `waiting` wait.
  void expect_states(const Words& running, const Words& waiting) {
    std::map<std::string, std::string> wanted;
    for (const auto& name : running) wanted[name] = "RUNNING";
    for (const auto& name : waiting) wanted[name] = "RUNNABLE";
    std::map<std::string, std::string> seen;
    const bool came = eventually([&] {
      seen.clear();
      for (const auto& line : lines_of(cluster_.gpuq({"ls", "-a", "--json"}).out)) {
        const auto job = Json::parse(line);
        seen[job["job_name"]] = job["state"];
      }
      return seen == wanted;
    });
    EXPECT_TRUE(came) << Json(seen).dump() << " instead of " << Json(wanted).dump();
  }

  void expect_preempted(const std::string& victim, const std::string& rule, const std::string& by) {
    const auto summary = show(victim)["preemption_summary"];
    ASSERT_FALSE(summary.is_null()) << victim << " was not preempted";
    const auto last = summary["recent_preempted_attempts"].back();
    EXPECT_EQ(last["rule"], rule);
    EXPECT_EQ(last["preempted_by_job_id"], ids_.at(by));
  }
  int preemptions(const std::string& name) {
    const Json summary = show(name)["preemption_summary"];
    return summary.is_null() ? 0 : summary["preempted_attempt_count"].get<int>();
  }

  std::map<std::string, std::int64_t> ids_;
};

TEST_F(ThreeShares, Demonstration) {
  const Gate low_gate(cluster_, "low.gate");
  const Gate qs2_gate(cluster_, "qs2.gate");

  submit("high", "QS1", 3, kPolite);
  submit("med", "QS1", 2, kPolite);
  submit("low", "QS1", 1, polite_until("low.gate"));
  expect_states({"high", "med"}, {"low"});
  EXPECT_TRUE(cluster_.waits_for(ids_["low"], "NO_IDLE_TO_BORROW"));
  const auto why = Json::parse(cluster_.gpuq({"why", id("low"), "--json"}).out);
  EXPECT_EQ(why["free"], 1);
  EXPECT_EQ(why["reserved"], 1);
  EXPECT_EQ(why["lendable"], 0);
  EXPECT_EQ(held("QS1"), 2);
  EXPECT_EQ(held("QS3"), 0);

  submit("qs2", "QS2", 1, polite_until("qs2.gate"));
  expect_states({"high", "qs2"}, {"med", "low"});
  expect_preempted("med", "CROSS_SHARE", "qs2");
  EXPECT_EQ(preemptions("high"), 0);
  EXPECT_TRUE(cluster_.has_line("marks", "med saved"));

  EXPECT_EQ(cluster_.gpuq({"update", id("low"), "--priority", "4"}).code, 0);
  expect_states({"low", "qs2"}, {"high", "med"});
  expect_preempted("high", "IN_SHARE", "low");

  low_gate.open();
  expect_states({"high", "qs2"}, {"med"});
  qs2_gate.open();
  expect_states({"high", "med"}, {});
  EXPECT_EQ(preemptions("high"), 1);
  EXPECT_EQ(preemptions("med"), 1);
  EXPECT_EQ(preemptions("low"), 0);
  EXPECT_EQ(show("low")["state"], "SUCCEEDED");
  EXPECT_EQ(show("qs2")["state"], "SUCCEEDED");
}

}  // namespace
}  // namespace gpuq::e2e
