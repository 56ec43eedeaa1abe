#include "client/lib/status.h"

#include <gmock/gmock.h>
#include <grpcpp/support/status.h>

namespace gpuq::client {
namespace {

TEST(ForeignServer, IsNoServer) {
  const grpc::Status answered(grpc::StatusCode::UNIMPLEMENTED,
                              "Received http2 header with status: 404");
  const auto error = foreign_server_error("head:80", answered);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnavailable);
  EXPECT_EQ(error->message,
            "what answers at head:80 is no gpuq server (HTTP status 404): set GPUQ_SERVER");
  const auto removed =
      foreign_server_error("head:80", {grpc::StatusCode::UNKNOWN, "Stream removed"});
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->code, ErrorCode::kUnavailable);
  EXPECT_FALSE(foreign_server_error("head:80", {grpc::StatusCode::UNIMPLEMENTED, ""}));
}

}  // namespace
}  // namespace gpuq::client
