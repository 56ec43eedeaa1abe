// Error map, UUIDs, tokens, spec cache, log files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>

#include "common/runtime/files.h"
#include "gpuq/v1/job.pb.h"
#include "server/rpc/convert_event.h"
#include "server/rpc/job_uuid.h"
#include "server/rpc/log_files.h"
#include "server/rpc/parse_error.h"
#include "server/rpc/spec_cache.h"
#include "server/rpc/status.h"

namespace gpuq::rpc {
namespace {

using testing::HasSubstr;

TEST(ErrorMap, EveryCodeHasItsStatus) {
  using grpc::StatusCode;
  const std::pair<ErrorCode, StatusCode> map[] = {
      {ErrorCode::kInvalidArgument, StatusCode::INVALID_ARGUMENT},
      {ErrorCode::kNotFound, StatusCode::NOT_FOUND},
      {ErrorCode::kAlreadyExists, StatusCode::ALREADY_EXISTS},
      {ErrorCode::kFailedPrecondition, StatusCode::FAILED_PRECONDITION},
      {ErrorCode::kPermissionDenied, StatusCode::PERMISSION_DENIED},
      {ErrorCode::kUnauthenticated, StatusCode::UNAUTHENTICATED},
      {ErrorCode::kResourceExhausted, StatusCode::RESOURCE_EXHAUSTED},
      {ErrorCode::kUnavailable, StatusCode::UNAVAILABLE},
      {ErrorCode::kNeverFits, StatusCode::OUT_OF_RANGE},
      {ErrorCode::kOutOfRange, StatusCode::OUT_OF_RANGE},
      {ErrorCode::kAborted, StatusCode::ABORTED},
      {ErrorCode::kDataLoss, StatusCode::DATA_LOSS},
      {ErrorCode::kInternal, StatusCode::INTERNAL},
  };
  for (const auto& [code, status] : map) EXPECT_EQ(to_grpc(code), status) << to_string(code);
  EXPECT_EQ(to_status({ErrorCode::kNotFound, "there is no job 7"}).error_message(),
            "there is no job 7");
}

TEST(JobUuid, GoesBothWaysAndDiffersByStore) {
  std::set<std::string> seen;
  for (const std::int64_t id : {std::int64_t{1}, std::int64_t{2}, std::int64_t{1} << 40}) {
    for (const char* store : {"store-a", "store-b"}) {
      const std::string uuid = job_uuid(store, JobId(id));
      EXPECT_EQ(uuid.size(), 36U);
      EXPECT_EQ(uuid[14], '8');
      EXPECT_TRUE(seen.insert(uuid).second);
      EXPECT_EQ(job_of_uuid(store, uuid), JobId(id));
    }
    EXPECT_EQ(job_of_uuid("store-b", job_uuid("store-a", JobId(id))), std::nullopt);
  }
  for (const char* text : {"", "17", "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz"}) {
    EXPECT_EQ(job_of_uuid("store-a", text), std::nullopt);
  }
}

TEST(ResumeToken, OnlyOwnOnesAreRead) {
  const std::string store = "0b9c6d1e-aaaa";
  EXPECT_EQ(*read_resume_token(store, resume_token(store, EventId(42))), EventId(42));
  EXPECT_EQ(read_resume_token("ffffffff-bbbb", resume_token(store, EventId(42))).error().code,
            ErrorCode::kOutOfRange);
  for (const char* text : {"x", "0b9c6d1e.", "0b9c6d1e.-4", "0b9c6d1e.4x"}) {
    EXPECT_EQ(read_resume_token(store, text).error().code, ErrorCode::kInvalidArgument) << text;
  }
}

TEST(SpecCache, ForgetsTheOldestBeyondItsBytes) {
  SpecCache cache(10);
  cache.put(JobId(1), SharedBytes("aaaa"));
  cache.put(JobId(2), SharedBytes("bbbb"));
  cache.put(JobId(3), SharedBytes("cccc"));
  EXPECT_EQ(cache.find(JobId(1)), nullptr);
  ASSERT_NE(cache.find(JobId(2)), nullptr);
  EXPECT_EQ(*cache.find(JobId(3)), "cccc");
  EXPECT_EQ(cache.bytes(), 8U);
  cache.put(JobId(4), SharedBytes(std::string(11, 'x')));
  EXPECT_EQ(cache.find(JobId(4)), nullptr);
}

TEST(ParseError, NamesTheFieldThatIsNotUtf8) {
  catch_parse_errors();
  v1::JobSpec spec;
  spec.add_command("x\x7fy");
  std::string bytes = spec.SerializeAsString();
  bytes[bytes.find('\x7f')] = '\xff';
  clear_parse_error();
  EXPECT_FALSE(spec.ParseFromString(bytes));
  EXPECT_THAT(parse_error("gpuq.v1.JobSpec").message, HasSubstr("command is not valid UTF-8"));
  clear_parse_error();
  EXPECT_FALSE(spec.ParseFromString("\x0a\xff"));
  EXPECT_EQ(parse_error("gpuq.v1.JobSpec").message,
            "the request is no valid gpuq.v1.JobSpec message");
}

class LogFilesTest : public testing::Test {
 protected:
  LogFilesTest() {
    std::string path = testing::TempDir() + "gpuq-logs-XXXXXX";
    dir_ = mkdtemp(path.data());
  }
  ~LogFilesTest() override { (void)remove_tree(dir_); }

