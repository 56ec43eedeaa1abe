#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>

#include "common/policy/units.h"

namespace gpuq {
namespace {

using namespace std::chrono_literals;

Duration duration_of(const std::string& text) {
  auto parsed = parse_duration(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : Duration(-1);
}

TEST(ParseDuration, TakesEveryForm) {
  EXPECT_EQ(duration_of("500ms"), 500ms);
  EXPECT_EQ(duration_of("10s"), 10s);
  EXPECT_EQ(duration_of("15m"), 15min);
  EXPECT_EQ(duration_of("2h"), 2h);
  EXPECT_EQ(duration_of("1d"), 24h);
  EXPECT_EQ(duration_of("1h30m"), 90min);
  EXPECT_EQ(duration_of("1d2h3m4s5ms"), 26h + 3min + 4s + 5ms);
  EXPECT_EQ(duration_of("90"), 90s);
  EXPECT_EQ(duration_of("0"), 0s);
  EXPECT_EQ(duration_of("90m"), 90min);
  EXPECT_EQ(duration_of("1-02:00:00"), 26h);
  EXPECT_EQ(duration_of("1-02:30"), 26h + 30min);
  EXPECT_EQ(duration_of("1-02"), 26h);
  EXPECT_EQ(duration_of("02:00:00"), 2h);
  EXPECT_EQ(duration_of("100:00:01"), 100h + 1s);
  EXPECT_EQ(duration_of("10:30"), 10min + 30s);
  EXPECT_EQ(duration_of("3650d"), kMaxDuration);
}

TEST(ParseDuration, RefusesTheRestAndNamesTheValue) {
  for (const char* text :
       {"",     " ",  "x",    "10x",  "1.5h", "-5s",           "-1", "5 s", "1m1h",
        "1h1h", "s",  "1h30", "1:60", "1-24", "1-02:00:00:00", ":",  "1-",  "-1-02",
        "1::2", "1H", "+5s",  "0x10"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find("'" + std::string(text) + "' is no duration"),
              std::string::npos)
        << parsed.error().message;
  }
  for (const char* text : {"3651d", "99999999999999999999s", "99999999999999999999", "9999999-00",
                           "999999999999:00:00", "3650d1ms"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("too long"), std::string::npos) << text;
  }
}

TEST(FormatDuration, IsReadBackExactly) {
  EXPECT_EQ(format_duration(0ms), "0s");
  EXPECT_EQ(format_duration(90s), "1m30s");
  EXPECT_EQ(format_duration(90min), "1h30m");
  EXPECT_EQ(format_duration(500ms), "500ms");
  EXPECT_EQ(format_duration(24h), "1d");
  EXPECT_EQ(format_duration(-90s), "-1m30s");
  EXPECT_FALSE(format_duration(Duration::min()).empty());
  for (const Duration d : {1ms, 999ms, 1000ms, 61'001ms, 86'400'000ms, 90'061'001ms}) {
    EXPECT_EQ(duration_of(format_duration(d)), d);
  }
}

TEST(ParseMemory, CountsInMebibytes) {
  const auto mib = [](const char* text) {
    const auto parsed = parse_memory(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? *parsed : -1;
  };
  EXPECT_EQ(mib("16G"), 16384);
  EXPECT_EQ(mib("16GiB"), 16384);
  EXPECT_EQ(mib("16gb"), 16384);
  EXPECT_EQ(mib("512MiB"), 512);
  EXPECT_EQ(mib("512M"), 512);
  EXPECT_EQ(mib("4096"), 4096);
  EXPECT_EQ(mib("1.5G"), 1536);
  EXPECT_EQ(mib("1T"), 1048576);
  EXPECT_EQ(mib("1k"), 1);  // Rounded up.
  EXPECT_EQ(mib("1025K"), 2);
  EXPECT_EQ(mib("0"), 0);
}

TEST(ParseMemory, RefusesTheRest) {
  for (const char* text :
       {"", "G", "-1G", "1X", "1.G", "1.2345G", "1 G", "GiB16", "1GiBx", "1e9"}) {
    EXPECT_FALSE(parse_memory(text)) << text;
  }
  for (const char* text : {"99999999999T", "1000000001"}) {
    const auto parsed = parse_memory(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("too large"), std::string::npos);
  }
}

TEST(FormatMemory, UsesTheLargestWholeSuffix) {
  EXPECT_EQ(format_memory(16384), "16GiB");
  EXPECT_EQ(format_memory(1536), "1536MiB");
  EXPECT_EQ(format_memory(2 * 1048576), "2TiB");
  EXPECT_EQ(format_memory(0), "0MiB");
}

TEST(ParseAmount, IsExact) {
  const auto milli = [](const char* text) {
    const auto parsed = parse_amount(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? parsed->milli : -1;
  };
  EXPECT_EQ(milli("8"), 8000);
  EXPECT_EQ(milli("0.25"), 250);
  EXPECT_EQ(milli("0.1"), 100);
  EXPECT_EQ(milli("0.001"), 1);
  EXPECT_EQ(milli("1.500000"), 1500);
  EXPECT_EQ(milli("0"), 0);
  EXPECT_EQ(milli("1000000000"), 1'000'000'000'000);
}

TEST(ParseAmount, SaysWhatIsWrong) {
  const auto message = [](const char* text) {
    const auto parsed = parse_amount(text);
    EXPECT_FALSE(parsed) << text;
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(message("-1"), "'-1' is negative: write 0 or more");
  EXPECT_EQ(message("0.0001"), "'0.0001' is too fine: at most three decimals");
  EXPECT_EQ(message("1000000000.001"), "'1000000000.001' is too large: at most 1000000000");
  EXPECT_EQ(message("99999999999999999999"),
            "'99999999999999999999' is too large: at most 1000000000");
  for (const char* text : {"", "x", "1e3", ".5", "5.", "1,5", "nan", "0x8", "1 ", "--1"}) {
    EXPECT_NE(message(text).find("is no amount"), std::string::npos) << text;
  }
}

TEST(ParseInteger, KeepsItsBounds) {
  EXPECT_EQ(*parse_integer("-1", -1, 5), -1);
  EXPECT_EQ(*parse_integer("5", -1, 5), 5);
  EXPECT_FALSE(parse_integer("6", -1, 5));
  EXPECT_FALSE(parse_integer("-2", -1, 5));
  EXPECT_FALSE(parse_integer("1.0", 0, 5));
  EXPECT_FALSE(parse_integer("", 0, 5));
  EXPECT_FALSE(parse_integer("-", 0, 5));
  EXPECT_FALSE(parse_integer("99999999999999999999999", 0, std::numeric_limits<int64_t>::max()));
}

}  // namespace
}  // namespace gpuq
