// Commands over a connection.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/client/fake_server.h"
#include "tests/client/outcome.h"

namespace gpuq::cli {
namespace {

using testing::HasSubstr;

class Connected : public testing::Test {
 protected:
  Connected() : folder_(make_folder()), server_(folder_ + "/s") {}
  ~Connected() override { std::filesystem::remove_all(folder_); }

  static std::string make_folder() {
    std::string name = testing::TempDir() + "gpuq_client_XXXXXX";
    return mkdtemp(name.data()) == nullptr ? "/nonexistent" : name;
  }
  Environment environment() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      if (name == "GPUQ_SERVER") return server_.target();
      return std::nullopt;
    };
  }
  Outcome run(std::vector<std::string> words) const {
    return run_captured(std::move(words), environment());
  }

  std::string folder_;
  FakeServer server_;
};

TEST_F(Connected, SubmitPrintsTheIdAlone) {
  const Outcome outcome = run({"submit", "-s", "research", "--gpus", "2", "--", "true"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "1\n");
  const auto spec = server_.job(1).spec();
  EXPECT_EQ(spec.quota_share_name(), "research");
  EXPECT_EQ(spec.resources().gpus_milli(), 2000);
  EXPECT_EQ(spec.workdir(), std::filesystem::current_path().string());
  EXPECT_THAT(run({"submit", "--json", "--", "true"}).out, HasSubstr("\"job_id\":2"));
}

TEST_F(Connected, SubmitSaysThatAScriptIsReadLater) {
  const std::string path = folder_ + "/large.sh";
  std::ofstream(path) << "#!/bin/sh\n" << std::string(200'000, '#') << '\n';
  const Outcome outcome = run({"submit", path});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("keeps only the path"));
  EXPECT_EQ(server_.job(1).spec().command(1), path);
}

TEST_F(Connected, SubmitSaysTheIdThatItCouldNotWrite) {
  std::ofstream full("/dev/full");
  const Outcome outcome = run_printing_to(full, {"submit", "--", "true"}, environment());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err,
            "gpuq: job 1 is submitted, but its id could not be written: No space left on device\n");
}

TEST_F(Connected, LogsEndWhereNothingCanBeWritten) {
  server_.add(v1::JobSpec());
  server_.output[{1, v1::LOG_STREAM_STDOUT}] = "to out\n";
  std::ofstream full("/dev/full");
  const Outcome outcome = run_printing_to(full, {"logs", "-f", "--stdout", "1"}, environment());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("standard output could not be written"));
}

TEST_F(Connected, RefusalsHaveTheirStatus) {
  const Outcome outcome = run({"submit", "-q", "none", "--", "true"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, "gpuq: no queue 'none'\n");
  EXPECT_EQ(run({"show", "17"}).code, 3);
  EXPECT_EQ(run({"show", "1#1"}).code, 3);
  EXPECT_EQ(run({"cancel", "17"}).code, 3);
  EXPECT_EQ(run({"wait", "17"}).code, 3);
}

TEST_F(Connected, RunShowsTheOutputAndReturnsTheCode) {
  server_.output[{1, v1::LOG_STREAM_STDOUT}] = "to out\n";
  server_.output[{1, v1::LOG_STREAM_STDERR}] = "to err\n";
  std::thread ending([this] {
    server_.wait_for_watcher();
    server_.end(1, v1::JOB_STATE_FAILED, 3);
  });
  const Outcome outcome = run({"run", "--", "x"});
  ending.join();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "to out\n");
  EXPECT_THAT(outcome.err, HasSubstr("to err\n"));
  EXPECT_THAT(outcome.err, HasSubstr("gpuq: job 1 FAILED"));
}

TEST_F(Connected, WaitReturnsTheHighestCode) {
  server_.add(v1::JobSpec());
  server_.add(v1::JobSpec());
  server_.end(1, v1::JOB_STATE_FAILED, 143);
  std::thread ending([this] {
    server_.wait_for_watcher();
    server_.end(2, v1::JOB_STATE_SUCCEEDED, 0);
  });
  EXPECT_EQ(run({"wait", "1-2"}).code, 143);
  ending.join();
}

TEST_F(Connected, WaitGivesUpInTime) {
  server_.add(v1::JobSpec());
  const Outcome outcome = run({"wait", "1", "--timeout", "50ms"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("1 of 1 jobs have not ended: 1"));
}

TEST_F(Connected, WaitOutlivesTheServer) {
  server_.add(v1::JobSpec());
  Outcome outcome;
  std::thread waiting([&] { outcome = run({"wait", "1"}); });
  server_.wait_for_watcher();
  server_.stop();
  server_.end(1, v1::JOB_STATE_SUCCEEDED, 0);
  server_.start();
  waiting.join();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("trying again"));
}

TEST_F(Connected, CancelWaitsForTheEnd) {
  server_.add(v1::JobSpec());
  EXPECT_EQ(run({"cancel", "--wait", "1"}).code, 0);
  EXPECT_EQ(server_.job(1).state(), v1::JOB_STATE_FAILED);
}

TEST_F(Connected, CancelAgainIsHarmless) {
  server_.add(v1::JobSpec());
  EXPECT_EQ(run({"cancel", "1-3"}).code, 0);
  for (const char* word : {"1", "1-3"}) EXPECT_EQ(run({"cancel", word}).code, 0) << word;
  EXPECT_EQ(run({"cancel", "2-3"}).code, 3);
}

TEST_F(Connected, LogsOfTheTwoStreams) {
  server_.add(v1::JobSpec());
  server_.output[{1, v1::LOG_STREAM_STDOUT}] = "to out\n";
  server_.output[{1, v1::LOG_STREAM_STDERR}] = "to err\n";
  const Outcome outcome = run({"logs", "last"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "to out\n");
  EXPECT_EQ(outcome.err, "to err\n");
  EXPECT_EQ(run({"logs", "1", "--stderr"}).out, "");
  EXPECT_EQ(run({"logs", "1#2"}).code, 3);
  EXPECT_EQ(run({"show", "1#1"}).code, 0);
  EXPECT_EQ(run({"show", "1#2"}).code, 3);
}

TEST_F(Connected, LogsSayWhatWasDropped) {
  server_.add(v1::JobSpec());
  server_.output[{1, v1::LOG_STREAM_STDOUT}] = "lost kept\n";
  server_.dropped = 5;
  Outcome outcome = run({"logs", "--stdout", "1"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "kept\n");
  EXPECT_EQ(outcome.err, "gpuq: 5 bytes of output were dropped here (cap)\n");
  outcome = run({"logs", "--stdout", "--tail", "5", "1"});
  EXPECT_EQ(outcome.out, "kept\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Connected, EmptyListsOfWhatIsNotThere) {
  server_.policy.shares = {"there"};
  EXPECT_EQ(run({"ls", "-q", "there", "-s", "there"}).code, 0);
  const Outcome outcome = run({"ls", "-q", "none"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, "gpuq: there is no queue 'none'\n");
  EXPECT_EQ(run({"history", "-s", "none", "--json"}).code, 3);
}

TEST_F(Connected, ListsPagesUpToTheLimit) {
  for (int i = 0; i < 5; ++i) server_.add(v1::JobSpec());
  Outcome outcome = run({"ls", "--json", "--limit", "3"});
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3);
  EXPECT_THAT(outcome.err, HasSubstr("more than these 3"));
  outcome = run({"ls"});
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 6);
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace gpuq::cli
