// The way of a job through the real programs: from the call of a client to the first line of the
// process, over a preemption too, and how many jobs a second get through. Each beside what the same
// processes cost without a queue.
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/lib/client.h"
#include "core/base/check.h"
#include "tests/bench/bench_table.h"

namespace gpuq {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr int kRounds = 60;
constexpr int kPreemptions = 30;
constexpr int kTrivialJobs = 400;
constexpr int kGraceMs = 200;
constexpr int kPatienceMs = 60'000;

double since_us(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Percentiles {
  double p50 = 0;
  double p95 = 0;
};

Percentiles percentiles_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values[values.size() * 95 / 100]};
}

pid_t spawn(const Words& words, bool daemon, const std::string& log = "/dev/null") {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  GPUQ_CHECK(pid >= 0);
  if (pid > 0) return pid;
  if (daemon) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(out, 1);
  ::dup2(out, 2);
  for (int fd = 3; fd < 256; ++fd) ::close(fd);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

/// The wait status.
int reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

void poll_until(const std::function<bool()>& condition, const char* what) {
  const auto start = Clock::now();
  while (!condition()) {
    GPUQ_CHECK_MSG(since_us(start) < kPatienceMs * 1000.0, what);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Lines that processes write; kept open for writing, so that it never ends.
class Pipe {
 public:
  explicit Pipe(std::string path) : path_(std::move(path)) {
    GPUQ_CHECK(::mkfifo(path_.c_str(), 0600) == 0);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    GPUQ_CHECK(fd_ >= 0);
  }
  ~Pipe() { ::close(fd_); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Takes lines until this one has come.
  void wait_for(const std::string& line) {
    for (;;) {
      const auto end = text_.find('\n');
      if (end != std::string::npos) {
        const bool found = text_.substr(0, end) == line;
        text_.erase(0, end + 1);
        if (found) return;
        continue;
      }
      pollfd waiting{fd_, POLLIN, 0};
      GPUQ_CHECK_MSG(::poll(&waiting, 1, kPatienceMs) == 1, "no line: " + line);
      char buffer[512];
      const ssize_t got = ::read(fd_, buffer, sizeof buffer);
      GPUQ_CHECK(got > 0);
      text_.append(buffer, static_cast<std::size_t>(got));
    }
  }

 private:
  std::string path_;
  std::string text_;
  int fd_ = -1;
};

constexpr const char* kPolicy = R"(
capacity_units:
  - {name: gpu, gpu_model: A10G, gpus: 1}
service_environments:
  - {name: pool, capacity_limits: {gpu: 16}}
scheduling_policies:
  - {name: quotas, quota_share: {idle_resource_assignment: FIFO}}
job_queues:
  - name: q
    service_environments: [pool]
    scheduling_policy: quotas
    quota_shares:
      - name: team
        capacity_limits: {gpu: 16}
        resource_sharing: {strategy: RESERVE}
        preemption: {in_share: ENABLED}
)";

/// A server and one agent with 16 fake GPUs.
class Pool {
 public:
  explicit Pool(const std::string& dir) : dir_(dir) {
    const std::string port_file = dir + "/port";
    server_ = spawn({bin("gpuqd"), "--data-dir", dir + "/server", "--listen", "127.0.0.1:0",
                     "--port-file", port_file},
                    true, dir + "/gpuqd.log");
    std::string port;
    poll_until(
        [&] {
          std::ifstream file(port_file);
          return static_cast<bool>(std::getline(file, port)) && !file.eof();
        },
        "gpuqd did not start");
    const std::string address = "127.0.0.1:" + port;
    agent_ = spawn({bin("gpuq-agent"), "--server", address, "--node-name", "n1", "--state-dir",
                    dir + "/agent", "--devices", "fake:16xA10G", "--cpus", "16", "--memory",
                    "16GiB", "--address", "127.0.0.1", "--allow-root"},
                   true, dir + "/agent.log");
    client::ClientOptions options;
    options.target = address;
    auto connected = client::Client::connect(options);
    GPUQ_CHECK_MSG(connected, connected ? "" : connected.error().message);
    client_ = std::move(*connected);
    v1::GetNodeRequest node;
    node.set_node_name("n1");
    poll_until([&] { return client_->get_node(node).has_value(); }, "the agent did not come");
    const std::string policy = dir + "/policy.yaml";
    std::ofstream(policy) << kPolicy;
    const pid_t apply =
        spawn({bin("gpuq"), "apply", "--server", address, "-f", policy}, true, dir + "/apply.log");
    GPUQ_CHECK_MSG(reap(apply) == 0, "gpuq apply failed, see " + dir + "/apply.log");
  }
  ~Pool() {
    for (const pid_t pid : {agent_, server_}) {
      ::kill(pid, SIGTERM);
      (void)reap(pid);
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  static std::string bin(const std::string& name) {
    const char* dir = std::getenv("GPUQ_BIN_DIR");
    return dir != nullptr ? std::string(dir) + "/" + name : name;
  }

  [[nodiscard]] v1::SubmitRequest request(const std::string& script, int gpus, int priority) const {
    v1::SubmitRequest request;
    auto& spec = *request.mutable_spec();
    spec.set_job_queue("q");
    spec.set_quota_share_name("team");
    spec.set_scheduling_priority(priority);
    spec.mutable_resources()->add_capacity_units("gpu");
    spec.mutable_resources()->set_count_milli(gpus * 1000);
    spec.set_workdir("/");
    for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), script}) {
      spec.add_command(word);
    }
    return request;
  }
  std::int64_t submit(const v1::SubmitRequest& request) {
    auto reply = client_->submit(request);
    GPUQ_CHECK_MSG(reply, reply ? "" : reply.error().message);
    return reply->job_id();
  }
  void wait_ended(std::int64_t id) {
    v1::GetJobRequest get;
    get.set_job_id(id);
    poll_until(
        [&] {
          auto job = client_->get_job(get);
          return job && job->stopped_at_ms() != 0;
        },
        "a job did not end");
  }
  void cancel(std::int64_t id) {
    v1::CancelJobsRequest cancel;
    cancel.add_job_ids(id);
    GPUQ_CHECK(client_->cancel_jobs(cancel));
    wait_ended(id);
  }
  /// Submits `jobs` at once and returns when all have ended.
  void run_all(const v1::SubmitRequest& one, int jobs) {
    v1::SubmitBatchRequest batch;
    for (int i = 0; i < jobs; ++i) *batch.add_jobs() = one;
    auto reply = client_->submit_batch(batch);
    GPUQ_CHECK_MSG(reply, reply ? "" : reply.error().message);
    v1::ListJobsRequest active;
    for (const auto state : {v1::JOB_STATE_RUNNABLE, v1::JOB_STATE_SCHEDULED,
                             v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING}) {
      active.add_states(state);
    }
    active.set_page_size(1);
    poll_until(
        [&] {
          auto page = client_->list_jobs(active);
          return page && page->jobs().empty();
        },
        "the trivial jobs did not end");
  }

 private:
  std::string dir_;
  pid_t server_ = -1;
  pid_t agent_ = -1;
  std::unique_ptr<client::Client> client_;
};

class LatencyBench {
 public:
  LatencyBench(const std::string& dir, bench::Table& table)
      : pipe_(dir + "/lines"), pool_(dir), table_(table) {}

  void first_line() {
    const std::string script = "echo line > " + pipe_.path();
    std::vector<double> bare, queued;
    for (int i = 0; i < kRounds; ++i) {
      auto start = Clock::now();
      const pid_t pid = spawn({"/bin/sh", "-c", script}, false);
      pipe_.wait_for("line");
      bare.push_back(since_us(start));
      (void)reap(pid);
      const auto request = pool_.request(script, 1, 0);
      start = Clock::now();
      const auto id = pool_.submit(request);
      pipe_.wait_for("line");
      queued.push_back(since_us(start));
      pool_.wait_ended(id);
    }
    const auto without = percentiles_of(bare), with = percentiles_of(queued);
    table_.most("submit to first line, p50 (us)", with.p50, "fork and exec, p50", without.p50,
                10'000, 10);
    table_.most("submit to first line, p95 (us)", with.p95, "fork and exec, p95", without.p95,
                30'000, 10);
  }

  /// From the submission of a job of higher priority to its first line. The victim starts anew
  /// after each round by itself.
  void preemption(const std::string& what, const std::string& trap, int grace_ms) {
    const std::string loop =
        trap + "; echo up > " + pipe_.path() + "; sleep 1000 & wait $!; wait $!";
    const std::string winner = "echo winner > " + pipe_.path();
    auto weak = pool_.request(loop, 16, 0);
    weak.mutable_spec()->mutable_preemption_configuration()->set_grace_ms(grace_ms);
    const auto strong = pool_.request(winner, 16, 1);
    std::vector<double> bare, queued;
    const auto victim = pool_.submit(weak);
    for (int i = 0; i < kPreemptions; ++i) {
      pipe_.wait_for("up");
      const auto start = Clock::now();
      (void)pool_.submit(strong);
      pipe_.wait_for("winner");
      queued.push_back(since_us(start) - (trap == kStubborn ? grace_ms * 1000.0 : 0.0));
    }
    pipe_.wait_for("up");
    pool_.cancel(victim);
    for (int i = 0; i < kPreemptions; ++i) bare.push_back(replace_bare(loop, winner));
    const auto without = percentiles_of(bare), with = percentiles_of(queued);
    table_.most(what, with.p50, "kill, wait, fork and exec", without.p50,
                trap == kStubborn ? 100'000 : 50'000, 15);
  }

  void trivial_jobs() {
    auto start = Clock::now();
    for (int i = 0; i < kTrivialJobs; ++i) (void)reap(spawn({"/bin/true"}, false));
    const double spawned = kTrivialJobs / since_us(start) * 1e6;
    auto request = pool_.request("", 1, 0);
    request.mutable_spec()->clear_command();
    request.mutable_spec()->add_command("/bin/true");
    start = Clock::now();
    pool_.run_all(request, kTrivialJobs);
    table_.row("trivial jobs end to end, a second", kTrivialJobs / since_us(start) * 1e6,
               "processes spawned a second", spawned, 0.3);
  }

  static constexpr const char* kPolite = "trap 'exit 0' TERM";
  static constexpr const char* kStubborn = "trap '' TERM";

 private:
  /// The same two processes without a queue.
  double replace_bare(const std::string& loop, const std::string& winner) {
    const pid_t victim = spawn({"/usr/bin/setsid", "/bin/sh", "-c", loop}, false);
    pipe_.wait_for("up");
    const auto start = Clock::now();
    const bool stubborn = loop.rfind(kStubborn, 0) == 0;
    ::kill(-victim, stubborn ? SIGKILL : SIGTERM);
    (void)reap(victim);
    const pid_t next = spawn({"/bin/sh", "-c", winner}, false);
    pipe_.wait_for("winner");
    const double time = since_us(start);
    (void)reap(next);
    return time;
  }

  Pipe pipe_;
  Pool pool_;
  bench::Table& table_;
};

}  // namespace
}  // namespace gpuq

int main(int argc, char** argv) {
  gpuq::bench::Table table(argc, argv);
  std::string dir = (std::filesystem::temp_directory_path() / "gpuq-bench-XXXXXX").string();
  GPUQ_CHECK(::mkdtemp(dir.data()) != nullptr);
  {
    using gpuq::LatencyBench;
    LatencyBench bench(dir, table);
    bench.first_line();
    bench.preemption("polite victim: submit to start, p50 (us)", LatencyBench::kPolite, 30'000);
    bench.preemption("stubborn victim: its grace to start, p50 (us)", LatencyBench::kStubborn,
                     gpuq::kGraceMs);
    bench.trivial_jobs();
  }
  std::filesystem::remove_all(dir);
  return table.finish();
}
