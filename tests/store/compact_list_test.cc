#include "server/store/compact_list.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace gpuq::store {
namespace {

TEST(CompactListTest, IsReadable) {
  EXPECT_EQ(pack(std::vector<DeviceUse>{}), "");
  EXPECT_EQ(pack(std::vector<DeviceUse>{{0, 1000, {}}, {7, 250, AttemptId(12)}}),
            "0:1000,7:250:12");
  EXPECT_EQ(pack(std::vector<AwaitedHost>{{AttemptId(3), 8, 1024}}), "3:8:1024");
  EXPECT_EQ(pack(std::vector<Dependency>{{JobId(12), DependencyCondition::kSucceeded},
                                         {JobId(7), DependencyCondition::kEnded}}),
            "12:1,7:3");
  EXPECT_EQ(pack(std::vector<AttemptId>{AttemptId(5), AttemptId(9)}), "5,9");
  EXPECT_EQ(pack(std::vector<JobId>{JobId(4), JobId(5), JobId(6), JobId(2), JobId(2)}),
            "4:3,2:1,2:1");
}

TEST(CompactListTest, ComesBack) {
  const std::vector<JobId> jobs = {JobId(9), JobId(10), JobId(1),
                                   JobId(std::numeric_limits<std::int64_t>::max() - 5)};
  std::vector<JobId> read;
  ASSERT_TRUE(unpack(pack(jobs), read));
  EXPECT_EQ(read, jobs);
  ASSERT_TRUE(unpack("", read));
  EXPECT_TRUE(read.empty());
}

TEST(CompactListTest, DamageIsNoticed) {
  std::vector<DeviceUse> devices;
  std::vector<AwaitedHost> hosts;
  std::vector<AttemptId> attempts;
  std::vector<JobId> jobs;
  for (const char* text :
       {"x", "1", "1:", "1:2,", ",1:2", "1:2:3:4", "1;2", "99999999999:1", "1:2 "}) {
    EXPECT_FALSE(unpack(text, devices)) << text;
  }
  for (const char* text : {"1:2", "1:99999999999:3"}) EXPECT_FALSE(unpack(text, hosts)) << text;
  for (const char* text : {"1:2", "1,,2"}) EXPECT_FALSE(unpack(text, attempts)) << text;
  std::vector<Dependency> dependencies;
  for (const char* text : {"1", "1:0", "1:4", "1:1:1", "x"}) {
    EXPECT_FALSE(unpack(text, dependencies)) << text;
  }
  for (const char* text : {"1", "1:0", "1:-1", "1:99999999999", "9223372036854775807:2"}) {
    EXPECT_FALSE(unpack(text, jobs)) << text;
  }
}

}  // namespace
}  // namespace gpuq::store
