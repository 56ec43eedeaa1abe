// Arrays with the real programs: what their members know, how many run, and what people see.
#include <gmock/gmock.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/e2e/cluster.h"

namespace gpuq::e2e {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

/// A quarter of a GPU: four fit a device.
Words submit_words(const Words& options, const std::string& script) {
  Words words = {"submit", "--gpus", "0.25"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "sh", "-c", script});
  return words;
}

class ArraysTest : public ClusterTest {
 protected:
  void SetUp() override { cluster_.start(1); }
  Output gpuq(const Words& words) { return cluster_.gpuq(words); }
};

TEST_F(ArraysTest, TwentyMembersThreeAtATimePrintTheirIndex) {
  const Gate gates[] = {Gate(cluster_, "gate0"), Gate(cluster_, "gate1"), Gate(cluster_, "gate2")};
  const std::string script =
      "echo up $GPUQ_ARRAY_INDEX of $GPUQ_ARRAY_SIZE in $GPUQ_ARRAY_JOB_ID >> marks; "
      "if [ $GPUQ_ARRAY_INDEX -lt 3 ]; then read x < gate$GPUQ_ARRAY_INDEX; fi; "
      "echo index $GPUQ_ARRAY_INDEX";
  EXPECT_EQ(gpuq(submit_words({"--array", "0-19%3", "--name", "sweep"}, script)).out, "1\n");
  for (const std::int64_t member : {2, 3, 4}) {
    ASSERT_TRUE(cluster_.reaches(member, v1::JOB_STATE_RUNNING));
  }
  EXPECT_TRUE(cluster_.waits_for(5, "ARRAY_LIMIT"));
  ASSERT_TRUE(cluster_.has_lines("marks", 3));
  const v1::Job array = cluster_.job(1);
  EXPECT_EQ(array.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(array.array().members().running(), 3);
  EXPECT_EQ(array.array().members().pending(), 17);
  const std::string listed = gpuq({"ls"}).out;
  EXPECT_THAT(listed, HasSubstr("0-19%3: 3 running, 17 pending; ARRAY_LIMIT"));
  EXPECT_EQ(std::ranges::count(listed, '\n'), 2) << listed;  // The head and one line.
  EXPECT_THAT(gpuq({"why", "1.7"}).out, HasSubstr("Job 1.7 (sweep) is PENDING"));
  for (const Gate& gate : gates) gate.open();

  EXPECT_EQ(gpuq({"wait", "1"}).code, 0);
  Words marks = cluster_.lines("marks");
  EXPECT_EQ(marks.size(), 20U);
  EXPECT_EQ(std::ranges::count(marks, "up 19 of 20 in 1"), 1);
  EXPECT_EQ(gpuq({"logs", "1.7"}).out, "index 7\n");
  EXPECT_EQ(gpuq({"logs", "1.19#1"}).out, "index 19\n");
  EXPECT_THAT(gpuq({"logs", "1"}).err, HasSubstr("is an array: name one of its members"));
  EXPECT_THAT(gpuq({"show", "1"}).out, HasSubstr("0-19%3: 20 succeeded"));
  EXPECT_THAT(gpuq({"show", "1.20"}).err, HasSubstr("array 1 has no such member"));
  const Json member = Json::parse(gpuq({"show", "1.7", "--json"}).out);
  EXPECT_EQ(member["job_id"], 9);
  EXPECT_EQ(member["member_of"]["index"], 7);
  EXPECT_EQ(lines_of(gpuq({"ls", "--array", "1", "--json"}).out).size(), 20U);
}

TEST_F(ArraysTest, AreWaitedForCancelledAndDependedOnWholeAndByMember) {
  EXPECT_EQ(gpuq(submit_words({"--array", "0-2", "--wait"}, "exit $GPUQ_ARRAY_INDEX")).code, 2);
  EXPECT_EQ(gpuq({"wait", "1.1"}).code, 1);

  // Job 5 and its members 6 to 15: held but for 3.
  EXPECT_EQ(gpuq(submit_words({"--array", "0-9", "--hold"}, "true")).out, "5\n");
  EXPECT_EQ(gpuq(submit_words({"--after", "ok:5.3"}, "true")).out, "16\n");
  EXPECT_EQ(gpuq(submit_words({"--after-ok", "5"}, "true")).out, "17\n");
  EXPECT_THAT(gpuq(submit_words({"--after", "ok:5.10"}, "true")).err,
              HasSubstr("array 5 has no member 10: its indexes are 0-9"));
  EXPECT_EQ(gpuq({"release", "5.3"}).code, 0);
  EXPECT_EQ(gpuq({"wait", "16"}).code, 0);
  EXPECT_EQ(gpuq({"cancel", "-y", "5.0", "5.7-8"}).code, 0);
  EXPECT_EQ(cluster_.job(5).array().members().failed(), 3);
  EXPECT_EQ(cluster_.job(5).array().members().pending(), 6);
  EXPECT_EQ(gpuq({"update", "5", "--priority", "4"}).code, 0);
  EXPECT_EQ(cluster_.job(10).spec().scheduling_priority(), 4);
  EXPECT_EQ(gpuq({"cancel", "5"}).code, 0);
  EXPECT_EQ(gpuq({"wait", "5", "5.9"}).code, 1);
  EXPECT_EQ(gpuq({"wait", "17"}).code, 1);
  EXPECT_EQ(cluster_.job(5).array().members().failed(), 9);
}

TEST_F(ArraysTest, GoOnAfterACrashOfTheServer) {
  EXPECT_EQ(
      gpuq(submit_words({"--array", "0-49", "--hold"}, "echo $GPUQ_ARRAY_INDEX >> marks")).out,
      "1\n");
  EXPECT_EQ(gpuq({"release", "1.1"}).code, 0);
  ASSERT_TRUE(cluster_.has_lines("marks", 1));
  cluster_.kill_server();
  cluster_.start_server();
  EXPECT_EQ(gpuq({"release", "1"}).code, 0);
  EXPECT_EQ(gpuq({"wait", "1"}).code, 0);
  EXPECT_EQ(cluster_.lines("marks").size(), 50U);
}

TEST_F(ArraysTest, ComeFromJobFilesAndScripts) {
  const std::string file =
      cluster_.write("job.yaml", "command: [sh, -c, 'exit $GPUQ_ARRAY_INDEX']\narray: 0-4:4\n");
  EXPECT_EQ(gpuq({"submit", "-f", file, "--wait"}).code, 4);
  const std::string script =
      cluster_.write("job.sh", "#!/bin/sh\n#GPUQ --array 6-7%1\nexit $GPUQ_ARRAY_INDEX\n");
  EXPECT_EQ(gpuq({"submit", "--wait", script}).code, 7);
  EXPECT_THAT(gpuq({"submit", "--array", "0-100000", "--", "true"}).err,
              HasSubstr("at most 100000 are allowed"));
  EXPECT_THAT(gpuq({"run", "--array", "0-1", "--", "true"}).err, HasSubstr("takes no array"));
}

}  // namespace
}  // namespace gpuq::e2e
