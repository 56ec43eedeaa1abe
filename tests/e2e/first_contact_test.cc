// The first five minutes: server, agent and one job with no file written, on the default address
// and in the default folders, as an ordinary user.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/e2e/cluster.h"

namespace gpuq::e2e {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST_F(ClusterTest, FirstContactWithFlagsOnly) {
  cluster_.start_server();
  cluster_.start_agent("n1");
  const Output output = cluster_.gpuq(
      {"run", "--quiet", "--gpus", "1", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out, MatchesRegex("GPU-[-0-9a-zA-Z]+\n"));
  const Output list = cluster_.gpuq({"history"});
  EXPECT_THAT(list.out, HasSubstr("default/default"));
}

/// In a network of its own the default port is free, and nobody else's.
TEST_F(ClusterTest, FirstContactWithoutAnyFlag) {
  const std::string script =
      "cd \"$1\" && [ -x gpuq ] && PATH=$PWD:$PATH && cd - > /dev/null || exit 77\n"
      "gpuqd > gpuqd.log 2>&1 & server=$!\n"
      "gpuq-agent --devices fake:1xA10G > agent.log 2>&1 & agent=$!\n"
      "trap 'kill $server $agent; wait' EXIT\n"
      "until gpuq status > /dev/null 2>&1; do kill -0 $server || exit 1; sleep 0.05; done\n"
      "until gpuq node ls --json | grep -q UP; do kill -0 $agent || exit 1; sleep 0.05; done\n"
      "gpuq run --quiet --gpus 1 -- sh -c 'echo $CUDA_VISIBLE_DEVICES' > seen 2> errors\n";
  const Output output = cluster_.run_isolated(script, {Cluster::binary("")});
  if (output.code == kNoNetwork) GTEST_SKIP() << "no network of our own here";
  EXPECT_EQ(output.code, 0) << output.err << cluster_.read("gpuqd.log")
                            << cluster_.read("agent.log") << cluster_.read("errors");
  EXPECT_THAT(cluster_.read("seen"), MatchesRegex("GPU-[-0-9a-zA-Z]+\n"));
  EXPECT_TRUE(std::filesystem::exists(cluster_.root() + "/home/.local/share/gpuq"));
}

}  // namespace
}  // namespace gpuq::e2e
