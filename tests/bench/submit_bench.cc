// Durable submissions: jobs a second that gpuqd acknowledges, one a call and in batches, beside the
// same calls to a server that keeps nothing, and beside the disk's own flushes.
#include <absl/synchronization/mutex.h>
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "gpuq/v1/job.grpc.pb.h"
#include "tests/bench/bench_table.h"

namespace gpuq {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSinglesInFlight = 64;
constexpr int kBatchesInFlight = 16;
constexpr int kBatchJobs = 100;
constexpr int kArrayMembers = 10'000;
constexpr int kRounds = 3;
constexpr auto kRoundTime = std::chrono::milliseconds(1'500);

// ---- the server that keeps nothing

class Echo final : public v1::JobService::CallbackService {
  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* call, const v1::SubmitRequest* in,
                                   v1::SubmitResponse* out) override {
    answer(*in, out);
    return done(call);
  }
  grpc::ServerUnaryReactor* SubmitBatch(grpc::CallbackServerContext* call,
                                        const v1::SubmitBatchRequest* in,
                                        v1::SubmitBatchResponse* out) override {
    for (const auto& one : in->jobs()) answer(one, out->add_results()->mutable_job());
    return done(call);
  }
  void answer(const v1::SubmitRequest& in, v1::SubmitResponse* out) {
    out->set_job_id(++jobs_);
    out->set_job_uuid("00000000-0000-4000-8000-000000000000");
    out->set_job_name(in.spec().job_name());
  }
  static grpc::ServerUnaryReactor* done(grpc::CallbackServerContext* call) {
    auto* reactor = call->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  std::atomic<std::int64_t> jobs_{0};
};

int serve_echo(const char* port_file) {
  Echo service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const std::string temporary = std::string(port_file) + ".part";
  std::ofstream(temporary) << port << "\n";
  std::filesystem::rename(temporary, port_file);
  server->Wait();
  return 0;
}

// ---- programs

class Program {
 public:
  explicit Program(std::vector<std::string> words) {
    pid_ = ::fork();
    GPUQ_CHECK(pid_ >= 0);
    if (pid_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Program() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

std::string wait_for_port(const std::string& file) {
  for (int i = 0; i < 1'000; ++i) {
    int port = 0;
    if (std::ifstream(file) >> port) return "127.0.0.1:" + std::to_string(port);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  GPUQ_CHECK_MSG(false, "the server did not start: " + file);
  return "";
}

// ---- the client

v1::SubmitRequest typical_job() {
  v1::SubmitRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  spec.set_job_name("finetune");
  for (const char* word : {"torchrun", "--nnodes", "1", "--nproc-per-node", "8", "train.py",
                           "--config", "/data/configs/finetune-7b.yaml", "--seed", "42"}) {
    spec.add_command(word);
  }
  spec.set_workdir("/data/projects/finetune");
  (*spec.mutable_env())["WANDB_MODE"] = "offline";
  (*spec.mutable_env())["HF_HOME"] = "/data/cache/huggingface";
  (*spec.mutable_env())["NCCL_DEBUG"] = "WARN";
  (*spec.mutable_labels())["project"] = "llama";
  (*spec.mutable_labels())["team"] = "research";
  return request;
}

struct Load {
  double per_second = 0;
  double p99_us = 0;
};

// Keeps `in_flight` calls going for the time of a round; every call starts the next one.
template <typename Request, typename Response>
class Caller {
 public:
  using Method = void (v1::JobService::Stub::async::*)(grpc::ClientContext*, const Request*,
                                                       Response*,
                                                       std::function<void(grpc::Status)>);
  Caller(const std::string& target, Method method, Request request)
      : method_(method), request_(std::move(request)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = v1::JobService::NewStub(
        grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
  }

  Load run(int in_flight) {
    times_us_.clear();
    running_ = in_flight;
    const auto begin = Clock::now();
    end_ = begin + kRoundTime;
    for (int i = 0; i < in_flight; ++i) call();
    std::unique_lock lock(mutex_);
    // Until the last callback has let go of its call, not only until it has begun.
    all_done_.wait(lock, [this] { return running_ == 0 && alive_ == 0; });
    const std::chrono::duration<double> took = Clock::now() - begin;
    std::ranges::sort(times_us_);
    return {static_cast<double>(times_us_.size()) / took.count(),
            times_us_[times_us_.size() * 99 / 100]};
  }

 private:
  struct Call {
    grpc::ClientContext context;
    Response response;
    Clock::time_point begin = Clock::now();
  };

  std::shared_ptr<Call> new_call() {
    {
      const std::lock_guard lock(mutex_);
      ++alive_;
    }
    return std::shared_ptr<Call>(new Call, [this](Call* call) {
      delete call;
      const std::lock_guard lock(mutex_);
      if (--alive_ == 0) all_done_.notify_all();
    });
  }

  void call() {
    auto one = new_call();
    (stub_->async()->*method_)(&one->context, &request_, &one->response,
                               [this, one](const grpc::Status& status) { done(*one, status); });
  }

  void done(const Call& one, const grpc::Status& status) {
    GPUQ_CHECK_MSG(status.ok(), status.error_message());
    const auto now = Clock::now();
    bool more = false;
    {
      const std::lock_guard lock(mutex_);
      times_us_.push_back(std::chrono::duration<double, std::micro>(now - one.begin).count());
      more = now < end_;
      if (!more) --running_;
    }
    if (more) call();
  }

  const Method method_;
  const Request request_;
  std::unique_ptr<v1::JobService::Stub> stub_;
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::vector<double> times_us_;
  int running_ = 0;
  int alive_ = 0;
  Clock::time_point end_;
};

using Singles = Caller<v1::SubmitRequest, v1::SubmitResponse>;
using Batches = Caller<v1::SubmitBatchRequest, v1::SubmitBatchResponse>;

Singles singles_of(const std::string& target) {
  return {target, &v1::JobService::Stub::async::Submit, typical_job()};
}

Singles arrays_of(const std::string& target) {
  v1::SubmitRequest array = typical_job();
  array.mutable_spec()->mutable_array()->set_last(kArrayMembers - 1);
  return {target, &v1::JobService::Stub::async::Submit, std::move(array)};
}

Batches batches_of(const std::string& target) {
  v1::SubmitBatchRequest batch;
  for (int i = 0; i < kBatchJobs; ++i) *batch.add_jobs() = typical_job();
  return {target, &v1::JobService::Stub::async::SubmitBatch, std::move(batch)};
}

// ---- the disk

double raw_flushes_per_second(const std::string& dir) {
  const std::string path = dir + "/flush";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  GPUQ_CHECK(fd >= 0);
  const std::vector<char> page(4096, 'x');
  const auto begin = Clock::now();
  int flushes = 0;
  while (Clock::now() - begin < std::chrono::milliseconds(500)) {
    GPUQ_CHECK(::write(fd, page.data(), page.size()) == static_cast<ssize_t>(page.size()));
    GPUQ_CHECK(::fdatasync(fd) == 0);
    ++flushes;
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  ::close(fd);
  return flushes / took.count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Run {
 public:
  Run(const std::string& self, const std::string& bin, std::string dir)
      : dir_(std::move(dir)),
        daemon_({bin + "/gpuqd", "--data-dir", dir_ + "/data", "--listen", "127.0.0.1:0",
                 "--port-file", dir_ + "/port", "--log-level", "error"}),
        echo_({self, "--echo", dir_ + "/echo"}) {}

  // Rounds take turns, so that a slow moment of the machine meets all of them.
  int measure(int argc, char** argv) {
    Singles durable = singles_of(wait_for_port(dir_ + "/port"));
    Singles bare = singles_of(wait_for_port(dir_ + "/echo"));
    Singles durable_arrays = arrays_of(wait_for_port(dir_ + "/port"));
    Batches durable_batches = batches_of(wait_for_port(dir_ + "/port"));
    Batches bare_batches = batches_of(wait_for_port(dir_ + "/echo"));
    std::vector<double> flushes, bounds, one, one_p99, array_p99, hundred, bare_one, bare_hundred;
    for (int round = 0; round < kRounds; ++round) {
      flushes.push_back(raw_flushes_per_second(dir_));
      bare_one.push_back(bare.run(kSinglesInFlight).per_second);
      const Load load = durable.run(kSinglesInFlight);
      one.push_back(load.per_second);
      one_p99.push_back(load.p99_us);
      array_p99.push_back(durable_arrays.run(1).p99_us);
      bare_hundred.push_back(bare_batches.run(kBatchesInFlight).per_second * kBatchJobs);
      hundred.push_back(durable_batches.run(kBatchesInFlight).per_second * kBatchJobs);
    }
    const double disk_bound = kSinglesInFlight * median(flushes);
    bench::Table table(argc, argv);
    table.row("raw flushes a second", median(flushes), "/s");
    table.row("same call without a store, 64 in flight", median(bare_one), "/s");
    table.row("durable submissions, 64 in flight, p99", median(one_p99), "us");
    table.row("durable array of 10,000, one at a time, p99", median(array_p99), "us");
    const bool by_disk = disk_bound < median(bare_one);
    table.row("durable submissions, 64 in flight", median(one),
              by_disk ? "64 x raw flushes" : "same call without a store",
              std::min(disk_bound, median(bare_one)), 0.5);
    const double batches_bound = kBatchesInFlight * kBatchJobs * median(flushes);
    const bool batches_by_disk = batches_bound < median(bare_hundred);
    table.row("durable jobs in batches of 100", median(hundred),
              batches_by_disk ? "4 x 100 x raw flushes" : "same call without a store",
              std::min(batches_bound, median(bare_hundred)), 0.3);
    return table.finish();
  }

 private:
  const std::string dir_;
  Program daemon_;
  Program echo_;
};

}  // namespace
}  // namespace gpuq

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // As gpuqd does.
  if (argc == 3 && std::strcmp(argv[1], "--echo") == 0) return gpuq::serve_echo(argv[2]);
  const char* bin = ::getenv("GPUQ_BIN_DIR");
  std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string programs =
      bin != nullptr ? bin : std::filesystem::path(self).parent_path().parent_path() / "bin";
  std::string dir = (std::filesystem::temp_directory_path() / "gpuq-submit-XXXXXX").string();
  GPUQ_CHECK(::mkdtemp(dir.data()) != nullptr);
  const int result = gpuq::Run(self, programs, dir).measure(argc, argv);
  std::filesystem::remove_all(dir);
  return result;
}
