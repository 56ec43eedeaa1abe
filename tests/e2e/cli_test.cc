// The command line against a real server: what it prints for people and as JSON, and its exit
// status.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

bool holds_files(const std::string& folder) {
  std::error_code none;
  return std::filesystem::exists(folder, none) && !std::filesystem::is_empty(folder, none);
}

class CliTest : public ClusterTest {
 protected:
  void SetUp() override { cluster_.start(1); }

  Output gpuq(const Words& words) { return cluster_.gpuq(words); }
  /// The one object that the command prints.
  Json json(Words words) {
    words.emplace_back("--json");
    const Output output = gpuq(words);
    EXPECT_EQ(output.code, 0) << output.err;
    const auto lines = lines_of(output.out);
    EXPECT_EQ(lines.size(), 1U) << output.out;
    return lines.empty() ? Json() : Json::parse(lines.front());
  }
};

TEST_F(CliTest, SubmitPrintsTheIdAlone) {
  const Output output = gpuq({"submit", "--gpus", "1", "--", "true"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, "1\n");
  EXPECT_EQ(output.err, "");
  EXPECT_EQ(gpuq({"submit", "--", "true"}).out, "2\n");
}

TEST_F(CliTest, SubmitAsJsonAndWait) {
  const Output output = gpuq({"submit", "--json", "--name", "j", "--", "true"});
  const auto reply = Json::parse(output.out);
  EXPECT_EQ(reply["job_id"], 1);
  EXPECT_EQ(reply["job_name"], "j");
  EXPECT_EQ(reply["job_uuid"].get<std::string>().size(), 36U);
  EXPECT_EQ(gpuq({"submit", "--wait", "--", "sh", "-c", "exit 9"}).code, 9);
  EXPECT_EQ(gpuq({"show", reply["job_uuid"]}).code, 0);
}

TEST_F(CliTest, RunPassesOutputAndCodeOn) {
  const Output output = gpuq({"run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(output.code, 7);
  EXPECT_EQ(output.out, "out\n");
  EXPECT_THAT(lines_of(output.err), testing::Contains("err"));
  const Output quiet = gpuq({"run", "--quiet", "--", "sh", "-c", "printf 'no line end'"});
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.out, "no line end");
  EXPECT_EQ(quiet.err, "");
}

TEST_F(CliTest, AnInterruptIsKeptForAServerThatIsAway) {
  Process runner = cluster_.start_gpuq("runner", {"run", "--", "sh", "-c", "echo up; sleep 1000"});
  ASSERT_TRUE(cluster_.has_line("runner.out", "up"));
  cluster_.kill_server();
  runner.signal(SIGINT);
  ASSERT_TRUE(eventually(
      [&] { return cluster_.read("runner.err").find("cancelling as soon") != std::string::npos; }));
  cluster_.start_server();
  EXPECT_EQ(runner.wait(), 130) << cluster_.read("runner.err");
  EXPECT_TRUE(cluster_.reaches(1, v1::JOB_STATE_FAILED));
}

TEST_F(CliTest, InterruptedRunCancelsItsJob) {
  Process run = cluster_.start_gpuq("run", {"run", "--name", "r", "--", "sh", "-c", kPolite});
  ASSERT_TRUE(cluster_.has_line("marks", "r up"));
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << cluster_.read("run.err");
  EXPECT_TRUE(cluster_.has_line("marks", "r saved"));
  EXPECT_TRUE(cluster_.job(1).is_terminated());
}

TEST_F(CliTest, ScriptWithDirectives) {
  cluster_.write("train.sh",
                 "#!/bin/sh\n"
                 "#GPUQ --gpus 1 --name scripted\n"
                 "echo $GPUQ_JOB_NAME $1 > out\n");
  const Output output = gpuq({"submit", "--wait", cluster_.work("train.sh"), "word"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(cluster_.read("out"), "scripted word\n");
}

TEST_F(CliTest, HeldJobStartsAfterItsRelease) {
  ASSERT_EQ(gpuq({"submit", "--hold", "--name", "h", "--", "true"}).code, 0);
  EXPECT_TRUE(cluster_.reaches(1, v1::JOB_STATE_PENDING));
  EXPECT_THAT(gpuq({"ls"}).out, HasSubstr("HELD_BY_USER"));
  EXPECT_THAT(gpuq({"why", "1"}).out, HasSubstr("gpuq release 1"));
  EXPECT_EQ(gpuq({"hold", "name:h"}).code, 0);
  cluster_.kill_server();
  cluster_.start_server();
  EXPECT_EQ(cluster_.job(1).state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(gpuq({"release", "1"}).code, 0);
  EXPECT_EQ(gpuq({"wait", "1"}).code, 0);
  EXPECT_EQ(gpuq({"release", "1"}).code, 0);
  const Output late = gpuq({"hold", "1"});
  EXPECT_EQ(late.code, 4) << late.err;
  EXPECT_THAT(late.err, HasSubstr("job 1 is SUCCEEDED and can not be changed"));
}

TEST_F(CliTest, JobsWaitForTheEndOfOthers) {
  ASSERT_EQ(gpuq({"submit", "--hold", "--name", "prepare", "--", "true"}).code, 0);
  cluster_.write("train.yaml",
                 "name: train\n"
                 "command: [sh, -c, 'echo trained > out']\n"
                 "depends_on: [{job: prepare}]\n");
  const Output from_file = gpuq({"submit", "-f", cluster_.work("train.yaml")});
  ASSERT_EQ(from_file.code, 0) << from_file.err;
  ASSERT_EQ(gpuq({"submit", "--after", "fail:1,any:2", "--", "true"}).code, 0);
  ASSERT_EQ(gpuq({"submit", "--after-ok", "3", "--", "true"}).code, 0);
  EXPECT_THAT(gpuq({"ls"}).out, HasSubstr("DEPENDENCY"));
  EXPECT_THAT(gpuq({"why", "2"}).out, HasSubstr("job 1 is SUCCEEDED"));
  EXPECT_THAT(gpuq({"show", "3"}).out, HasSubstr("1 FAILED, 2 ENDED"));
  cluster_.kill_server();
  cluster_.start_server();
  EXPECT_EQ(gpuq({"release", "1"}).code, 0);
  EXPECT_EQ(gpuq({"wait", "1", "2"}).code, 0);
  EXPECT_EQ(cluster_.read("out"), "trained\n");
  EXPECT_EQ(gpuq({"wait", "3", "4"}).code, 1);
  EXPECT_THAT(cluster_.job(4).status_reason(), HasSubstr("DEPENDENCY: job 3 is FAILED"));
  const Output unknown = gpuq({"submit", "--after-ok", "99", "--", "true"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("job 99 does not exist"));
}

TEST_F(CliTest, RetryWaitsForItsBackoff) {
  ASSERT_EQ(gpuq({"submit", "--retries", "1", "--retry-backoff", "1s", "--", "false"}).code, 0);
  ASSERT_TRUE(eventually([&] { return cluster_.job(1).attempt_count() == 2; }));
  EXPECT_EQ(gpuq({"wait", "1"}).code, 1);
  const auto job = cluster_.job(1);
  ASSERT_EQ(job.attempts_size(), 2);
  EXPECT_GE(job.attempts(1).created_at_ms() - job.attempts(0).stopped_at_ms(), 1'000);
}

TEST_F(CliTest, ListShowAndHistory) {
  const auto running = cluster_.submit_script({"--gpus", "1", "--name", "holder"}, kPolite);
  ASSERT_TRUE(cluster_.reaches(running, v1::JOB_STATE_RUNNING));
  const auto waiting =
      cluster_.submit_script({"--gpus", "1", "--name", "waiter", "--label", "a=b"}, "true");
  ASSERT_TRUE(cluster_.reaches(waiting, v1::JOB_STATE_RUNNABLE));
  ASSERT_TRUE(eventually([&] { return !cluster_.job(waiting).reason().code().empty(); }));
  const Output table = gpuq({"ls"});
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.out, HasSubstr("holder"));
  EXPECT_THAT(table.out, HasSubstr("n1"));
  EXPECT_THAT(table.out, HasSubstr(cluster_.job(waiting).reason().code()));
  EXPECT_THAT(table.out, Not(HasSubstr("\x1b[")));

  const auto rows = lines_of(gpuq({"ls", "-a", "--json"}).out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(Json::parse(rows[0])["job_id"], waiting);
  EXPECT_EQ(Json::parse(rows[1])["node_names"], Json::array({"n1"}));
  EXPECT_EQ(lines_of(gpuq({"ls", "--label", "a=b", "--json"}).out).size(), 1U);
  EXPECT_EQ(lines_of(gpuq({"ls", "--state", "RUNNING", "--json"}).out).size(), 1U);
  EXPECT_EQ(lines_of(gpuq({"ls", "--name", "wait*", "--json"}).out).size(), 1U);

  const Json shown = json({"show", "last"});
  EXPECT_EQ(shown["job_id"], waiting);
  EXPECT_EQ(shown["spec"]["labels"]["a"], "b");
  EXPECT_THAT(gpuq({"show", "1"}).out, HasSubstr("RUNNING"));
  EXPECT_EQ(gpuq({"history"}).out, "");
  cluster_.cancel(running);
  ASSERT_TRUE(cluster_.reaches(waiting, v1::JOB_STATE_SUCCEEDED));
  EXPECT_EQ(lines_of(gpuq({"history", "--json"}).out).size(), 2U);
  EXPECT_EQ(gpuq({"ls"}).out, "");
}

TEST_F(CliTest, WhyNamesWhoHoldsIt) {
  const auto holder = cluster_.submit_script({"--gpus", "1", "--name", "holder"}, kPolite);
  ASSERT_TRUE(cluster_.reaches(holder, v1::JOB_STATE_RUNNING));
  const auto waiter = cluster_.submit_script({"--gpus", "1"}, "true");
  ASSERT_TRUE(eventually([&] { return !cluster_.job(waiter).reason().code().empty(); }));
  const Json why = json({"why", std::to_string(waiter)});
  EXPECT_EQ(why["demand"], 1);
  EXPECT_EQ(why["held"], 1);
  ASSERT_EQ(why["holders"].size(), 1U) << why.dump();
  EXPECT_EQ(why["holders"][0]["job_id"], holder);
  EXPECT_THAT(gpuq({"why", std::to_string(waiter)}).out, HasSubstr("holder"));
  EXPECT_THAT(gpuq({"why", std::to_string(holder)}).out, HasSubstr("does not wait"));
}

TEST_F(CliTest, WhyOfAJobThatNeverFits) {
  const auto id = cluster_.submit_script({"--gpus", "1", "--instances", "2"}, "true");
  ASSERT_TRUE(eventually([&] { return !cluster_.job(id).reason().code().empty(); }));
  const Output why = gpuq({"why", std::to_string(id)});
  EXPECT_EQ(why.code, 5);
  EXPECT_THAT(why.out, HasSubstr("MISCONFIGURATION:"));
}

TEST_F(CliTest, LogsFollowFromBeforeTheStartToTheEnd) {
  const Gate gate(cluster_, "gate");
  const auto holder = cluster_.submit_script({"--gpus", "1"}, "read x < gate");
  const auto id = cluster_.submit_script({"--gpus", "1"}, "echo one; echo two >&2; printf three");
  EXPECT_EQ(gpuq({"logs", std::to_string(id)}).code, 4);
  Process follower = cluster_.start_gpuq("follower", {"logs", "-f", std::to_string(id)});
  gate.open();
  EXPECT_EQ(follower.wait(), 0) << cluster_.read("follower.err");
  EXPECT_EQ(cluster_.read("follower.out"), "one\nthree");
  EXPECT_EQ(cluster_.read("follower.err"), "two\n");
  const Output again = gpuq({"logs", "--stdout", std::to_string(id)});
  EXPECT_EQ(again.out, "one\nthree");
  EXPECT_EQ(gpuq({"logs", "--tail", "3", std::to_string(id)}).out, "ree");
  EXPECT_EQ(gpuq({"logs", std::to_string(holder)}).out, "");
}

TEST_F(CliTest, LogsSurviveTheNode) {
  const auto id = cluster_.submit_script({}, "echo kept");
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_SUCCEEDED));
  // Handed over, the output is removed from the node.
  ASSERT_TRUE(eventually([&] {
    return !holds_files(cluster_.root() + "/n1/attempts") &&
           !holds_files(cluster_.root() + "/n1/trash");
  }));
  cluster_.kill_agent("n1");
  EXPECT_EQ(gpuq({"logs", std::to_string(id)}).out, "kept\n");
}

TEST_F(CliTest, WaitForSeveralAndInVain) {
  const auto good = cluster_.submit({}, {"true"});
  const auto bad = cluster_.submit_script({}, "exit 3");
  const auto worse = cluster_.submit_script({}, "exit 8");
  EXPECT_EQ(gpuq({"wait", std::to_string(good)}).code, 0);
  EXPECT_EQ(gpuq({"wait", std::to_string(good), std::to_string(bad), std::to_string(worse)}).code,
            8);
  const auto endless = cluster_.submit_script({}, kPolite);
  const Output output = gpuq({"wait", "--timeout", "1s", std::to_string(endless)});
  EXPECT_EQ(output.code, 7);
  EXPECT_EQ(lines_of(output.err).size(), 1U);
}

TEST_F(CliTest, UpdateReorders) {
  const auto holder = cluster_.submit_script({"--gpus", "1"}, kPolite);
  ASSERT_TRUE(cluster_.reaches(holder, v1::JOB_STATE_RUNNING));
  const auto first = cluster_.submit_script({"--gpus", "1"}, "echo first >> order");
  const auto second = cluster_.submit_script({"--gpus", "1"}, "echo second >> order");
  EXPECT_EQ(gpuq({"update", std::to_string(second), "--priority", "5"}).code, 0);
  EXPECT_EQ(cluster_.job(second).spec().scheduling_priority(), 5);
  cluster_.cancel(holder);
  ASSERT_TRUE(cluster_.reaches(first, v1::JOB_STATE_SUCCEEDED));
  ASSERT_TRUE(cluster_.reaches(second, v1::JOB_STATE_SUCCEEDED));
  EXPECT_EQ(cluster_.read("order"), "second\nfirst\n");
  EXPECT_EQ(gpuq({"update", std::to_string(second), "--priority", "6"}).code, 4);
}

TEST_F(CliTest, StatusAndNodes) {
  const auto id = cluster_.submit_script({"--gpus", "1"}, kPolite);
  ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_RUNNING));
  const Json status = json({"status"});
  EXPECT_EQ(status["nodes"]["up"], 1);
  bool found = false;
  for (const auto& unit : status["units"]) {
    found = found || (unit["capacity"] == 1 && unit["held"] == 1 && unit["free"] == 0);
  }
  EXPECT_TRUE(found) << status.dump();
  EXPECT_THAT(gpuq({"status"}).out, HasSubstr("default/default"));
  const Output nodes = gpuq({"node", "ls"});
  EXPECT_THAT(nodes.out, HasSubstr("n1"));
  EXPECT_THAT(nodes.out, HasSubstr("A10G"));
  const Json node = json({"node", "show", "n1"});
  EXPECT_EQ(node["link"], "UP");
  ASSERT_EQ(node["devices"].size(), 1U);
  EXPECT_EQ(node["devices"][0]["job_ids"], Json::array({id}));
  EXPECT_EQ(json({"node", "ls"})["node_name"], "n1");
}

TEST_F(CliTest, ApplyShowsThenDoes) {
  const auto file = cluster_.write("policy.yaml", one_share_policy(1));
  const Output dry = gpuq({"apply", "-f", file, "--dry-run"});
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("team"));
  EXPECT_THAT(dry.out, HasSubstr("would be made"));
  EXPECT_EQ(gpuq({"submit", "-q", "q", "-s", "team", "--unit", "gpu", "--", "true"}).code, 3);
  const Output done = gpuq({"apply", "-f", file});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("made"));
  EXPECT_EQ(gpuq({"submit", "-q", "q", "-s", "team", "--unit", "gpu", "--", "true"}).code, 0);
  EXPECT_THAT(gpuq({"apply", "-f", file}).out, HasSubstr("no change"));

  const auto larger = cluster_.write("larger.yaml", one_share_policy(2));
  const Json change = json({"apply", "-f", larger, "--dry-run"});
  EXPECT_FALSE(change["changes"].empty());
  EXPECT_EQ(change["applied"], false);
}

TEST_F(CliTest, Simulate) {
  cluster_.kill_server();
  const std::string scenarios = std::string(GPUQ_SOURCE_DIR) + "/tests/scenario/";
  const Output good = gpuq({"simulate", scenarios + "three-shares-demonstration.yaml"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("ok"));
  std::string text = slurp(scenarios + "three-shares-demonstration.yaml");
  const auto at = text.find("running: [high, med], runnable");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 20, "running: [low]      ");
  const Output wrong = gpuq({"simulate", cluster_.write("wrong.yaml", text)});
  EXPECT_EQ(wrong.code, 1) << wrong.err;
  EXPECT_THAT(wrong.err, HasSubstr("wrong.yaml:"));
  EXPECT_EQ(gpuq({"simulate", cluster_.write("broken.yaml", "cluster: [\n")}).code, 2);
}

TEST_F(CliTest, VersionAndHelp) {
  EXPECT_THAT(gpuq({"version"}).out, HasSubstr("server"));
  const Json version = json({"version"});
  EXPECT_EQ(version["server"]["epoch"], 1);
  for (const char* command : {"submit", "run", "ls", "show", "why", "logs", "wait", "cancel",
                              "update", "status", "apply", "simulate"}) {
    const Output help = gpuq({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("Example:")) << command;
  }
}

}  // namespace
}  // namespace gpuq::e2e
