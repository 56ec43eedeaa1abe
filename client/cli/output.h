#pragma once
// Output of a job, live, from every instance and attempt.
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/lib/client.h"

namespace gpuq::cli {

/// Writes whole lines of several sources to one stream, each with its prefix. Any thread.
class LineWriter {
 public:
  explicit LineWriter(std::ostream& out) : out_(out) {}

  /// Without prefix bytes go out as they come; with one, lines when they are complete. `rest` keeps
  /// what is not complete. False when the stream takes no more.
  bool write(const std::string& prefix, const std::string& data, std::string& rest);
  /// What is left of an incomplete last line.
  void finish(const std::string& prefix, std::string& rest);
  /// A line of our own between theirs.
  void line(const std::string& text);

 private:
  std::ostream& out_;
  std::mutex mutex_;
};

/// Which output to read.
struct OutputSource {
  std::int64_t job_id = 0;
  std::int32_t attempt = 0;  ///< 0 = the latest and all later ones.
  std::int32_t instance = 0;
  v1::LogStream stream = v1::LOG_STREAM_STDOUT;
  std::int64_t offset = 0;  ///< Negative: before the present end.
  bool follow = true;
  std::string prefix;
};

/// Copies one output to `writer` until it ends or `writer` takes no more; with `follow` over lost
/// connections. A gap, where the cap on kept output has dropped a part, is a line on `notes`.
Result<> copy_output(client::Client& client, const OutputSource& source, LineWriter& writer,
                     LineWriter& notes, client::StreamStop& stop);

/// Copies several outputs at once, a thread each.
class OutputFollower {
 public:
  /// `client` and the streams outlive it.
  OutputFollower(client::Client& client, std::ostream& out, std::ostream& err);
  ~OutputFollower();
  OutputFollower(const OutputFollower&) = delete;
  OutputFollower& operator=(const OutputFollower&) = delete;

  void start(const OutputSource& source);
  /// Waits for the ends, at most `limit`; then stops what is left. The first error, if any.
  Result<> finish(Duration limit);
  /// Waits for the ends as long as it takes.
  Result<> finish();

 private:
  struct Copy;
  client::Client& client_;
  LineWriter out_;
  LineWriter err_;
  std::vector<std::unique_ptr<Copy>> copies_;
};

}  // namespace gpuq::cli
