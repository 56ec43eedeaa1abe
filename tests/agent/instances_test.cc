// Attempt instances with real supervisors and real processes.
#include "agent/instances.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <csignal>
#include <sstream>

#include "agent/shim/records.h"
#include "tests/agent/support.h"

namespace gpuq::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InstancesTest : public ::testing::Test {
 protected:
  InstancesTest() : loop(clock), agent(std::make_unique<TestAgent>(loop, dir.path())) {}
  ~InstancesTest() override {
    // Nothing of a test may live on.
    if (!agent) return;
    for (const auto& status : agent->instances->list()) {
      agent->instances->stop({status.fence, StopReason::kTerminated, 0});
    }
    EXPECT_TRUE(run_until(loop, [&] { return all_final(); }));
  }

  bool all_final() {
    for (const auto& status : agent->instances->list()) {
      if (!is_final(status.state)) return false;
    }
    return true;
  }
  bool reaches(std::int64_t attempt, InstanceState state) {
    return run_until(loop,
                     [&] {
                       return agent->is(attempt, state) || is_final(agent->status(attempt).state);
                     }) &&
           agent->is(attempt, state);
  }
  InstanceStatus run_to_end(const StartOrder& order) {
    agent->instances->start(order);
    EXPECT_TRUE(
        run_until(loop, [&] { return is_final(agent->status(order.fence.attempt_id).state); }));
    return agent->status(order.fence.attempt_id);
  }
  bool has_output(std::int64_t attempt, const std::string& text) {
    return run_until(loop, [&] { return agent->output(attempt).find(text) != std::string::npos; });
  }
  shim::RunRecord run_record(std::int64_t attempt) {
    return shim::read_run(agent->instances->find({attempt, 0})->dir()).value();
  }

  BootClock clock;
  TempDir dir;
  EventLoop loop;
  std::unique_ptr<TestAgent> agent;
};

TEST_F(InstancesTest, ReportsTheExitCode) {
  const auto first = agent->instances->start(make_order(1, sh("exit 3")));
  EXPECT_EQ(first.state, InstanceState::kStarting);
  ASSERT_TRUE(reaches(1, InstanceState::kExited));
  const auto status = agent->status(1);
  EXPECT_EQ(status.exit_code, 3);
  EXPECT_FALSE(status.term_signal);
  EXPECT_FALSE(status.signal_sent_before_exit);
  EXPECT_GT(status.running_at_ms, 0);
  EXPECT_GE(status.ended_at_ms, status.running_at_ms);
}

TEST_F(InstancesTest, ReportsTheSignal) {
  const auto status = run_to_end(make_order(1, sh("kill -SEGV $$")));
  EXPECT_EQ(status.state, InstanceState::kExited);
  EXPECT_EQ(status.term_signal, SIGSEGV);
  EXPECT_FALSE(status.exit_code);
  EXPECT_FALSE(status.signal_sent_before_exit);
}

TEST_F(InstancesTest, GivesTheDocumentedEnvironment) {
  auto order = make_order(5, {"/usr/bin/env"});
  order.attempt_number = 2;
  order.preemption_count = 1;
  order.devices = {{"GPU-0", 1000}, {"GPU-1", 1000}};
  order.environment = {{"OWN", "value"}, {"GPUQ_JOB_ID", "forged"}};
  order.instances = 3;
  order.instance = 0;
  order.gang = GangInfo{"10.0.0.7", 29500, 0};
  EXPECT_EQ(run_to_end(order).exit_code, 0);
  const std::string env = "\n" + agent->output(5);
  for (const char* line :
       {"OWN=value", "GPUQ_JOB_ID=75", "GPUQ_JOB_NAME=test-job", "GPUQ_ATTEMPT=2",
        "GPUQ_QUEUE=training", "GPUQ_SHARE=research", "GPUQ_PREEMPTION_COUNT=1",
        "CUDA_VISIBLE_DEVICES=GPU-0,GPU-1", "PYTHONUNBUFFERED=1", "MASTER_ADDR=10.0.0.7",
        "MASTER_PORT=29500", "NNODES=3", "NODE_RANK=0", "NPROC_PER_NODE=2", "WORLD_SIZE=6"}) {
    EXPECT_THAT(env, HasSubstr("\n" + std::string(line) + "\n"));
  }
  EXPECT_THAT(env, HasSubstr("\nGPUQ_CHECKPOINT_DIR=" + dir.path() + "/checkpoints/75\n"));
  EXPECT_TRUE(path_exists(dir.path() + "/checkpoints/75"));
}

