#include "tests/e2e/cluster.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

#include "core/base/check.h"

namespace gpuq::e2e {

namespace {

namespace fs = std::filesystem;

std::string make_root() {
  std::string pattern = (fs::temp_directory_path() / "gpuq-e2e-XXXXXX").string();
  GPUQ_CHECK_MSG(::mkdtemp(pattern.data()) != nullptr, "no temporary directory");
  return pattern;
}

std::string state_name(v1::JobState state) { return v1::JobState_Name(state); }

bool is_terminal(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED;
}

/// The last lines of a log, for a person who looks at a failure.
void print_tail(const std::string& path) {
  constexpr std::size_t kLines = 60;
  const auto lines = lines_of(slurp(path));
  std::cerr << "---- " << path << " (" << lines.size() << " lines)\n";
  const std::size_t from = lines.size() > kLines ? lines.size() - kLines : 0;
  for (std::size_t i = from; i < lines.size(); ++i) std::cerr << lines[i] << '\n';
}

}  // namespace

Cluster::Cluster() : root_(make_root()) {
  fs::create_directories(root_ + "/work");
  fs::create_directories(root_ + "/home");
  fs::create_directories(root_ + "/runs");
}

Cluster::~Cluster() {
  if (testing::Test::HasFailure()) print_logs();
  clean_up();
  if (std::getenv("GPUQ_E2E_KEEP") != nullptr) {
    std::cerr << "kept: " << root_ << '\n';
    return;
  }
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void Cluster::clean_up() {
  client_.reset();
  agents_.clear();
  server_.kill();
  // Supervisors and jobs carry a path below root_, which is no other cluster's.
  const bool clean = eventually([this] {
    const auto left = processes_with(root_ + "/");
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    return left.empty();
  });
  if (!clean) std::cerr << "processes of " << root_ << " are left\n";
}

void Cluster::print_logs() const {
  print_tail(root_ + "/gpuqd.log");
  for (const auto& [node, agent] : agents_) print_tail(root_ + "/" + node + ".log");
}

std::string Cluster::work(const std::string& name) const {
  return root_ + "/work" + (name.empty() ? "" : "/" + name);
}

std::string Cluster::write(const std::string& name, const std::string& text) const {
  std::ofstream(work(name), std::ios::binary) << text;
  return work(name);
}

std::string Cluster::binary(const std::string& name) {
  const char* dir = std::getenv("GPUQ_BIN_DIR");
  return std::string(dir != nullptr ? dir : GPUQ_BIN_DIR) + "/" + name;
}

std::map<std::string, std::string> Cluster::environment(
    const std::map<std::string, std::string>& more) const {
  std::map<std::string, std::string> env{{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                         {"HOME", root_ + "/home"},
                                         {"XDG_CONFIG_HOME", root_ + "/home/.config"},
                                         {"XDG_DATA_HOME", root_ + "/home/.local/share"},
                                         {"LANG", "C.UTF-8"},
                                         {"TMPDIR", "/tmp"}};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "LD_LIBRARY_PATH"}) {
    if (const char* value = std::getenv(name)) env[name] = value;
  }
  if (port_ != 0) env["GPUQ_SERVER"] = address();
  for (const auto& [name, value] : more) env[name] = value;
  return env;
}

ProcessSpec Cluster::daemon(const std::string& program, Words words, const std::string& log) const {
  ProcessSpec spec;
  spec.argv = {binary(program)};
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.env = environment({});
  spec.workdir = root_;
  spec.out_path = spec.err_path = log;
  spec.ends_with_tests = true;
  return spec;
}

void Cluster::start_server(const Words& more) {
  const std::string port_file = root_ + "/port";
  fs::remove(port_file);
  Words words = {"--data-dir", data_dir(), "--listen", address(), "--port-file", port_file};
  words.insert(words.end(), more.begin(), more.end());
  server_ = Process::start(daemon("gpuqd", std::move(words), root_ + "/gpuqd.log"));
  const bool listens = eventually([&] {
    const std::string text = slurp(port_file);
    if (text.empty() || text.back() != '\n') return !server_.running();
    port_ = std::atoi(text.c_str());
    return true;
  });
  GPUQ_CHECK_MSG(listens && server_.running(), "gpuqd did not start:\n" + server_log());
  if (client_) {
    GPUQ_CHECK_MSG(eventually([this] { return client_->server_info().has_value(); }),
                   "gpuqd does not answer");
  }
}

void Cluster::kill_server() { server_.kill(); }

int Cluster::stop_server() {
  server_.signal(SIGTERM);
  return server_.wait().value_or(-1);
}

void Cluster::launch_agent(const std::string& node) {
  Agent& agent = agents_[node];
  const NodeOptions& o = agent.options;
  Words words = {"--server",         address(),   "--node-name", node,       "--state-dir",
                 root_ + "/" + node, "--devices", o.devices,     "--cpus",   std::to_string(o.cpus),
                 "--memory",         o.memory,    "--address",   "127.0.0.1"};
  if (::geteuid() == 0) words.emplace_back("--allow-root");
  words.insert(words.end(), o.more.begin(), o.more.end());
  agent.process =
      Process::start(daemon("gpuq-agent", std::move(words), root_ + "/" + node + ".log"));
}

void Cluster::start_agent(const std::string& node, const NodeOptions& options) {
  if (agents_.count(node) == 0) agents_[node].options = options;
  launch_agent(node);
  const bool up = eventually([&] { return node_is_up(node) || !agents_[node].process.running(); });
  GPUQ_CHECK_MSG(up && agents_[node].process.running(),
                 "agent did not come up:\n" + slurp(root_ + "/" + node + ".log"));
}

void Cluster::kill_agent(const std::string& node) { agents_[node].process.kill(); }

bool Cluster::node_is_up(const std::string& name) {
  v1::GetNodeRequest request;
  request.set_node_name(name);
  auto node = client().get_node(request);
  return node && node->link() == v1::NODE_LINK_UP;
}

void Cluster::start(int nodes, const NodeOptions& options) {
  start_server();
  for (int i = 1; i <= nodes; ++i) start_agent("n" + std::to_string(i), options);
}

Process Cluster::start_gpuq(const std::string& name, const Words& words) const {
  ProcessSpec spec = daemon("gpuq", words, work(name + ".err"));
  spec.out_path = work(name + ".out");
  spec.workdir = work();
  return Process::start(spec);
}

Output Cluster::run_to_end(ProcessSpec spec) {
  const std::string name = root_ + "/runs/" + std::to_string(++runs_);
  spec.out_path = name + ".out";
  spec.err_path = name + ".err";
  spec.workdir = work();
  Process process = Process::start(spec);
  Output output;
  output.code = process.wait().value_or(-1);
  output.out = slurp(spec.out_path);
  output.err = slurp(spec.err_path);
  return output;
}

Output Cluster::run(const std::string& program, const Words& words,
                    const std::map<std::string, std::string>& env) {
  ProcessSpec spec = daemon(program, words, "");
  spec.env = environment(env);
  return run_to_end(std::move(spec));
}

Output Cluster::run_isolated(const std::string& script, const Words& words) {
  for (const char* folder : {"", "/home", "/work", "/runs"}) {
    fs::permissions(root_ + folder, fs::perms::all);
  }
  ProcessSpec spec = daemon("", {}, "");
  spec.argv = {"/bin/sh", write("isolated.sh", script)};
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.isolated = true;
  return run_to_end(std::move(spec));
}

Output Cluster::gpuq(const Words& words, const std::map<std::string, std::string>& env) {
  return run("gpuq", words, env);
}

client::Client& Cluster::client() {
  if (!client_) {
    client::ClientOptions options;
    options.target = address();
    options.connect_timeout = Duration(10'000);
    auto connected = client::Client::connect(options);
    GPUQ_CHECK_MSG(connected, connected ? "" : connected.error().message);
    client_ = std::move(*connected);
  }
  return *client_;
}

void Cluster::apply(const std::string& policy) {
  const Output output = gpuq({"apply", "-f", write("policy.yaml", policy)});
  EXPECT_EQ(output.code, 0) << output.out << output.err;
}

std::int64_t Cluster::submit(const Words& options, const Words& command) {
  Words words = {"submit"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  const Output output = gpuq(words);
  EXPECT_EQ(output.code, 0) << output.err;
  return std::atoll(output.out.c_str());
}

std::int64_t Cluster::submit_script(const Words& options, const std::string& script) {
  return submit(options, {"sh", "-c", script});
}

v1::Job Cluster::job(std::int64_t id) {
  v1::GetJobRequest request;
  request.set_job_id(id);
  auto job = client().get_job(request);
  (void)eventually([&] {
    if (job || job.error().code != ErrorCode::kUnavailable) return true;
    job = client().get_job(request);
    return false;
  });
  if (job) return *job;
  ADD_FAILURE() << "job " << id << ": " << job.error().message;
  return {};
}

v1::ExplainResponse Cluster::why(std::int64_t id) {
  v1::ExplainRequest request;
  request.set_job_id(id);
  auto answer = client().explain(request);
  if (answer) return *answer;
  ADD_FAILURE() << "why " << id << ": " << answer.error().message;
  return {};
}

v1::ClusterStatus Cluster::status() {
  auto answer = client().status(v1::GetStatusRequest());
  if (answer) return *answer;
  ADD_FAILURE() << "status: " << answer.error().message;
  return {};
}

void Cluster::cancel(std::int64_t id) {
  const Output output = gpuq({"cancel", std::to_string(id)});
  EXPECT_EQ(output.code, 0) << output.err;
}

testing::AssertionResult Cluster::reaches(std::int64_t id, v1::JobState state) {
  v1::Job last;
  (void)eventually([&] {
    last = job(id);
    return last.state() == state || is_terminal(last.state());
  });
  if (last.state() == state) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "job " << id << " is not " << state_name(state) << " but\n"
                                     << last.Utf8DebugString();
}

testing::AssertionResult Cluster::waits_for(std::int64_t id, const std::string& reason) {
  v1::Job last;
  const bool came = eventually([&] {
    last = job(id);
    const bool waits =
        last.state() == v1::JOB_STATE_RUNNABLE || last.state() == v1::JOB_STATE_PENDING;
    return waits && last.reason().code() == reason;
  });
  if (came) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "job " << id << " does not wait for " << reason << " but\n"
                                     << last.Utf8DebugString();
}

testing::AssertionResult Cluster::has_line(const std::string& file, const std::string& line) {
  const bool came = eventually([&] {
    const Words all = lines(file);
    return std::find(all.begin(), all.end(), line) != all.end();
  });
  if (came) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no line '" << line << "' in " << file << ":\n"
                                     << read(file);
}

testing::AssertionResult Cluster::has_lines(const std::string& file, std::size_t count) {
  std::size_t seen = 0;
  const bool came = eventually([&] {
    const std::string text = read(file);
    seen = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    return seen >= count;
  });
  if (came && seen == count) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << seen << " lines in " << file << " instead of " << count << ":\n"
         << read(file);
}

Gate::Gate(const Cluster& cluster, const std::string& name) : path_(cluster.work(name)) {
  GPUQ_CHECK(::mkfifo(path_.c_str(), 0666) == 0);
}

void Gate::open() const {
  int fd = -1;
  const bool read = eventually([&] {
    fd = ::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0;
  });
  if (!read) {
    ADD_FAILURE() << "nobody reads " << path_;
    return;
  }
  EXPECT_EQ(::write(fd, "go\n", 3), 3);
  ::close(fd);
}

}  // namespace gpuq::e2e
