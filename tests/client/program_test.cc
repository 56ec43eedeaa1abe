// The whole program in one process, without a server.
#include "client/cli/program.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/client/outcome.h"

namespace gpuq::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Program : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "gpuq_client_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Nobody listens on the socket that GPUQ_SERVER names.
  Outcome run(const std::vector<std::string>& words) const {
    const auto environment = [this](const std::string& name) -> std::optional<std::string> {
      if (name == "GPUQ_SERVER") return server_;
      if (name == "HOME") return folder_;
      return std::nullopt;
    };
    return run_captured(words, environment);
  }

  /// One line on standard error, nothing on standard output.
  void expect_refused(const std::vector<std::string>& words, int code, const std::string& part) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("gpuq: "));
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_LT(outcome.err.size(), 400U);
  }

  std::string folder_;
  std::optional<std::string> server_;
};

TEST_F(Program, HelpNeedsNoServer) {
  const Outcome outcome = run({"--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("status"));
}

TEST_F(Program, UsageMistakes) {
  expect_refused({"frobnicate"}, 2, "frobnicate");
  expect_refused({"submit"}, 2, "nothing to run");
  expect_refused({"submit", "--nonsense", "--", "true"}, 2, "--nonsense");
  expect_refused({"submit", "--gpus", "0", "--", "true"}, 2, "--gpus");
  expect_refused({"submit", "--instances", "-3", "--", "true"}, 2, "'-3'");
  expect_refused({"submit", "--gpus", "99999999999999999999", "--", "true"}, 2,
                 "99999999999999999999");
  expect_refused({"submit", "--", "echo", "\xff"}, 2, "word 4 of the command line, '\\xff'");
  expect_refused({"ls", "--name", "\xc3"}, 2, "UTF-8");
  expect_refused({"show", "1\ngpuq: "}, 2, "'1\\x0agpuq: ' is no job");
  expect_refused({"submit", "--cpus", "1\n2", "--", "true"}, 2, "'1\\x0a2'");
  expect_refused({"submit", "--", "echo", std::string(10'000'000, 'x')}, 2, "bytes");
  expect_refused({"submit", "-f", "job.yaml", "--", "true"}, 2, "one of");
}

TEST_F(Program, FilesThatDoNotExist) {
  expect_refused({"submit", folder_ + "/none.sh"}, 3, "none.sh");
  expect_refused({"submit", "-f", folder_ + "/none.yaml"}, 3, "none.yaml");
  expect_refused({"apply", "-f", folder_ + "/none.yaml"}, 3, "none.yaml");
  expect_refused({"simulate", folder_ + "/none.yaml"}, 3, "none.yaml");
  expect_refused({"submit", "-f", folder_ + "/none\n.yaml"}, 3, "none\\x0a.yaml");
  expect_refused({"submit", file("is", "") + "/none.sh"}, 3, "none.sh");
  for (const char* command : {"submit", "apply"}) {
    expect_refused({command, "-f", ""}, 3, "'': no such file");
  }
}

TEST_F(Program, FoldersAreNoFiles) {
  expect_refused({"submit", folder_}, 2, folder_);
  expect_refused({"submit", "-f", folder_}, 2, folder_);
  expect_refused({"apply", "-f", folder_}, 2, folder_);
  expect_refused({"simulate", folder_}, 2, folder_);
}

TEST_F(Program, EveryFaultOfAFileHasItsLine) {
  const Outcome outcome = run({"submit", "-f", file("a.yaml", "colour: red\nsize: 3\n")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("a.yaml:1:1: unknown key 'colour'"));
  EXPECT_THAT(outcome.err, HasSubstr("\ngpuq: " + folder_ + "/a.yaml:2:1: unknown key 'size'"));
}

TEST_F(Program, FullDiskIsAFailure) {
  const auto nothing = [](const std::string&) -> std::optional<std::string> {
    return std::nullopt;
  };
  std::ofstream full("/dev/full");
  const Outcome outcome = run_printing_to(full, {"--version"}, nothing);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "gpuq: standard output could not be written: No space left on device\n");
}

TEST_F(Program, FilesThatAreWrong) {
  expect_refused({"submit", "-f", file("a.yaml", "command: [true\n")}, 2, "a.yaml:");
  expect_refused({"submit", "-f", file("b.yaml", "command: ['true']\ncolour: red\n")}, 2,
                 "b.yaml:2");
  expect_refused({"apply", "-f", file("c.yaml", "job_quues: []\n")}, 2, "job_quues");
  expect_refused({"submit", file("s.sh", "#!/bin/sh\n#GPUQ --gpus two\n")}, 2, "'two'");
}

TEST_F(Program, StrictScripts) {
  const std::string script = file("s.sh", "#!/bin/sh\n#SBATCH --licenses=a\ntrue\n");
  expect_refused({"submit", "--strict", script}, 2, "s.sh:2: --licenses");
}

TEST_F(Program, ServerThatIsNotThere) {
  server_ = "unix:" + folder_ + "/nobody.sock";
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"submit", "--", "true"}, {"status"}}) {
    expect_refused(words, 6, "server not reachable at unix:" + folder_ + "/nobody.sock: start it");
  }
}