TEST_F(InstancesTest, AJobWithoutDevicesSeesNone) {
  run_to_end(make_order(1, sh("echo \"[$CUDA_VISIBLE_DEVICES]\"")));
  EXPECT_EQ(agent->output(1), "[]\n");
}

TEST_F(InstancesTest, InheritsNoDescriptorAndNoNewPrivileges) {
  run_to_end(
      make_order(1, sh("ls /proc/self/fd | tr '\\n' ' '; grep NoNewPrivs /proc/self/status")));
  std::istringstream out(agent->output(1));
  std::string fds;
  std::getline(out, fds);
  // 3 is the directory that ls itself reads.
  EXPECT_EQ(fds, "0 1 2 3 NoNewPrivs:\t1");
}

TEST_F(InstancesTest, CommandNotFoundIsAFailedStart) {
  const auto status = run_to_end(make_order(1, {"no-such-program"}));
  EXPECT_EQ(status.state, InstanceState::kStartFailed);
  EXPECT_EQ(status.exit_code, 127);
  EXPECT_EQ(status.status_reason, "command 'no-such-program' not found in PATH");
}

TEST_F(InstancesTest, MissingWorkingDirectoryIsAFailedStart) {
  auto order = make_order(1, sh("true"));
  order.working_directory = "/no/such/dir";
  const auto status = run_to_end(order);
  EXPECT_EQ(status.state, InstanceState::kStartFailed);
  EXPECT_EQ(status.status_reason, "working directory /no/such/dir: No such file or directory");
}

TEST_F(InstancesTest, ScriptWithoutInterpreterLineIsExplained) {
  const std::string script = dir.path() + "/script";
  ASSERT_TRUE(write_file(script, "echo hello\n", Durability::kAtomicOnly, 0700).has_value());
  const auto status = run_to_end(make_order(1, {script}));
  EXPECT_EQ(status.state, InstanceState::kStartFailed);
  EXPECT_EQ(status.exit_code, 126);
  EXPECT_THAT(status.status_reason, HasSubstr("#!"));
}

TEST_F(InstancesTest, MissingSupervisorIsTheNodesFault) {
  agent.reset();
  agent = std::make_unique<TestAgent>(loop, dir.path(), dir.path() + "/no-shim");
  const auto status = run_to_end(make_order(1, sh("true")));
  EXPECT_EQ(status.state, InstanceState::kLost);
  EXPECT_THAT(status.status_reason, HasSubstr("no-shim"));
  EXPECT_EQ(agent->node_faults.size(), 1U);
}

TEST_F(InstancesTest, ARepeatedStartStartsNothing) {
  const auto order = make_order(1, sh("echo once"));
  agent->instances->start(order);
  agent->instances->start(order);
  ASSERT_TRUE(reaches(1, InstanceState::kExited));
  const auto again = agent->instances->start(order);
  EXPECT_EQ(again.state, InstanceState::kExited);
  EXPECT_EQ(agent->output(1), "once\n");
}

TEST_F(InstancesTest, StopTellsTheReasonThenSignalsThenReports) {
  agent->instances->start(
      make_order(1, sh("trap 'cat $GPUQ_STOP_REASON_FILE; exit 0' TERM; echo up; "
                       "while :; do sleep 0.05; done")));
  ASSERT_TRUE(has_output(1, "up"));
  agent->instances->stop({{"store-a", 1, 1}, StopReason::kPreempted, std::nullopt});
  ASSERT_TRUE(reaches(1, InstanceState::kExited));
  const auto status = agent->status(1);
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_TRUE(status.signal_sent_before_exit);
  EXPECT_FALSE(status.killed_after_grace);
  EXPECT_EQ(status.stop_reason, StopReason::kPreempted);
  EXPECT_EQ(agent->output(1), "up\nPREEMPTED\n");
}

TEST_F(InstancesTest, StubbornProcessesAreKilledWithAllTheirKin) {
  agent->instances->start(
      make_order(1, sh("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo kin $$; sleep 600' & "
                       "setsid sh -c '(setsid sleep 600 & echo kin $!) &' & sleep 600; wait")));
  ASSERT_TRUE(run_until(loop, [&] {
    const std::string out = agent->output(1);
    return out.find("kin", out.find("kin") + 1) != std::string::npos && out.back() == '\n';
  }));
  std::istringstream words(agent->output(1));
  std::vector<std::int64_t> kin;
  for (std::string word; words >> word;) {
    if (word != "kin") kin.push_back(std::stoll(word));
  }
  ASSERT_EQ(kin.size(), 2U);
  agent->instances->stop({{"store-a", 1, 1}, StopReason::kTerminated, 100});
  ASSERT_TRUE(reaches(1, InstanceState::kExited));
  const auto status = agent->status(1);
  EXPECT_EQ(status.term_signal, SIGKILL);
  EXPECT_TRUE(status.killed_after_grace);
  for (const auto pid : kin) EXPECT_TRUE(process_gone(pid)) << pid;
}

