#include "client/cli/parse.h"

#include <gmock/gmock.h>

namespace gpuq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Invocation parsed(const std::vector<std::string>& words) {
  auto outcome = parse_command_line(words);
  if (!outcome) {
    ADD_FAILURE() << outcome.error().message;
    return Invocation{};
  }
  return std::get<Invocation>(*outcome);
}

std::string refusal(const std::vector<std::string>& words) {
  auto outcome = parse_command_line(words);
  if (outcome) {
    ADD_FAILURE() << "accepted";
    return "";
  }
  EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument);
  return outcome.error().message;
}

TEST(Parse, CommandAfterDashesKeepsItsOwnOptions) {
  const auto invocation =
      parsed({"submit", "--gpus", "2", "--", "python", "-c", "x", "--", "--json"});
  const auto& submit = std::get<SubmitOptions>(invocation.command);
  EXPECT_EQ(submit.job.gpus, "2");
  EXPECT_THAT(submit.command, ElementsAre("python", "-c", "x", "--", "--json"));
  EXPECT_TRUE(submit.script.empty());
  EXPECT_FALSE(invocation.global.json);
}

TEST(Parse, ScriptTakesWhatFollowsIt) {
  const auto invocation =
      parsed({"submit", "-i", "4", "--env", "A=1", "train.sh", "--lr", "3", "run"});
  const auto& submit = std::get<SubmitOptions>(invocation.command);
  EXPECT_EQ(submit.job.instances, "4");
  EXPECT_THAT(submit.job.env, ElementsAre("A=1"));
  EXPECT_THAT(submit.script, ElementsAre("train.sh", "--lr", "3", "run"));
}

TEST(Parse, RepeatedOptionsAreCollected) {
  const auto invocation =
      parsed({"run", "-u", "a100", "-u", "h100", "-l", "a=b", "--quiet", "--", "true"});
  const auto& run = std::get<RunOptions>(invocation.command);
  EXPECT_THAT(run.job.units, ElementsAre("a100", "h100"));
  EXPECT_THAT(run.job.labels, ElementsAre("a=b"));
  EXPECT_TRUE(run.quiet);
}

TEST(Parse, NegativeNumberIsAValue) {
  const auto invocation = parsed({"update", "17", "--priority", "-1"});
  EXPECT_EQ(std::get<UpdateOptions>(invocation.command).priority, "-1");
}

TEST(Parse, GlobalOptionsStandBehindEveryCommand) {
  const auto invocation = parsed({"node", "cordon", "n-0", "n-1", "--server", "head:1", "--json"});
  EXPECT_EQ(invocation.global.server, "head:1");
  EXPECT_TRUE(invocation.global.json);
  const auto& node = std::get<NodeOptions>(invocation.command);
  EXPECT_EQ(node.verb, NodeOptions::Verb::kCordon);
  EXPECT_THAT(node.nodes, ElementsAre("n-0", "n-1"));
}

TEST(Parse, GlobalOptionsStandBeforeTheCommandToo) {
  const auto node = parsed({"--server", "head:1", "node", "--json", "ls"});
  EXPECT_EQ(node.global.server, "head:1");
  EXPECT_TRUE(node.global.json);
  const auto run =
      parsed({"--server", "a:1", "run", "--server", "b:2", "--", "x", "--server", "c:3"});
  EXPECT_EQ(run.global.server, "b:2");
  EXPECT_THAT(std::get<RunOptions>(run.command).command, ElementsAre("x", "--server", "c:3"));
}

TEST(Parse, ListFilters) {
  const auto invocation = parsed({"ls", "-a", "--state", "RUNNING", "--state", "FAILED"});
  const auto& list = std::get<ListOptions>(invocation.command);
  EXPECT_TRUE(list.everybody);
  EXPECT_FALSE(list.history);
  EXPECT_THAT(list.states, ElementsAre("RUNNING", "FAILED"));
  EXPECT_TRUE(std::get<ListOptions>(parsed({"history"}).command).history);
}

TEST(Parse, MistakesNameTheHelpToRead) {
  EXPECT_THAT(refusal({"sumbit"}), HasSubstr("unknown command 'sumbit' (see gpuq --help)"));
  EXPECT_THAT(refusal({"submit", "--gpu", "1", "--", "x"}), HasSubstr("--gpu"));
  EXPECT_THAT(refusal({"wait"}), HasSubstr("gpuq wait --help"));
  EXPECT_THAT(refusal({"logs", "1", "--attempt", "0"}), HasSubstr("gpuq logs --help"));
  EXPECT_THAT(refusal({"ls", "extra"}), HasSubstr("gpuq ls --help"));
  EXPECT_THAT(refusal({"logs", "1", "--stdout", "--stderr"}), HasSubstr("--std"));
}

TEST(Parse, EveryHelpHasAnExample) {
  for (const char* words :
       {"submit", "run",     "ls",        "history",     "show",          "why",       "logs",
        "wait",   "cancel",  "update",    "status",      "apply",         "simulate",  "version",
        "node",   "node ls", "node show", "node cordon", "node uncordon", "node drain"}) {
    std::vector<std::string> line;
    const std::string text = words;
    const auto blank = text.find(' ');
    line.push_back(text.substr(0, blank));
    if (blank != std::string::npos) line.push_back(text.substr(blank + 1));
    line.push_back("--help");
    auto outcome = parse_command_line(line);
    ASSERT_TRUE(outcome) << words;
    const auto* help = std::get_if<HelpText>(&*outcome);
    ASSERT_NE(help, nullptr) << words;
    EXPECT_THAT(help->text, HasSubstr("Example:\n  gpuq " + text)) << words;
  }
}

TEST(Parse, NoWordsGiveTheHelp) {
  auto outcome = parse_command_line({});
  ASSERT_TRUE(outcome);
  EXPECT_THAT(std::get<HelpText>(*outcome).text, HasSubstr("submit"));
  outcome = parse_command_line({"--version"});
  ASSERT_TRUE(outcome);
  EXPECT_THAT(std::get<HelpText>(*outcome).text, testing::StartsWith("gpuq "));
}

}  // namespace
}  // namespace gpuq::cli