TEST_F(Program, WrongAddress) {
  server_ = "not an address";
  expect_refused({"ls"}, 2, "'not an address'");
}

TEST_F(Program, ConfigurationFile) {
  std::filesystem::create_directories(folder_ + "/.config/gpuq");
  file(".config/gpuq/config.yaml", "server: unix:" + folder_ + "/configured.sock\n");
  expect_refused({"status"}, 6, "configured.sock");
  expect_refused({"status", "--server", "unix:" + folder_ + "/flag.sock"}, 6, "flag.sock");
  file(".config/gpuq/config.yaml", "sever: x\n");
  expect_refused({"status"}, 2, "sever");
}

TEST_F(Program, SimulateChecksAFile) {
  const std::string text = R"(scenario: One job runs and ends
shares:
  A: {capacity: 2, strategy: RESERVE}
timeline:
  - {at: 0s, submit: {job: a, share: A, gpus: 1, runtime: 10s}}
expect:
  - {at: 5s, running: [a]}
)";
  Outcome outcome = run({"simulate", file("good.yaml", text)});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("ok"));
  outcome = run({"simulate", file("bad.yaml", text + "  - {at: 20s, running: [a]}\n")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("bad.yaml:8"));
  outcome = run({"simulate", "--json", folder_ + "/good.yaml"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("\"event\":\"SUMMARY\""));
  EXPECT_EQ(run({"simulate", file("wrong.yaml", "scenario: [\n")}).code, 2);
}

// B's job takes back what A borrowed after 50 minutes: with a checkpoint at 40 of them, 10 are
// done again.
TEST_F(Program, SimulateCountsAsLostWhatIsDoneAgain) {
  const auto scenario = [](const char* keys) {
    return std::string(R"(scenario: One reclaim
shares:
  A: {capacity: 0, strategy: LEND_AND_BORROW}
  B: {capacity: 1, strategy: LEND}
defaults: {runtime: 1h, grace: 0s}
timeline:
  - {at: 0s, submit: {job: a, share: A, gpus: 1)") +
           keys + "}}\n  - {at: 50m, submit: {job: b, share: B, gpus: 1}}\n";
  };
  const Outcome plain = run({"simulate", "--json", file("plain.yaml", scenario(""))});
  EXPECT_THAT(plain.out, HasSubstr("\"lost_unit_seconds\":3000")) << plain.err;
  const Outcome saves =
      run({"simulate", "--json", file("saves.yaml", scenario(", checkpoint: 20m"))});
  EXPECT_THAT(saves.out, HasSubstr("\"lost_unit_seconds\":600")) << saves.err;
}

TEST_F(Program, ThePicturesOfTheDocsAreThoseOfTheScheduler) {
  const std::string folder = GPUQ_SOURCE_DIR "/docs/policy/";
  std::size_t pictures = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".svg") continue;
    ++pictures;
    const std::string scenario = folder + entry.path().stem().string() + ".yaml";
    const std::string fresh = folder_ + "/fresh.svg";
    ASSERT_EQ(run({"simulate", scenario, "--plot", fresh}).code, 0) << scenario;
    EXPECT_EQ(text_of(entry.path()), text_of(fresh))
        << "look at the change, then: gpuq simulate " << scenario << " --plot "
        << entry.path().string();
  }
  EXPECT_EQ(pictures, 8U);
}

TEST_F(Program, SimulateReplaysATableUnderTwoPolicies) {
  const auto scenario = [](const char* strategy) {
    return std::string("scenario: Replay\nshares:\n  A: {capacity: 1, strategy: ") + strategy +
           "}\n  B: {capacity: 1, strategy: LEND}\n";
  };
  const std::string before = file("before.yaml", scenario("RESERVE"));
  const std::string after = file("after.yaml", scenario("LEND_AND_BORROW"));
  // Two jobs of A at once: one after the other in its own GPU, or both with B's.
  const std::string table =
      file("jobs.csv", "submit_s,share,runtime_s,priority\n0,A,3600,1\n0,A,3600,2\n");
  const std::string picture = folder_ + "/out.svg";
  const Outcome outcome =
      run({"simulate", before, "--trace", table, "--compare", after, "--plot", picture});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Pool: used 50% -> 100%"));
  EXPECT_THAT(outcome.out, HasSubstr("length 2h -> 1h"));
  EXPECT_THAT(outcome.out, HasSubstr("1h -> 0s"));
  const std::string text = text_of(picture);
  EXPECT_THAT(text, HasSubstr("<title>Replay</title>"));
  EXPECT_THAT(text, testing::EndsWith("</svg>\n"));

  expect_refused({"simulate", before, "--trace", folder_ + "/none.csv"}, 3, "none.csv");
  expect_refused({"simulate", before, "--compare", folder_ + "/none.yaml"}, 3, "none.yaml");
  expect_refused({"simulate", before, after, "--trace", table}, 2, "one scenario file");
  expect_refused({"simulate", before, "--plot", folder_ + "/no/out.svg"}, 1,
                 "could not be written");
}

}  // namespace
}  // namespace gpuq::cli
