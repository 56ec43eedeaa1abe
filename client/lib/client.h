#pragma once
// The C++ client: one connection to a gpuq server. Requests and replies are the messages of
// proto/gpuq/v1; what can go wrong comes back as an Error whose sentence may be shown as it is.
#include <functional>
#include <memory>
#include <string>

#include "client/lib/stream_stop.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "gpuq/v1/job.pb.h"
#include "gpuq/v1/node.pb.h"
#include "gpuq/v1/policy.pb.h"

namespace gpuq::client {

/// Where a server listens unless something else is configured.
inline constexpr const char* kDefaultTarget = "127.0.0.1:7070";

struct ClientOptions {
  std::string target = kDefaultTarget;  ///< "host:port", "host" (port 7070) or "unix:/path".
  Duration connect_timeout{3'000};      ///< > 0; how long connect() tries.
  Duration call_timeout{60'000};        ///< > 0; bound of every call but the streams.
};

/// Owned by its maker; calls may be made from any thread at the same time.
class Client {
 public:
  /// Returns when the connection stands. kInvalidArgument for a target that is no address,
  /// kUnavailable when nobody answers in time.
  static Result<std::unique_ptr<Client>> connect(const ClientOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] const std::string& target() const;

  /// kNeverFits if the job could never be placed.
  Result<v1::SubmitResponse> submit(const v1::SubmitRequest& request);
  Result<v1::TrySubmitResponse> try_submit(const v1::SubmitRequest& request);
  Result<v1::SubmitBatchResponse> submit_batch(const v1::SubmitBatchRequest& request);
  Result<v1::Job> get_job(const v1::GetJobRequest& request);
  Result<v1::ListJobsResponse> list_jobs(const v1::ListJobsRequest& request);
  Result<v1::Job> update_job(const v1::UpdateJobRequest& request);
  Result<v1::CancelJobsResponse> cancel_jobs(const v1::CancelJobsRequest& request);
  Result<v1::ExplainResponse> explain(const v1::ExplainRequest& request);

  /// Blocks and hands every message to `handler` until it returns false, `stop` is stopped (both
  /// give success) or the stream ends with an error. The server never ends a watch by itself.
  using WatchHandler = std::function<bool(const v1::WatchResponse&)>;
  Result<> watch(const v1::WatchRequest& request, const WatchHandler& handler,
                 StreamStop* stop = nullptr);
  /// Likewise; success also at the end of the output.
  using LogHandler = std::function<bool(const v1::LogChunk&)>;
  Result<> read_logs(const v1::ReadLogsRequest& request, const LogHandler& handler,
                     StreamStop* stop = nullptr);

  Result<v1::PolicyObject> create(const v1::CreatePolicyObjectRequest& request);
  Result<v1::PolicyObject> update(const v1::UpdatePolicyObjectRequest& request);
  Result<v1::DeletePolicyObjectResponse> remove(const v1::DeletePolicyObjectRequest& request);
  Result<v1::PolicyObject> get(const v1::GetPolicyObjectRequest& request);
  Result<v1::ListPolicyObjectsResponse> list(const v1::ListPolicyObjectsRequest& request);
  Result<v1::ApplyPolicyResponse> apply(const v1::ApplyPolicyRequest& request);
  Result<v1::PolicyDocument> export_policy();

  Result<v1::ListNodesResponse> list_nodes(const v1::ListNodesRequest& request);
  Result<v1::Node> get_node(const v1::GetNodeRequest& request);
  Result<v1::Node> update_node(const v1::UpdateNodeRequest& request);
  Result<v1::ClusterStatus> status(const v1::GetStatusRequest& request);
  Result<v1::ServerInfo> server_info();

  /// Waits until the connection stands again, at most `timeout`; false if it does not.
  bool wait_connected(Duration timeout);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// "host" -> "host:7070"; "unix:" paths and complete addresses stay. kInvalidArgument for anything
/// that is no address.
Result<std::string> normalize_target(const std::string& target);

}  // namespace gpuq::client
