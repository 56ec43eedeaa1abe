#include "core/base/text.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuq {
namespace {

TEST(GlobMatch, LiteralsMatchThemselvesOnly) {
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_TRUE(glob_match("137", "137"));
  EXPECT_FALSE(glob_match("137", "1370"));
  EXPECT_FALSE(glob_match("137", "13"));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("A", "a"));
}

TEST(GlobMatch, StarTakesAnyRun) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("**", "abc"));
  EXPECT_TRUE(glob_match("Host EC2*", "Host EC2 terminated"));
  EXPECT_TRUE(glob_match("*.*.c", "a.b.b.c"));
  EXPECT_TRUE(glob_match("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(glob_match("a*b*c", "aXbYbZ"));
  EXPECT_FALSE(glob_match("*x", "abc"));
}

TEST(GlobMatch, QuestionMarkTakesOneCharacter) {
  EXPECT_TRUE(glob_match("1?", "13"));
  EXPECT_FALSE(glob_match("1?", "1"));
  EXPECT_FALSE(glob_match("1?", "137"));
  EXPECT_TRUE(glob_match("?x", "\xc3\xa9x"));  // One two-byte character.
  EXPECT_TRUE(glob_match("?x", "\xffx"));      // A stray byte counts as one.
}

TEST(GlobMatch, ManyStarsStayCheap) {
  const std::string pattern = "a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(glob_match(pattern, std::string(10'000, 'a')));
}

TEST(Utf8, AcceptsWellFormedText) {
  for (const char* text : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x7f"}) {
    EXPECT_TRUE(is_valid_utf8(text)) << text;
  }
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(find_invalid_utf8("\x80"), 0u);              // Continuation alone.
  EXPECT_EQ(find_invalid_utf8("\xc0\xaf"), 0u);          // Overlong.
  EXPECT_EQ(find_invalid_utf8("\xe0\x80\x80"), 0u);      // Overlong.
  EXPECT_EQ(find_invalid_utf8("\xf0\x80\x80\x80"), 0u);  // Overlong.
  EXPECT_EQ(find_invalid_utf8("x\xed\xa0\x80"), 1u);     // Surrogate.
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0u);  // Above U+10FFFF.
  EXPECT_EQ(find_invalid_utf8("\xf5\x80\x80\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("\xe2\x82"), 0u);  // Cut short.
  EXPECT_EQ(find_invalid_utf8("\xc3("), 0u);
}

TEST(Names, ObjectNamesAreShortAndPlain) {
  EXPECT_TRUE(is_object_name("ml.g5.xlarge"));
  EXPECT_TRUE(is_object_name("A_b-9"));
  EXPECT_TRUE(is_object_name(std::string(128, 'x')));
  EXPECT_FALSE(is_object_name(std::string(129, 'x')));
  EXPECT_FALSE(is_object_name(""));
  EXPECT_FALSE(is_object_name("a b"));
  EXPECT_FALSE(is_object_name("a/b"));
  EXPECT_FALSE(is_object_name("\xc3\xa9"));
}

TEST(Names, ControlCharactersAreFound) {
  EXPECT_FALSE(has_control_characters("plain \xc3\xa9"));
  EXPECT_TRUE(has_control_characters("a\nb"));
  EXPECT_TRUE(has_control_characters("a\x7f"));
}

TEST(Quote, ShowsWhatCanBeShown) {
  EXPECT_EQ(quote("x"), "'x'");
  EXPECT_EQ(quote("a\nb\xff"), "'a\\x0ab\\xff'");
  EXPECT_EQ(quote("\xc3\xa9"), "'\xc3\xa9'");
  const std::string cut = quote(std::string(10'000'000, 'x'));
  EXPECT_LT(cut.size(), 80u);
  EXPECT_TRUE(cut.ends_with("...'"));
}

TEST(EscapeControls, LeavesOneLine) {
  EXPECT_EQ(escape_controls("a\nb\x7f \xc3\xa9"), "a\\x0ab\\x7f \xc3\xa9");
}

}  // namespace
}  // namespace gpuq