  static LogKey key(std::int64_t job, std::int64_t attempt) {
    return {JobId(job), AttemptId(attempt), 0, false};
  }
  static void store(LogFiles& files, const LogKey& at, const std::string& text,
                    std::int64_t offset = 0) {
    auto upload = files.begin(at, offset);
    ASSERT_TRUE(upload);
    ASSERT_TRUE((*upload)->append(text));
    ASSERT_EQ(*(*upload)->commit(), static_cast<std::int64_t>(text.size()));
  }

  std::string dir_;
};

TEST_F(LogFilesTest, ReadsPartsOfWhatWasHandedIn) {
  LogFiles files(dir_, 1 << 20);
  store(files, key(1, 10), "0123456789", 100);
  auto part = files.read(key(1, 10), 103, 4);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->data, "3456");
  EXPECT_FALSE(part->end);
  part = files.read(key(1, 10), 0, 100);  // the part before 100 was dropped by the node
  EXPECT_EQ(part->offset, 100);
  EXPECT_EQ(part->data, "0123456789");
  EXPECT_TRUE(part->end);
  part = files.read(key(1, 10), -3, 100);
  EXPECT_EQ(part->data, "789");
  part = files.read(key(1, 10), 500, 100);
  EXPECT_EQ(part->data, "");
  EXPECT_TRUE(part->end);
}

TEST_F(LogFilesTest, ASecondUploadTakesTheFirstOnesPlace) {
  LogFiles files(dir_, 1 << 20);
  store(files, key(1, 10), "old", 0);
  store(files, key(1, 10), "new one", 5);
  EXPECT_EQ(files.read(key(1, 10), 0, 100)->data, "new one");
}

TEST_F(LogFilesTest, AnUploadThatIsGivenUpLeavesNothing) {
  LogFiles files(dir_, 1 << 20);
  {
    auto upload = files.begin(key(1, 10), 0);
    ASSERT_TRUE((*upload)->append("half"));
  }
  EXPECT_EQ(files.read(key(1, 10), 0, 100).error().code, ErrorCode::kNotFound);
}

TEST_F(LogFilesTest, TheOldestGoFirstAndAreSaidToBeGone) {
  LogFiles files(dir_, 25);
  for (std::int64_t n = 1; n <= 4; ++n) store(files, key(n, n), std::string(10, 'x'));
  EXPECT_EQ(files.read(key(1, 1), 0, 100).error().code, ErrorCode::kOutOfRange);
  EXPECT_TRUE(files.read(key(4, 4), 0, 100));
  EXPECT_EQ(files.read(key(9, 9), 0, 100).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace gpuq::rpc
