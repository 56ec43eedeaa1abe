#pragma once
// A cluster of real programs on this machine: one server on a free port, agents with fake devices,
// and the command line, all inside a temporary directory and with an environment of their own.
// Whatever is left of it, jobs included, is killed by the destructor; after a failure the logs are
// printed first (and with GPUQ_E2E_KEEP set the directory is kept). One thread, but for client().
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/lib/client.h"
#include "tests/e2e/process.h"

namespace gpuq::e2e {

using Words = std::vector<std::string>;

struct NodeOptions {
  std::string devices = "fake:1xA10G";
  int cpus = 4;
  std::string memory = "4GiB";
  Words more;  ///< Further options of gpuq-agent.
};

class Cluster {
 public:
  Cluster();
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// The folder where jobs and `gpuq` run.
  [[nodiscard]] std::string work(const std::string& name = "") const;
  /// Writes a file there and returns its path.
  std::string write(const std::string& name, const std::string& text) const;
  /// Content of a file there; empty if it is not there.
  [[nodiscard]] std::string read(const std::string& name) const { return slurp(work(name)); }
  [[nodiscard]] Words lines(const std::string& name) const { return lines_of(read(name)); }
  [[nodiscard]] const std::string& root() const { return root_; }
  static std::string binary(const std::string& name);

  /// Starts gpuqd on the port that it had before, and waits until it answers.
  void start_server(const Words& more = {});
  void kill_server();  ///< SIGKILL.
  int stop_server();   ///< SIGTERM; returns the exit code.
  Process& server() { return server_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string data_dir() const { return root_ + "/server"; }
  [[nodiscard]] std::string server_log() const { return slurp(root_ + "/gpuqd.log"); }

  /// Starts an agent, or starts it again, and waits until its node is UP.
  void start_agent(const std::string& node, const NodeOptions& options = {});
  /// The same without waiting.
  void launch_agent(const std::string& node);
  void kill_agent(const std::string& node);  ///< SIGKILL.
  [[nodiscard]] bool node_is_up(const std::string& node);
  /// A server and this many nodes n1, n2, ... like `options`.
  void start(int nodes, const NodeOptions& options = {});

  /// `gpuq WORDS...` against the server, to its end.
  Output gpuq(const Words& words, const std::map<std::string, std::string>& env = {});
  /// The same without waiting; its output goes to work(name + ".out") and (".err").
  Process start_gpuq(const std::string& name, const Words& words) const;
  /// Any of our programs, to its end.
  Output run(const std::string& program, const Words& words,
             const std::map<std::string, std::string>& env = {});
  /// A shell script, to its end, as ProcessSpec::isolated says; all of root() is opened to it.
  Output run_isolated(const std::string& script, const Words& words);

  /// One connection that finds its way back after a restart; any thread.
  client::Client& client();
  /// `gpuq apply -f` of this text; a failure of the test if it is refused.
  void apply(const std::string& policy);
  /// `gpuq submit OPTIONS -- COMMAND`; a failure of the test if it is refused.
  std::int64_t submit(const Words& options, const Words& command);
  /// The same with `sh -c SCRIPT`.
  std::int64_t submit_script(const Words& options, const std::string& script);
  /// As it is now; asks again while the server is away.
  v1::Job job(std::int64_t id);
  v1::ExplainResponse why(std::int64_t id);
  [[nodiscard]] v1::ClusterStatus status();
  /// `gpuq cancel`, without waiting for the end.
  void cancel(std::int64_t id);

  /// Waits; what it was instead when it does not come.
  testing::AssertionResult reaches(std::int64_t id, v1::JobState state);
  testing::AssertionResult waits_for(std::int64_t id, const std::string& reason);
  testing::AssertionResult has_line(const std::string& file, const std::string& line);
  /// `count` whole lines are in the file.
  testing::AssertionResult has_lines(const std::string& file, std::size_t count);

  /// Ends what is left of jobs, agents and server. Called by the destructor.
  void clean_up();

 private:
  [[nodiscard]] std::map<std::string, std::string> environment(
      const std::map<std::string, std::string>& more) const;
  [[nodiscard]] ProcessSpec daemon(const std::string& program, Words words,
                                   const std::string& log) const;
  Output run_to_end(ProcessSpec spec);
  void print_logs() const;

  struct Agent {
    NodeOptions options;
    Process process;
  };

  std::string root_;
  int port_ = 0;
  int runs_ = 0;
  Process server_;
  std::map<std::string, Agent> agents_;
  std::unique_ptr<client::Client> client_;
};

/// What a test of a cluster derives from.
class ClusterTest : public testing::Test {
 protected:
  Cluster cluster_;
};

/// A pipe by which a test lets a job go on: `read x < NAME` in the job's script waits for open().
class Gate {
 public:
  Gate(const Cluster& cluster, const std::string& name);
  /// Lets one reader through; waits until there is one.
  void open() const;

 private:
  std::string path_;
};

}  // namespace gpuq::e2e
