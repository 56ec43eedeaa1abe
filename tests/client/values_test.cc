#include "client/cli/values.h"

#include <gtest/gtest.h>

#include "client/cli/selector.h"
#include "client/lib/client.h"

namespace gpuq::cli {
namespace {

TEST(Values, SlurmTimes) {
  EXPECT_EQ(parse_slurm_time("90")->count(), 90 * 60'000);
  EXPECT_EQ(parse_slurm_time("01:30:00")->count(), 90 * 60'000);
  EXPECT_EQ(parse_slurm_time("1-02:00:00")->count(), 26 * 3'600'000);
  EXPECT_FALSE(parse_slurm_time(""));
  EXPECT_FALSE(parse_slurm_time("90m"));
}

TEST(Values, MilliUnits) {
  EXPECT_EQ(*parse_milli("8"), 8000);
  EXPECT_EQ(*parse_milli("0.25"), 250);
  EXPECT_EQ(*parse_milli("1000000"), 1'000'000'000);
  for (const char* wrong : {"", "0", "0.0", "-1", "1000001", "0.0001", "1e3", "x", "1,5"}) {
    EXPECT_FALSE(parse_milli(wrong)) << wrong;
  }
}

TEST(Values, Text) {
  EXPECT_TRUE(is_text(""));
  EXPECT_TRUE(is_text("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  for (const std::string& wrong :
       {std::string("\x80"), std::string("\xc3"), std::string("\xc0\x80"),
        std::string("\xe0\x80\x80"), std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"),
        std::string("a\0b", 3)}) {
    EXPECT_FALSE(is_text(wrong));
  }
}

TEST(Selector, Forms) {
  using Kind = JobSelector::Kind;
  EXPECT_EQ(parse_selector("17")->first, 17);
  EXPECT_EQ(parse_selector("17#2")->attempt, 2);
  EXPECT_EQ(parse_selector("last")->kind, Kind::kLast);
  EXPECT_EQ(parse_selector("last#3")->attempt, 3);
  EXPECT_EQ(parse_selector("1-10")->kind, Kind::kRange);
  EXPECT_EQ(parse_selector("1-10")->last, 10);
  EXPECT_EQ(parse_selector("name:sweep*")->text, "sweep*");
  EXPECT_TRUE(parse_selector("name:sweep*")->is_mass());
  EXPECT_EQ(parse_selector("0F8FAD5B-D9CB-469F-A165-70867728950E")->text,
            "0f8fad5b-d9cb-469f-a165-70867728950e");
  EXPECT_EQ(parse_selector("17.3")->kind, Kind::kMembers);
  EXPECT_EQ(parse_selector("17.3")->first, 17);
  EXPECT_EQ(parse_selector("17.3")->first_index, 3);
  EXPECT_FALSE(parse_selector("17.3")->is_mass());
  EXPECT_EQ(parse_selector("17.3#2")->attempt, 2);
  EXPECT_EQ(parse_selector("17.5-9")->last_index, 9);
  EXPECT_TRUE(parse_selector("17.5-9")->is_mass());
}

TEST(Selector, Mistakes) {
  for (const char* wrong : {"", "0", "-1", "x", "17#0", "17#", "10-1", "1-", "-", "1-2#3",
                            "name:", "99999999999999999999", "17.", "17.x", "17.-1", "17.5-3",
                            "17.3-5#1", ".3", "17.3.1"}) {
    auto selector = parse_selector(wrong);
    ASSERT_FALSE(selector) << wrong;
    EXPECT_EQ(selector.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(selector.error().message.find(wrong), std::string::npos);
  }
}

TEST(Target, Forms) {
  EXPECT_EQ(*client::normalize_target("head"), "head:7070");
  EXPECT_EQ(*client::normalize_target("10.0.0.1:80"), "10.0.0.1:80");
  EXPECT_EQ(*client::normalize_target("unix:/run/gpuq.sock"), "unix:/run/gpuq.sock");
  EXPECT_EQ(*client::normalize_target("::1"), "[::1]:7070");
  EXPECT_EQ(*client::normalize_target("[::1]:80"), "[::1]:80");
  for (const char* wrong :
       {"", ":80", "head:", "head:0", "head:70707", "head:x", "a b", "http://x"}) {
    EXPECT_FALSE(client::normalize_target(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace gpuq::cli
