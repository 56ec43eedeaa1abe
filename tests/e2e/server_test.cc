// gpuqd as a program: its data directory, addresses, configuration, stop.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

using testing::HasSubstr;

class ServerTest : public ClusterTest {
 protected:
  /// Ends at once with `code` and one line that has `part` in it.
  void expect_refused(const Words& words, int code, const std::string& part) {
    const Output output = cluster_.run("gpuqd", words);
    EXPECT_EQ(output.code, code) << output.err;
    EXPECT_THAT(output.err, HasSubstr(part));
    EXPECT_EQ(lines_of(output.err).size(), 1U) << output.err;
  }
};

TEST_F(ServerTest, OneServerForADataDirectory) {
  cluster_.start_server();
  expect_refused(
      {"--data-dir", cluster_.data_dir(), "--listen", "127.0.0.1:0", "--log-level", "error"}, 1,
      cluster_.data_dir());
  EXPECT_EQ(cluster_.gpuq({"status"}).code, 0);
}

TEST_F(ServerTest, AddressThatIsTaken) {
  cluster_.start_server();
  expect_refused({"--data-dir", cluster_.root() + "/other", "--listen", cluster_.address(),
                  "--log-level", "error"},
                 1, cluster_.address());
}

TEST_F(ServerTest, OtherMachinesNeedInsecure) {
  expect_refused({"--data-dir", cluster_.data_dir(), "--listen", "0.0.0.0:0"}, 2, "--insecure");
  cluster_.start_server({"--listen", "0.0.0.0:0", "--insecure"});
  EXPECT_EQ(cluster_.gpuq({"status"}).code, 0);
}

TEST_F(ServerTest, CheckConfig) {
  const auto check = [this](const std::string& text) {
    return Words{"--check-config", "--config", cluster_.write("gpuqd.yaml", text)};
  };
  const Output good = cluster_.run("gpuqd", check("data_dir: /srv/gpuq\nlog: {level: debug}\n"));
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("/srv/gpuq"));
  expect_refused(check("data_dirr: /srv/gpuq\n"), 2, "data_dirr");
  expect_refused(check("listen: [nonsense]\n"), 2, "nonsense");
  expect_refused(check("log: {level: loud}\n"), 2, "loud");
  expect_refused(check("agents: {heartbeat_interval: soon}\n"), 2, "soon");
  expect_refused(check("listen: [\"0.0.0.0:7070\"]\n"), 2, "--insecure");
  expect_refused(check("listen: [\n"), 2, "gpuqd.yaml:");
  expect_refused({"--check-config", "--config", cluster_.work("none.yaml")}, 2, "none.yaml");
  expect_refused({"--no-such-flag"}, 2, "--no-such-flag");
}

TEST_F(ServerTest, GracefulStopLeavesJobsRunning) {
  cluster_.start(1);
  const Gate gate(cluster_, "gate");
  const auto id = cluster_.submit_script({"--name", "j"}, polite_until("gate", 6));
  ASSERT_TRUE(cluster_.has_line("marks", "j up"));
  EXPECT_EQ(cluster_.stop_server(), 0) << cluster_.server_log();
  EXPECT_FALSE(processes_with("GPUQ_JOB_NAME=j").empty());
  gate.open();
  EXPECT_TRUE(cluster_.has_line("marks", "j done"));
  cluster_.start_server();
  EXPECT_EQ(cluster_.gpuq({"wait", std::to_string(id)}).code, 6);
  EXPECT_EQ(cluster_.job(id).attempt_count(), 1);
}

TEST_F(ServerTest, StopsUnderItsClientsAndTheyFindBack) {
  cluster_.start(1);
  const Gate gate(cluster_, "gate");
  Process runner = cluster_.start_gpuq("runner", {"run", "--quiet", "--name", "j", "--", "sh", "-c",
                                                  "echo hello; read x < gate; echo bye; exit 3"});
  ASSERT_TRUE(cluster_.has_line("runner.out", "hello"));
  Process follower = cluster_.start_gpuq("follower", {"logs", "-f", "1"});
  ASSERT_TRUE(cluster_.has_line("follower.out", "hello"));
  EXPECT_EQ(cluster_.stop_server(), 0);
  cluster_.start_server();
  gate.open();
  EXPECT_EQ(runner.wait(), 3) << cluster_.read("runner.err");
  EXPECT_EQ(follower.wait(), 0) << cluster_.read("follower.err");
  EXPECT_EQ(cluster_.read("runner.out"), "hello\nbye\n");
  EXPECT_EQ(cluster_.read("follower.out"), "hello\nbye\n");
}

TEST_F(ServerTest, AgentRefusesToBeRootUnlessTold) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root";
  const Output output =
      cluster_.run("gpuq-agent", {"--devices", "none", "--state-dir", cluster_.root() + "/a"});
  EXPECT_NE(output.code, 0);
  EXPECT_EQ(lines_of(output.err).size(), 1U);
  EXPECT_THAT(output.err, HasSubstr("--allow-root"));
}

}  // namespace
}  // namespace gpuq::e2e