TEST_F(InstancesTest, TheEndWaitsForBackgroundProcesses) {
  auto order = make_order(1, sh("setsid sh -c 'trap \"\" TERM; echo $$; sleep 600' & sleep 0.1"));
  order.grace_ms = 100;
  const auto status = run_to_end(order);
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_FALSE(status.signal_sent_before_exit);
  EXPECT_TRUE(process_gone(std::stoll(agent->output(1))));
}

TEST_F(InstancesTest, ARepeatedStopShortensTheGraceButNeverExtendsIt) {
  agent->instances->start(make_order(1, sh("trap '' TERM; echo up; while :; do sleep 0.05; done")));
  ASSERT_TRUE(has_output(1, "up"));
  const Fence fence{"store-a", 1, 1};
  const auto deadline = [&] {
    return shim::read_stop(agent->instances->find({1, 0})->dir()).value().deadline_boottime_ms;
  };
  agent->instances->stop({fence, StopReason::kPreempted, 60'000});
  const auto first = deadline();
  agent->instances->stop({fence, StopReason::kTerminated, 120'000});
  EXPECT_EQ(deadline(), first);
  agent->instances->stop({fence, StopReason::kTerminated, 50});
  EXPECT_LT(deadline(), first);
  ASSERT_TRUE(reaches(1, InstanceState::kExited));
  EXPECT_EQ(agent->status(1).stop_reason, StopReason::kPreempted);  // the first one counts
  EXPECT_TRUE(agent->status(1).killed_after_grace);
}

TEST_F(InstancesTest, TheTimeLimitStopsWithReasonTimeout) {
  auto order = make_order(1, sh("echo up; sleep 600"));
  order.timeout_ms = 100;
  const auto status = run_to_end(order);
  EXPECT_EQ(status.stop_reason, StopReason::kTimeout);
  EXPECT_EQ(status.term_signal, SIGTERM);
  EXPECT_TRUE(status.signal_sent_before_exit);
  EXPECT_GE(status.ran_for_ms, 100);
}

TEST_F(InstancesTest, AGangWaitsAtTheBarrier) {
  auto order = make_order(1, sh("echo ran"));
  order.run_immediately = false;
  agent->instances->start(order);
  ASSERT_TRUE(reaches(1, InstanceState::kPrepared));
  EXPECT_EQ(agent->output(1), "");
  agent->instances->go({order.fence});
  ASSERT_TRUE(reaches(1, InstanceState::kExited));
  EXPECT_EQ(agent->output(1), "ran\n");
}

TEST_F(InstancesTest, AGoBeforeTheSupervisorIsUpIsNotLost) {
  auto order = make_order(1, sh("echo ran"));
  order.run_immediately = false;
  agent->instances->start(order);
  agent->instances->go({order.fence});
  ASSERT_TRUE(reaches(1, InstanceState::kExited));
  EXPECT_EQ(agent->output(1), "ran\n");
}

TEST_F(InstancesTest, StoppedAtTheBarrierItNeverRuns) {
  auto order = make_order(1, sh("echo ran"));
  order.run_immediately = false;
  agent->instances->start(order);
  ASSERT_TRUE(reaches(1, InstanceState::kPrepared));
  agent->instances->stop({order.fence, StopReason::kGangFailed, std::nullopt});
  agent->instances->go({order.fence});
  ASSERT_TRUE(reaches(1, InstanceState::kStartFailed));
  EXPECT_EQ(agent->status(1).stop_reason, StopReason::kGangFailed);
  EXPECT_EQ(agent->output(1), "");
}

TEST_F(InstancesTest, AStopOfAnUnknownAttemptRefusesItsLateStart) {
  const auto stopped = agent->instances->stop({{"store-a", 1, 9}, StopReason::kTerminated, {}});
  ASSERT_EQ(stopped.size(), 1U);
  EXPECT_EQ(stopped[0].state, InstanceState::kLost);
  EXPECT_EQ(agent->instances->start(make_order(9, sh("true"))).state, InstanceState::kRefused);
}

TEST_F(InstancesTest, NoDeviceIsGivenTwice) {
  auto first = make_order(1, sh("sleep 600"));
  first.devices = {{"GPU-0", 600}};
  auto second = make_order(2, sh("sleep 600"));
  second.devices = {{"GPU-0", 500}};
  auto fits = make_order(3, sh("sleep 600"));
  fits.devices = {{"GPU-0", 400}};
  auto foreign = make_order(4, sh("sleep 600"));
  foreign.devices = {{"GPU-9", 1000}};
  EXPECT_EQ(agent->instances->start(first).state, InstanceState::kStarting);
  EXPECT_EQ(agent->instances->start(second).state, InstanceState::kRefused);
  EXPECT_EQ(agent->instances->start(fits).state, InstanceState::kStarting);
  EXPECT_EQ(agent->instances->start(foreign).state, InstanceState::kRefused);
}

TEST_F(InstancesTest, ForgetRemovesOnlyWhatHasEnded) {
  agent->instances->start(make_order(1, sh("sleep 600")));
  run_to_end(make_order(2, sh("true")));
  agent->instances->forget({{"store-a", 1, 1}});
  agent->instances->forget({{"store-a", 1, 2}});
  EXPECT_EQ(agent->instances->list().size(), 1U);
  EXPECT_EQ(agent->discarded.size(), 1U);
  EXPECT_FALSE(path_exists(dir.path() + "/attempts/2.0"));
}

TEST_F(InstancesTest, OutputBeyondTheCapDropsTheOldestPart) {
  auto order = make_order(1, sh("head -c 3000000 /dev/zero"));
  order.log_cap_bytes = 1 << 20;
  run_to_end(order);
  struct stat info {};
  ASSERT_EQ(::stat((dir.path() + "/attempts/1.0/stdout.log").c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 3'000'000);
  EXPECT_LE(info.st_blocks * 512, (1 << 20) + 8192);
}

// --- the agent goes away and comes back ---

TEST_F(InstancesTest, TheNextAgentAdoptsWhatRuns) {
  ASSERT_EQ(::mkfifo((dir.path() + "/fifo").c_str(), 0600), 0);
  agent->instances->start(make_order(1, sh("echo up; read x < " + dir.path() + "/fifo; exit 7")));
  ASSERT_TRUE(has_output(1, "up"));
  agent.reset();
  agent = std::make_unique<TestAgent>(loop, dir.path());
  EXPECT_EQ(agent->status(1).state, InstanceState::kRunning);
  ASSERT_TRUE(write_file(dir.path() + "/x", "", Durability::kAtomicOnly).has_value());
  std::system(("echo > " + dir.path() + "/fifo").c_str());
  ASSERT_TRUE(reaches(1, InstanceState::kExited));
  EXPECT_EQ(agent->status(1).exit_code, 7);
}

TEST_F(InstancesTest, TheNextAgentCollectsTheEndsItMissed) {
  agent->instances->start(make_order(1, sh("exit 9")));
  agent.reset();
  ASSERT_TRUE(run_until(loop, [&] { return path_exists(dir.path() + "/attempts/1.0/exit.json"); }));
  agent = std::make_unique<TestAgent>(loop, dir.path());
  EXPECT_EQ(agent->status(1).state, InstanceState::kExited);
  EXPECT_EQ(agent->status(1).exit_code, 9);
}

TEST_F(InstancesTest, TheGraceGoesOnWithoutAnAgent) {
  agent->instances->start(make_order(1, sh("trap '' TERM; echo up; while :; do sleep 0.05; done")));
  ASSERT_TRUE(has_output(1, "up"));
  agent->instances->stop({{"store-a", 1, 1}, StopReason::kPreempted, 200});
  agent.reset();
  ASSERT_TRUE(run_until(loop, [&] { return path_exists(dir.path() + "/attempts/1.0/exit.json"); }));
  agent = std::make_unique<TestAgent>(loop, dir.path());
  EXPECT_TRUE(agent->status(1).killed_after_grace);
  EXPECT_EQ(agent->status(1).stop_reason, StopReason::kPreempted);
}

TEST_F(InstancesTest, AnOrderJournalledButNotStartedIsStartedOnce) {
  agent->instances->start(make_order(1, sh("echo ran")));
  ASSERT_TRUE(reaches(1, InstanceState::kExited));
  agent.reset();
  ASSERT_TRUE(run_until(loop, [&] { return !is_locked(dir.path() + "/attempts/1.0/lock"); }));
  // As if the agent had died right after the journal was synced.
  for (const char* file : {"run.json", "running.json", "exit.json", "stdout.log", "lock"}) {
    std::filesystem::remove(dir.path() + "/attempts/1.0/" + file);
  }
  agent = std::make_unique<TestAgent>(loop, dir.path());
  ASSERT_TRUE(reaches(1, InstanceState::kExited)) << agent->status(1).status_reason;
  EXPECT_EQ(agent->output(1), "ran\n");
}

TEST_F(InstancesTest, AKilledSupervisorMeansLostAndLeavesNothing) {
  agent->instances->start(make_order(1, sh("setsid sleep 600 & echo $!; sleep 600")));
  ASSERT_TRUE(has_output(1, "\n"));
  ASSERT_TRUE(reaches(1, InstanceState::kRunning));
  const auto leftover = std::stoll(agent->output(1));
  ASSERT_EQ(::kill(static_cast<pid_t>(run_record(1).shim_pid), SIGKILL), 0);
  ASSERT_TRUE(reaches(1, InstanceState::kLost));
  const auto status = agent->status(1);
  EXPECT_FALSE(status.exit_code);
  EXPECT_FALSE(status.term_signal);
  EXPECT_TRUE(process_gone(leftover));
  EXPECT_TRUE(process_gone(run_record(1).main_pid));
}

TEST_F(InstancesTest, ASupervisorKilledWithoutAnAgentMeansLostToo) {
  agent->instances->start(make_order(1, sh("setsid sleep 600 & echo $!; sleep 600")));
  ASSERT_TRUE(has_output(1, "\n"));
  const auto leftover = std::stoll(agent->output(1));
  const auto record = run_record(1);
  agent.reset();
  ASSERT_EQ(::kill(static_cast<pid_t>(record.shim_pid), SIGKILL), 0);
  ASSERT_TRUE(run_until(loop, [&] { return !is_locked(dir.path() + "/attempts/1.0/lock"); }));
  agent = std::make_unique<TestAgent>(loop, dir.path());
  ASSERT_TRUE(reaches(1, InstanceState::kLost));
  EXPECT_TRUE(process_gone(leftover));
  agent.reset();  // and stays so
  agent = std::make_unique<TestAgent>(loop, dir.path());
  EXPECT_EQ(agent->status(1).state, InstanceState::kLost);
}

TEST_F(InstancesTest, InstancesOfAnEarlierBootAreLost) {
  agent->instances->start(make_order(1, {"sleep", "600"}));
  ASSERT_TRUE(reaches(1, InstanceState::kRunning));
  const auto record = run_record(1);
  agent.reset();
  ASSERT_EQ(::kill(static_cast<pid_t>(record.shim_pid), SIGKILL), 0);
  ASSERT_TRUE(run_until(loop, [&] { return !is_locked(dir.path() + "/attempts/1.0/lock"); }));
  const std::string journal = dir.path() + "/attempts/1.0/start.json";
  std::string text = read_file(journal).value();
  const std::string now = boot_id();
  text.replace(text.find(now), now.size(), "00000000-0000-0000-0000-000000000000");
  ASSERT_TRUE(write_file(journal, text).has_value());
  agent = std::make_unique<TestAgent>(loop, dir.path());
  EXPECT_EQ(agent->status(1).state, InstanceState::kLost);
  EXPECT_EQ(agent->status(1).status_reason, "the node was restarted");
}

TEST_F(InstancesTest, ADirectoryWithoutAnOrderIsDropped) {
  agent.reset();
  ASSERT_TRUE(make_dirs(dir.path() + "/attempts/4.0/tmp").has_value());
  agent = std::make_unique<TestAgent>(loop, dir.path());
  EXPECT_TRUE(agent->instances->empty());
  EXPECT_FALSE(path_exists(dir.path() + "/attempts/4.0"));
}

TEST_F(InstancesTest, OneStateDirectoryOneAgent) {
  const auto second = StateDir::open(dir.path());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(InstancesTest, ManyInstancesAllReportTheirCodes) {
  constexpr int kMany = 40;
  for (int i = 1; i <= kMany; ++i) {
    agent->instances->start(make_order(i, sh("exit " + std::to_string(i))));
    if (i == kMany / 2) {
      agent.reset();
      agent = std::make_unique<TestAgent>(loop, dir.path());
    }
  }
  ASSERT_TRUE(run_until(loop, [&] { return all_final(); }));
  for (int i = 1; i <= kMany; ++i) {
    EXPECT_EQ(agent->status(i).exit_code, i) << agent->status(i).status_reason;
  }
}

}  // namespace
}  // namespace gpuq::agent
