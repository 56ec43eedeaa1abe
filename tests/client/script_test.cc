#include "client/cli/script.h"

#include <gmock/gmock.h>

namespace gpuq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ScriptDirectives read(const std::string& text) {
  auto directives = parse_script(text, "job.sh");
  if (!directives) {
    ADD_FAILURE() << directives.error().message;
    return {};
  }
  return *directives;
}

TEST(Script, WordsAreSplitAsInAShell) {
  EXPECT_THAT(*split_words(R"(a  'b c' "d 'e'" f\ g '')"),
              ElementsAre("a", "b c", "d 'e'", "f g", ""));
  EXPECT_THAT(*split_words(""), IsEmpty());
  EXPECT_FALSE(split_words("a 'b"));
}

TEST(Script, OwnLinesAreOptions) {
  const auto directives = read(
      "#!/bin/bash\n"
      "# a comment\n"
      "#GPUQ --gpus 2 --name 'my job'\n"
      "\n"
      "#GPUQ --env A=1 --env B=2\n"
      "echo hello\n"
      "#GPUQ --gpus 8\n");
  EXPECT_EQ(directives.options.gpus, "2");
  EXPECT_EQ(directives.options.name, "my job");
  EXPECT_THAT(directives.options.env, ElementsAre("A=1", "B=2"));
  EXPECT_THAT(directives.warnings, IsEmpty());
}

TEST(Script, WrongOwnLineIsAnErrorWithItsPlace) {
  auto directives = parse_script("#!/bin/sh\n#GPUQ --gpsu 2\n", "job.sh");
  ASSERT_FALSE(directives);
  EXPECT_THAT(directives.error().message, HasSubstr("job.sh:2"));
  EXPECT_THAT(directives.error().message, HasSubstr("--gpsu"));
}

TEST(Script, SlurmZeroIsNoLimit) {
  const auto directives = read("#SBATCH --time=0 --mem=0\n");
  EXPECT_FALSE(directives.options.timeout);
  EXPECT_FALSE(directives.options.memory);
  EXPECT_THAT(directives.warnings, IsEmpty());
}

TEST(Script, SlurmLinesAreTranslated) {
  const auto directives = read(
      "#!/bin/bash\n"
      "#SBATCH --job-name=sft -p training\n"
      "#SBATCH --account research\n"
      "#SBATCH --gres=gpu:8\n"
      "#SBATCH -N 4 --ntasks-per-node=1\n"
      "#SBATCH -c16 --mem=64G\n"
      "#SBATCH --time=1-12\n"
      "#SBATCH --requeue\n");
  const auto& o = directives.options;
  EXPECT_THAT(directives.warnings, IsEmpty());
  EXPECT_EQ(o.name, "sft");
  EXPECT_EQ(o.queue, "training");
  EXPECT_EQ(o.share, "research");
  EXPECT_EQ(o.gpus, "8");
  EXPECT_EQ(o.instances, "4");
  EXPECT_EQ(o.cpus, "16");
  EXPECT_EQ(o.memory, "64G");
  EXPECT_EQ(o.timeout, std::to_string(36 * 3600));
}

TEST(Script, SlurmTimeCountsMinutes) {
  EXPECT_EQ(read("#SBATCH -t 90\n").options.timeout, "5400");
  EXPECT_EQ(read("#SBATCH --time=10:30\n").options.timeout, "630");
}

TEST(Script, SlurmDependenciesAndHoldsAreUnderstood) {
  const auto directives = read("#SBATCH -H --dependency=afterok:12:13,afternotok:14\n");
  EXPECT_TRUE(directives.warnings.empty());
  EXPECT_TRUE(directives.options.hold);
  EXPECT_EQ(directives.options.after, std::vector<std::string>{"ok:12,ok:13,fail:14"});
  for (const char* line : {"#SBATCH --dependency=singleton\n", "#SBATCH -d afterok\n",
                           "#SBATCH -d afterok:12?aftercorr:13\n", "#SBATCH -d \n"}) {
    if (read(line).warnings.size() == 1u) continue;
    ADD_FAILURE() << line << " gives no warning";
  }
}

TEST(Script, SlurmGpuWithModelIsAUnit) {
  const auto directives = read("#SBATCH --gres=gpu:a100:4\n");
  EXPECT_THAT(directives.options.units, ElementsAre("a100"));
  EXPECT_EQ(directives.options.count, "4");
}

TEST(Script, WhatCanNotBeHonouredIsAWarningWithItsLine) {
  const auto directives = read("#!/bin/sh\n#SBATCH --licenses=a --gpus 1\n#SBATCH --gres=fpga\n");
  EXPECT_EQ(directives.options.gpus, "1");
  ASSERT_EQ(directives.warnings.size(), 2U);
  EXPECT_THAT(directives.warnings[0], HasSubstr("job.sh:2: --licenses"));
  EXPECT_THAT(directives.warnings[1], HasSubstr("job.sh:3: --gres"));
}

TEST(Script, ArraysAreUnderstoodInBothDialects) {
  EXPECT_EQ(read("#!/bin/sh\n#GPUQ --array 0-9%2\n").options.array, "0-9%2");
  EXPECT_EQ(read("#!/bin/sh\n#SBATCH -a 1-7:3\n").options.array, "1-7:3");
  const auto listed = read("#!/bin/sh\n#SBATCH --array=1,3,5\n");
  EXPECT_EQ(listed.options.array, std::nullopt);
  ASSERT_EQ(listed.warnings.size(), 1U);
  EXPECT_THAT(listed.warnings[0], HasSubstr("job.sh:2: --array is left out: array '1,3,5'"));
}

TEST(Script, TextGoesWithTheJob) {
  EXPECT_THAT(script_command("#!/bin/bash -e\necho $1\n", "/x/job.sh", {"a"}),
              ElementsAre("/bin/bash", "-e", "-c", "#!/bin/bash -e\necho $1\n", "/x/job.sh", "a"));
  EXPECT_THAT(script_command("echo\n", "/x/job.sh", {}),
              ElementsAre("/bin/sh", "-c", "echo\n", "/x/job.sh"));
  EXPECT_THAT(
      script_command("#!/usr/bin/env python3\nimport sys\n", "/x/a.py", {"b"}),
      ElementsAre("/usr/bin/env", "python3", "-c", "#!/usr/bin/env python3\nimport sys\n", "b"));
  EXPECT_THAT(script_command("#!/usr/bin/perl\n", "/x/a.pl", {"b"}),
              ElementsAre("/usr/bin/perl", "/x/a.pl", "b"));
}

TEST(Script, LargeTextIsRunFromItsFile) {
  const std::string text = "#!/bin/sh\n" + std::string(200'000, '#');
  EXPECT_THAT(script_command(text, "/x/job.sh", {}), ElementsAre("/bin/sh", "/x/job.sh"));
}

}  // namespace
}  // namespace gpuq::cli
