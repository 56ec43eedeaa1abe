// Arrays as people write them, and which job has which index.
#include <gtest/gtest.h>

#include "core/model/array.h"

namespace gpuq {
namespace {

std::string complaint(std::string_view text) {
  const auto range = parse_array(text);
  return range ? "none: " + to_string(*range) : range.error().message;
}

TEST(ArrayText, IsReadAndWrittenTheSameWay) {
  for (const char* text :
       {"0-99", "0-99%10", "3-3", "1-9:2", "0-999999:10%1", "5-1000000000:20000"}) {
    const auto range = parse_array(text);
    ASSERT_TRUE(range.has_value()) << text << ": " << range.error().message;
    EXPECT_EQ(to_string(*range), text);
  }
  EXPECT_EQ(*parse_array("7"), (ArrayRange{7, 7, 1, 0}));
  EXPECT_EQ(parse_array("1-9:2")->size(), 5);   // 1 3 5 7 9
  EXPECT_EQ(parse_array("1-10:2")->size(), 5);  // 1 3 5 7 9
  EXPECT_EQ(parse_array("0-99999")->size(), kMaxArraySize);
}

TEST(ArrayText, ThatIsNoneIsRefusedWithTheValue) {
  for (const char* text : {"", "-", "a", "1-", "-1", "1-2-3", "1,3", "0-9%", "0-9:", "0-9%1%2",
                           "0-9 ", "0x1-3", "99999999999", "0-9%-1"}) {
    const std::string said = complaint(text);
    EXPECT_NE(said.find("write FIRST-LAST"), std::string::npos) << text << ": " << said;
    EXPECT_NE(said.find(text), std::string::npos) << said;
  }
  EXPECT_NE(complaint("9-0").find("write 0-9"), std::string::npos) << complaint("9-0");
  EXPECT_NE(complaint("0-9%0").find("no member ever starts"), std::string::npos);
  EXPECT_NE(complaint("0-9:0").find("the step is 1 or more"), std::string::npos);
  EXPECT_NE(complaint("0-100000").find("at most 100000 are allowed"), std::string::npos);
  EXPECT_NE(complaint("0-1000000001:1000000000").find("indexes are 0 to 1000000000"),
            std::string::npos);
}

TEST(JobArray, KnowsItsMembersByNumberAndByIndex) {
  const JobArray array{JobId(17), {10, 19, 3, 0}};  // 10 13 16 19
  EXPECT_EQ(array.size(), 4);
  EXPECT_EQ(array.member(0), JobId(18));
  EXPECT_EQ(array.index(JobId(21)), 19);
  EXPECT_FALSE(array.has_member(JobId(17)));
  EXPECT_TRUE(array.has_member(JobId(21)));
  EXPECT_FALSE(array.has_member(JobId(22)));
  EXPECT_EQ(array.member_at_index(16), JobId(20));
  EXPECT_EQ(array.member_at_index(15), std::nullopt);
  EXPECT_EQ(array.member_at_index(7), std::nullopt);
  EXPECT_EQ(array.member_at_index(22), std::nullopt);
}

TEST(MemberCounts, StateIsTheFurthestThatHasNotEnded) {
  MemberCounts counts;
  const auto set = [&](JobState state, std::int32_t members) {
    counts.by_state[static_cast<std::size_t>(state)] = members;
  };
  set(JobState::kSucceeded, 3);
  EXPECT_EQ(counts.state(), JobState::kSucceeded);
  set(JobState::kFailed, 1);
  EXPECT_EQ(counts.state(), JobState::kFailed);
  EXPECT_EQ(counts.ended(), 4);
  set(JobState::kPending, 1);
  EXPECT_EQ(counts.state(), JobState::kPending);
  set(JobState::kRunnable, 1);
  EXPECT_EQ(counts.state(), JobState::kRunnable);
  set(JobState::kRunning, 1);
  EXPECT_EQ(counts.state(), JobState::kRunning);
}

}  // namespace
}  // namespace gpuq
