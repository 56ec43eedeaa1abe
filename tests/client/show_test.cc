// How values, tables and messages look.
#include <gmock/gmock.h>

#include <sstream>

#include <nlohmann/json.hpp>

#include "client/cli/bars.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/json_out.h"
#include "client/cli/output.h"
#include "client/cli/terminal.h"
#include "gpuq/v1/job.pb.h"
#include "gpuq/v1/node.pb.h"

namespace gpuq::cli {
namespace {

using testing::HasSubstr;

TEST(Format, Durations) {
  EXPECT_EQ(format_duration(-5), "0s");
  EXPECT_EQ(format_duration(45'999), "45s");
  EXPECT_EQ(format_duration(725'000), "12m05s");
  EXPECT_EQ(format_duration(3'600'000 * 3 + 60'000 * 20), "3h20m");
  EXPECT_EQ(format_duration(3'600'000LL * 102), "4d06h");
}

TEST(Format, Times) {
  EXPECT_EQ(format_rfc3339(0), "");
  EXPECT_EQ(format_rfc3339(951'782'400'007), "2000-02-29T00:00:00.007Z");
  EXPECT_EQ(format_ago(1'000, 61'000), "1m00s ago");
}

TEST(Format, Requests) {
  EXPECT_EQ(format_request(1, 250, "a100"), "0.25 a100");
  EXPECT_EQ(format_request(4, 8000, "a100"), "4x8 a100");
  EXPECT_EQ(format_memory(512 * 1024), "512 GiB");
  EXPECT_EQ(format_memory(1536), "1536 MiB");
}

TEST(Format, CommandsCanBePasted) {
  v1::JobSpec spec;
  for (const char* word : {"sh", "-c", "echo 'a b'", ""}) spec.add_command(word);
  EXPECT_EQ(format_command(spec.command()), "sh -c 'echo '\\''a b'\\''' ''");
}

TEST(Table, ColumnsAreAlignedAndCut) {
  std::ostringstream out;
  std::ostringstream err;
  Table table({{"ID", Table::Align::kRight}, {"NAME"}, {"WHY"}});
  table.add({"7", "gr\xc3\xbcn", "a long reason\nin two lines"});
  table.add({"1234", "b", ""});
  Terminal plain{out, err};
  table.print(plain);
  EXPECT_EQ(out.str(),
            "  ID  NAME  WHY\n"
            "   7  gr\xc3\xbcn  a long reason in two lines\n"
            "1234  b     -\n");
  out.str("");
  Terminal narrow{out, err};
  narrow.width = 24;
  table.print(narrow);
  EXPECT_THAT(out.str(), HasSubstr("a long reas~\n"));
}

TEST(Table, ColourOnlyWhereItIsShown) {
  std::ostringstream out;
  std::ostringstream err;
  Terminal terminal{out, err};
  EXPECT_EQ(paint(terminal, Colour::kRed, "x"), "x");
  terminal.colour = true;
  EXPECT_EQ(paint(terminal, Colour::kRed, "x"), "\x1b[31mx\x1b[0m");
}

TEST(Bars, ShowEveryPart) {
  std::ostringstream out;
  const Terminal terminal{out, out};
  EXPECT_EQ(share_bar(terminal, {2000, 1000, 1000, 0}, 4000, 8), "####==..");
  EXPECT_EQ(share_bar(terminal, {1000, 0, 0, 2000}, 3000, 6), "##++++");
  EXPECT_EQ(share_bar(terminal, {1, 0, 99'999, 0}, 100'000, 10), "#..........");
  EXPECT_EQ(share_bar(terminal, {}, 0, 10), "");
}

TEST(Json, EveryKeyIsThereAndReadable) {
  v1::JobSummary job;
  job.set_job_id(17);
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_count_milli(250);
  job.set_created_at_ms(951'782'400'007);
  const auto json = nlohmann::ordered_json::parse(to_json(job));
  EXPECT_EQ(json.begin().key(), "job_id");
  EXPECT_EQ(json["job_id"], 17);
  EXPECT_EQ(json["state"], "RUNNING");
  EXPECT_EQ(json["count"], 0.25);
  EXPECT_EQ(json["created_at"], "2000-02-29T00:00:00.007Z");
  EXPECT_TRUE(json["started_at"].is_null());
  EXPECT_TRUE(json["final_exit_code"].is_null());
  EXPECT_TRUE(json["reason"].is_null());
  EXPECT_EQ(json["node_names"], nlohmann::json::array());
  EXPECT_EQ(json.size(), static_cast<std::size_t>(v1::JobSummary::descriptor()->field_count()));
}

TEST(Json, BoundsMapsAndBrokenText) {
  v1::ShareUsage share;
  share.set_ceiling_milli(-1);
  share.set_cap_milli(8000);
  auto json = nlohmann::json::parse(to_json(share));
  EXPECT_TRUE(json["ceiling"].is_null());
  EXPECT_EQ(json["cap"], 8);
  v1::WaitReason reason;
  (*reason.mutable_numbers())["free_milli"] = 1000;
  reason.set_code("SHARE_FULL");
  json = nlohmann::json::parse(to_json(reason));
  EXPECT_EQ(json["numbers"]["free_milli"], 1000);
  reason.set_message("\xff");
  EXPECT_EQ(nlohmann::json::parse(to_json(reason))["code"], "SHARE_FULL");
}

TEST(Json, EmptyMapIsAnObject) {
  const v1::JobSpec spec;
  EXPECT_TRUE(nlohmann::json::parse(to_json(spec))["labels"].is_object());
}

TEST(ExitCode, OfErrors) {
  const std::pair<ErrorCode, int> table[] = {
      {ErrorCode::kInvalidArgument, 2},   {ErrorCode::kNotFound, 3},
      {ErrorCode::kAlreadyExists, 4},     {ErrorCode::kFailedPrecondition, 4},
      {ErrorCode::kPermissionDenied, 4},  {ErrorCode::kUnauthenticated, 4},
      {ErrorCode::kResourceExhausted, 4}, {ErrorCode::kNeverFits, 5},
      {ErrorCode::kUnavailable, 6},       {ErrorCode::kInternal, 1}};
  for (const auto& [code, expected] : table) EXPECT_EQ(exit_code(Error{code, ""}), expected);
}

v1::Job ended(v1::AttemptState state, std::optional<int> code) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_FAILED);
  auto* attempt = job.add_attempts();
  attempt->set_state(state);
  if (code) attempt->set_exit_code(*code);
  return job;
}

TEST(ExitCode, OfJobs) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(exit_code(job), 0);
  job.set_state(v1::JOB_STATE_FAILED);
  EXPECT_EQ(exit_code(job), 1);
  job.set_final_exit_code(137);
  EXPECT_EQ(exit_code(job), 137);
  EXPECT_EQ(exit_code(ended(v1::ATTEMPT_STATE_FAILED, 3)), 3);
  EXPECT_EQ(exit_code(ended(v1::ATTEMPT_STATE_FAILED, std::nullopt)), 1);
  EXPECT_EQ(exit_code(ended(v1::ATTEMPT_STATE_TIMED_OUT, 143)), 124);
  EXPECT_EQ(exit_code(ended(v1::ATTEMPT_STATE_PREEMPTED, 0)), 125);
  EXPECT_EQ(exit_code(ended(v1::ATTEMPT_STATE_LOST, std::nullopt)), 125);
}

TEST(LineWriter, LinesOfSeveralSourcesStayWhole) {
  std::ostringstream out;
  LineWriter writer(out);
  std::string a;
  std::string b;
  writer.write("[0] ", "one\ntw", a);
  writer.write("[1] ", "x\n", b);
  writer.write("[0] ", "o\nend", a);
  writer.finish("[0] ", a);
  EXPECT_EQ(out.str(), "[0] one\n[1] x\n[0] two\n[0] end\n");
}

}  // namespace
}  // namespace gpuq::cli
