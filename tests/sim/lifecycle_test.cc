// The ends of attempts, one by one, with the test as the agent: what counts as a preemption, a
// loss, a failure or a success (P9, P10, "Job states").
#include <gtest/gtest.h>

#include "tests/sim/bench.h"

namespace gpuq::sim_test {
namespace {

using std::chrono::seconds;

const Preemption& only_preemption(const Bench& bench) {
  EXPECT_EQ(bench.state().preemptions().size(), 1u);
  return bench.state().preemptions().begin()->second;
}

/// A (cap 1, borrows) runs `first` and `loan` on two GPUs of one node; B (cap 1) then wants its
/// own.
struct Reclaim {
  explicit Reclaim(JobRequest loan_request = Bench::request("A")) {
    bench.register_node("n", 2);
    bench.apply({Bench::share("A", 1), Bench::share("B", 1, SharingStrategy::kLend)}, 2);
    first = bench.submit(Bench::request("A", 1, 5));
    loan = bench.submit(std::move(loan_request));
    bench.runs(first);
    attempt = bench.runs(loan);
    bench.advance(seconds(10));
    owner = bench.submit(Bench::request("B"));
  }

  Bench bench;
  JobId first, loan, owner;
  AttemptId attempt;
};

TEST(Stopping, AVictimKeepsItsStateUntilItsExitIsConfirmed) {
  Reclaim r;
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kRunning);
  EXPECT_TRUE(r.bench.job(r.loan).status_reason.starts_with("PREEMPTION_IN_PROGRESS"));
  ASSERT_EQ(r.bench.gateway.stops.size(), 1u);
  EXPECT_EQ(r.bench.gateway.stops[0].grace, kDefaultGrace);
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kRunnable);
  EXPECT_EQ(r.bench.state().reason_of(r.owner).code, ReasonCode::kWaitingForPreemptedCapacity);
  EXPECT_EQ(only_preemption(r.bench).lost_unit_ms, 1'000 * 10'000 / 1'000);
  r.bench.exits(r.attempt, {143, true});
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kScheduled);
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kRunnable);
  EXPECT_EQ(only_preemption(r.bench).end, PreemptionEnd::kGiven);
}

TEST(Stopping, APoliteVictimRunsAgain) {
  Reclaim r;
  r.bench.exits(r.attempt, {0, true});
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kRunnable);
  EXPECT_EQ(r.bench.job(r.loan).preemptions, 1);
  EXPECT_EQ(r.bench.job(r.loan).counted_attempts, 0);
  EXPECT_EQ(r.bench.state().attempt(r.attempt).outcome, AttemptOutcome::kPreempted);
  const AttemptId own = r.bench.runs(r.owner);
  r.bench.exits(own, {0, false});
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kSucceeded);
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kScheduled);
  EXPECT_EQ(r.bench.job(r.loan).attempt_count, 2);
}

TEST(Stopping, APoliteVictimHasSucceededIfItSaysSo) {
  JobRequest request = Bench::request("A");
  request.exit_zero_after_stop_succeeds = true;
  Reclaim r(request);
  r.bench.exits(r.attempt, {0, true});
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kSucceeded);
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kScheduled);
}

TEST(Stopping, AVictimThatHadExitedBeforeTheSignalHasSucceeded) {
  Reclaim r;
  r.bench.exits(r.attempt, {0, false});
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kSucceeded);
  EXPECT_EQ(r.bench.job(r.loan).preemptions, 0);
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kScheduled);
  EXPECT_EQ(only_preemption(r.bench).end, PreemptionEnd::kGiven);
}

TEST(Stopping, AVictimThatHadFailedBeforeTheSignalHasFailed) {
  Reclaim r;
  r.bench.exits(r.attempt, {7, false});
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kFailed);
  EXPECT_EQ(r.bench.job(r.loan).exit_code, 7);
  EXPECT_EQ(r.bench.job(r.loan).preemptions, 0);
}

TEST(Stopping, AVictimWhoseNodeDiesDuringTheGraceIsLostNotPreempted) {
  Bench bench;
  bench.register_node("n-0", 1);
  bench.register_node("n-1", 1);
  bench.apply({Bench::share("A", 1), Bench::share("B", 1, SharingStrategy::kLend)}, 2);
  const JobId first = bench.submit(Bench::request("A", 1, 5));
  const JobId loan = bench.submit(Bench::request("A"));
  bench.runs(first);
  const AttemptId attempt = bench.runs(loan);
  const JobId owner = bench.submit(Bench::request("B"));
  ASSERT_TRUE(bench.state().attempt(attempt).stopping());
  bench.node_down(bench.state().node(bench.state().attempt(attempt).instances[0].use.node).name);
  EXPECT_EQ(bench.state().attempt(attempt).outcome, AttemptOutcome::kLost);
  EXPECT_EQ(bench.job(loan).preemptions, 0);
  EXPECT_EQ(bench.job(loan).node_losses, 1);
  EXPECT_EQ(bench.job(loan).state, JobState::kRunnable);
  EXPECT_EQ(only_preemption(bench).end, PreemptionEnd::kLost);
  EXPECT_EQ(bench.job(owner).state, JobState::kRunnable);
  EXPECT_EQ(bench.state().find_booking(owner), nullptr);
}

TEST(Stopping, PreemptionRetriesAreLimitedWhereTheJobSaysSo) {
  JobRequest request = Bench::request("A");
  request.preemption_retries = 0;
  Reclaim r(request);
  r.bench.exits(r.attempt, {143, true});
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kFailed);
}

TEST(Stopping, AnUnconfirmedStopIsLostAfterGraceAndAMinute) {
  Reclaim r;
  r.bench.advance(kDefaultGrace + seconds(59));
  EXPECT_TRUE(r.bench.state().attempt(r.attempt).live());
  r.bench.advance(seconds(1));
  EXPECT_EQ(r.bench.state().attempt(r.attempt).outcome, AttemptOutcome::kLost);
  EXPECT_EQ(r.bench.job(r.loan).node_losses, 1);
  EXPECT_EQ(only_preemption(r.bench).end, PreemptionEnd::kLost);
  // The device is charged to the node: P has shrunk, the owner's job waits for another.
  const Ledger& ledger = r.bench.state().ledger();
  const Job& owner = r.bench.job(r.owner);
  const UnitId unit = r.bench.state().policy().units.front().id;
  EXPECT_EQ(ledger.pool(ledger.environment(owner.share), unit), Amount::units(1));
  EXPECT_EQ(owner.state, JobState::kRunnable);
  EXPECT_NE(r.bench.state().reason_of(r.owner).code, ReasonCode::kNone);
  // The late word of the agent verifies the device.
  r.bench.exits(r.attempt, {143, true});
  EXPECT_EQ(ledger.pool(ledger.environment(owner.share), unit), Amount::units(2));
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kScheduled);
}

TEST(Stopping, AChargedDeviceIsFreedByARegistrationWithoutTheAttempt) {
  Reclaim r;
  r.bench.advance(kDefaultGrace + seconds(60));
  ASSERT_FALSE(r.bench.state().attempt(r.attempt).live());
  ReportedInstance still;
  still.attempt = r.attempt;
  still.state = InstanceState::kRunning;
  ReportedInstance first;
  first.attempt = r.bench.job(r.first).attempt;
  first.state = InstanceState::kRunning;
  r.bench.register_node("n", 2, {first, still});
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kRunnable);
  r.bench.register_node("n", 2, {first});
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kScheduled);
}

// Two of three are known to have ended: only the third's device is not certain to be free.
TEST(Stopping, OnlyUnconfirmedInstancesKeepTheirDevicesCharged) {
  Bench bench;
  bench.register_node("n", 3);
  bench.apply({Bench::share("A", 3)}, 3);
  JobRequest gang = Bench::request("A");
  gang.instances = 3;
  const AttemptId attempt = bench.runs(bench.submit(gang));
  bench.exits(attempt, {1, false, 0});
  bench.exits(attempt, {143, true, 1});
  bench.advance(kDefaultGrace + seconds(60));
  ASSERT_FALSE(bench.state().attempt(attempt).live());
  int charged = 0;
  for (const Device& device : bench.state().nodes().front().devices) charged += device.charged;
  EXPECT_EQ(charged, 1);
}

// Two are given up; the end of one says nothing of the other, which shares half its device.
TEST(Stopping, AConfirmedEndFreesWhatNoOtherInstanceMayUse) {
  Bench bench;
  bench.register_node("n", 2);
  bench.apply({Bench::share("A", 2)}, 2);
  JobRequest gang = Bench::request("A");
  gang.units = {{"gpu", Amount(500)}};
  gang.instances = 4;
  const JobId job = bench.submit(gang);
  const AttemptId attempt = bench.runs(job);
  ASSERT_TRUE(bench.ask(CancelCommand{job, "enough"}));
  bench.advance(kDefaultGrace + seconds(60));
  ASSERT_FALSE(bench.state().attempt(attempt).live());
  const auto charged = [&bench] {
    std::int64_t count = 0;
    for (const Device& device : bench.state().nodes().front().devices) count += device.charged;
    return count;
  };
  ASSERT_EQ(charged(), 2);
  std::map<std::int32_t, std::vector<std::int32_t>> on_device;
  for (std::int32_t i = 0; i < 4; ++i) {
    const auto& instance = bench.state().attempt(attempt).instances[static_cast<std::size_t>(i)];
    on_device[instance.use.devices.front().device].push_back(i);
  }
  std::int64_t expected = 2;
  for (const auto& [device, instances] : on_device) {
    ASSERT_EQ(instances.size(), 2U);
    bench.report(attempt, InstanceState::kExited, {137, true, instances[0]});
    EXPECT_EQ(charged(), expected);  // The other one may still use it.
    bench.report(attempt, InstanceState::kExited, {137, true, instances[1]});
    EXPECT_EQ(charged(), --expected);
  }
}

/// A gang of two, which runs on the two devices of one node.
struct Pair {
  Pair() {
    bench.register_node("n", 2);
    bench.apply({Bench::share("A", 2)}, 2);
    JobRequest gang = Bench::request("A");
    gang.instances = 2;
    job = bench.submit(gang);
    attempt = bench.runs(job);
  }
  Bench bench;
  JobId job;
  AttemptId attempt;
};

// Two are given up. The agent connects anew and knows of one: the other has ended.
TEST(Registration, SaysOfEachInstanceGivenUpWhetherItHasEnded) {
  Pair pair;
  Bench& bench = pair.bench;
  const JobId job = pair.job;
  const AttemptId attempt = pair.attempt;
  ASSERT_TRUE(bench.ask(CancelCommand{job, "enough"}));
  bench.advance(kDefaultGrace + seconds(60));
  ReportedInstance still;
  still.attempt = attempt;
  bench.register_node("n", 2, {still});
  const auto device_of = [&](std::size_t i) {
    const DeviceUse& use = bench.state().attempt(attempt).instances[i].use.devices.front();
    return bench.state().nodes().front().devices[static_cast<std::size_t>(use.device)];
  };
  EXPECT_TRUE(device_of(0).charged);
  EXPECT_FALSE(device_of(1).charged);
  bench.report(attempt, InstanceState::kExited, {137, true, 0});
  EXPECT_FALSE(device_of(0).charged);
}

// The agent has lost one instance of a gang and runs the other: its device is not free yet.
TEST(Registration, LosesOnlyTheInstancesThatTheAgentDoesNotKnow) {
  Pair pair;
  Bench& bench = pair.bench;
  const JobId job = pair.job;
  const AttemptId attempt = pair.attempt;
  ReportedInstance runs;
  runs.attempt = attempt;
  bench.register_node("n", 2, {runs});
  ASSERT_EQ(bench.job(job).attempt, attempt);
  EXPECT_TRUE(bench.state().attempt(attempt).stopping());
  EXPECT_EQ(bench.gateway.starts.size(), 2U);
  bench.exits(attempt, {143, true, 0});
  EXPECT_EQ(bench.state().attempt(attempt).outcome, AttemptOutcome::kLost);
  EXPECT_EQ(bench.gateway.starts.size(), 4U);
}

// While the node is silent a stronger job takes the booking over; nothing starts there yet.
TEST(Stopping, NothingStartsOnATakenOverBookingWhileItsNodeIsSilent) {
  Reclaim r;
  r.bench.exits(r.attempt, {143, true});
  ASSERT_EQ(r.bench.job(r.owner).state, JobState::kScheduled);
  const AttemptId own = r.bench.runs(r.owner);
  r.bench.exits(own, {0, false});
  const AttemptId again = r.bench.runs(r.loan);
  const JobId weak = r.bench.submit(Bench::request("B"));
  r.bench.post(NodeLinkCommand{"n", NodeLink::kUnreachable});
  r.bench.exits(again, {143, true});
  ASSERT_NE(r.bench.state().find_booking(weak), nullptr);
  const JobId strong = r.bench.submit(Bench::request("B", 1, 9));
  EXPECT_NE(r.bench.state().find_booking(strong), nullptr);
  EXPECT_EQ(r.bench.job(strong).state, JobState::kRunnable);
}

TEST(Stopping, CancelDuringAPreemptionEndsTheJob) {
  Reclaim r;
  (void)r.bench.ask(CancelCommand{r.loan, "no longer wanted"});
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kRunning);
  r.bench.exits(r.attempt, {143, true});
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kFailed);
  EXPECT_EQ(r.bench.job(r.loan).status_reason, "no longer wanted");
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kScheduled);
}

TEST(Stopping, CancelOfTheBeneficiaryVoidsTheRecord) {
  Reclaim r;
  (void)r.bench.ask(CancelCommand{r.owner, ""});
  EXPECT_EQ(r.bench.job(r.owner).state, JobState::kFailed);
  EXPECT_EQ(only_preemption(r.bench).end, PreemptionEnd::kVoided);
  EXPECT_EQ(r.bench.state().find_booking(r.owner), nullptr);
  r.bench.exits(r.attempt, {143, true});
  EXPECT_EQ(r.bench.job(r.loan).state, JobState::kScheduled);
}

TEST(Stopping, AVictimMayBeStoppedBeforeItRuns) {
  Bench bench;
  bench.register_node("n", 2);
  bench.apply({Bench::share("A", 1), Bench::share("B", 1, SharingStrategy::kLend)}, 2);
  (void)bench.submit(Bench::request("A", 1, 5));
  const JobId loan = bench.submit(Bench::request("A"));
  const AttemptId attempt = bench.job(loan).attempt;
  const JobId owner = bench.submit(Bench::request("B"));
  ASSERT_TRUE(bench.state().attempt(attempt).stopping());
  bench.exits(attempt, {143, true});
  EXPECT_EQ(bench.job(loan).state, JobState::kRunnable);
  EXPECT_EQ(bench.job(owner).state, JobState::kScheduled);
  EXPECT_EQ(only_preemption(bench).lost_unit_ms, 0);
}

/// A gang of two instances over two nodes.
struct Gang {
  explicit Gang(std::int32_t max_attempts = 1) {
    bench.register_node("n-0", 1);
    bench.register_node("n-1", 1);
    bench.apply({Bench::share("A", 2)}, 2);
    JobRequest request = Bench::request("A");
    request.instances = 2;
    request.max_attempts = max_attempts;
    job = bench.submit(std::move(request));
    attempt = bench.job(job).attempt;
  }

  Bench bench;
  JobId job;
  AttemptId attempt;
};

TEST(GangTest, TheBarrierOpensWhenEveryInstanceIsPrepared) {
  Gang g;
  ASSERT_EQ(g.bench.gateway.starts.size(), 2u);
  EXPECT_FALSE(g.bench.gateway.starts[0].run_at_once);
  g.bench.report(g.attempt, InstanceState::kPrepared, {0, false, 0});
  EXPECT_TRUE(g.bench.gateway.gos.empty());
  g.bench.report(g.attempt, InstanceState::kPrepared, {0, false, 1});
  EXPECT_EQ(g.bench.gateway.gos.size(), 2u);
  g.bench.report(g.attempt, InstanceState::kRunning, {0, false, 0});
  EXPECT_EQ(g.bench.job(g.job).state, JobState::kStarting);
  g.bench.report(g.attempt, InstanceState::kRunning, {0, false, 1});
  EXPECT_EQ(g.bench.job(g.job).state, JobState::kRunning);
}

TEST(GangTest, AFailingMemberStopsTheOthers) {
  Gang g;
  g.bench.runs(g.job);
  g.bench.exits(g.attempt, {3, false, 1});
  EXPECT_EQ(g.bench.job(g.job).state, JobState::kRunning);
  ASSERT_EQ(g.bench.gateway.stops.size(), 1u);
  EXPECT_EQ(g.bench.gateway.stops[0].instance, 0);
  EXPECT_EQ(g.bench.gateway.stops[0].cause, StopCause::kGangMember);
  g.bench.exits(g.attempt, {143, true, 0});
  EXPECT_EQ(g.bench.job(g.job).state, JobState::kFailed);
  EXPECT_EQ(g.bench.job(g.job).exit_code, 3);
  EXPECT_EQ(g.bench.state().attempt(g.attempt).outcome, AttemptOutcome::kFailed);
}

TEST(GangTest, AMemberThatSucceedsLetsTheOthersRun) {
  Gang g;
  g.bench.runs(g.job);
  g.bench.exits(g.attempt, {0, false, 0});
  EXPECT_TRUE(g.bench.gateway.stops.empty());
  EXPECT_EQ(g.bench.job(g.job).state, JobState::kRunning);
  g.bench.exits(g.attempt, {0, false, 1});
  EXPECT_EQ(g.bench.job(g.job).state, JobState::kSucceeded);
}

TEST(GangTest, ADeadNodeOfAMemberCostsNoRetry) {
  Gang g;
  g.bench.runs(g.job);
  g.bench.node_down("n-1");
  ASSERT_EQ(g.bench.gateway.stops.size(), 1u);
  EXPECT_EQ(g.bench.gateway.stops[0].instance, 0);
  g.bench.exits(g.attempt, {143, true, 0});
  EXPECT_EQ(g.bench.state().attempt(g.attempt).outcome, AttemptOutcome::kLost);
  EXPECT_EQ(g.bench.job(g.job).state, JobState::kRunnable);
  EXPECT_EQ(g.bench.job(g.job).counted_attempts, 0);
  EXPECT_EQ(g.bench.job(g.job).node_losses, 1);
}

TEST(GangTest, AMemberWhoseSupervisorDiedCostsNoRetry) {
  Gang g;
  g.bench.runs(g.job);
  ReportCommand command;
  command.node = "n-1";
  command.report.attempt = g.attempt;
  command.report.instance = 1;
  command.report.state = InstanceState::kExited;
  command.report.exit_known = false;
  ASSERT_TRUE(g.bench.ask(std::move(command)));
  ASSERT_EQ(g.bench.gateway.stops.size(), 1u);
  g.bench.exits(g.attempt, {143, true, 0});
  EXPECT_EQ(g.bench.state().attempt(g.attempt).outcome, AttemptOutcome::kLost);
  EXPECT_EQ(g.bench.job(g.job).counted_attempts, 0);
  EXPECT_EQ(g.bench.job(g.job).node_losses, 1);
  EXPECT_FALSE(is_terminal(g.bench.job(g.job).state));
}

TEST(NodeHealth, NothingNewStartsOnANodeInTrouble) {
  Bench bench;
  bench.register_node("n-0", 2);
  bench.apply({Bench::share("A", 2)}, 2);
  const JobId running = bench.submit(Bench::request("A"));
  bench.runs(running);
  ASSERT_TRUE(bench.ask(NodeHealthCommand{"n-0", false, "the disk is full"}));
  const JobId waiting = bench.submit(Bench::request("A"));
  EXPECT_EQ(bench.job(running).state, JobState::kRunning);
  EXPECT_EQ(bench.job(waiting).state, JobState::kRunnable);
  EXPECT_EQ(bench.state().nodes().front().health_reason, "the disk is full");
  ASSERT_TRUE(bench.ask(NodeHealthCommand{"n-0", true, ""}));
  EXPECT_EQ(bench.job(waiting).state, JobState::kScheduled);
  EXPECT_FALSE(bench.ask(NodeHealthCommand{"n-9", true, ""}));
}

TEST(Registration, ADeviceIsOnOneNodeAtATime) {
  Bench bench;
  bench.register_node("n-0", 2);
  RegisterNodeCommand second;
  second.node.name = "n-1";
  second.node.state_dir_id = "n-1";
  second.node.devices = {bench.state().nodes().front().devices.back()};
  const auto refused = bench.ask(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kAlreadyExists);
  bench.node_down("n-0");
  EXPECT_TRUE(bench.ask(second));
  RegisterNodeCommand back;
  back.node = bench.state().nodes().front();
  EXPECT_FALSE(bench.ask(back));
  back.node.devices.pop_back();
  EXPECT_TRUE(bench.ask(back));
}

/// One job alone with a retry strategy; each exit as its agent reports it.
struct Retry {
  Retry(std::int32_t max_attempts, std::vector<ExitRule> rules) {
    bench.register_node("n", 1);
    bench.apply({Bench::share("A", 1)}, 1);
    JobRequest request = Bench::request("A");
    request.max_attempts = max_attempts;
    request.exit_rules = std::move(rules);
    job = bench.submit(std::move(request));
  }
  JobState exit(std::int32_t code) {
    bench.exits(bench.runs(job), {code, false});
    return bench.job(job).state;
  }

  Bench bench;
  JobId job;
};

TEST(RetryTest, AttemptsAreCounted) {
  Retry r(3, {});
  EXPECT_EQ(r.exit(1), JobState::kScheduled);
  EXPECT_EQ(r.exit(1), JobState::kScheduled);
  EXPECT_EQ(r.exit(1), JobState::kFailed);
  EXPECT_EQ(r.bench.job(r.job).attempt_count, 3);
}

TEST(RetryTest, TheFirstMatchingRuleDecides) {
  Retry r(10, {{"", "4?", RetryAction::kExit}, {"", "*", RetryAction::kRetry}});
  EXPECT_EQ(r.exit(1), JobState::kScheduled);
  EXPECT_EQ(r.exit(4), JobState::kScheduled);
  EXPECT_EQ(r.exit(42), JobState::kFailed);
}

TEST(RetryTest, BothPatternsOfARuleMustMatch) {
  Retry r(10, {{"Killed*", "1", RetryAction::kExit}, {"Exited*", "2", RetryAction::kExit}});
  EXPECT_EQ(r.exit(1), JobState::kScheduled);
  EXPECT_EQ(r.exit(137), JobState::kScheduled);
  EXPECT_EQ(r.exit(2), JobState::kFailed);
}

TEST(RetryTest, NodeLossesHaveALimitOfTheirOwn) {
  Retry r(1, {});
  for (int i = 0; i < kMaxNodeLosses; ++i) {
    r.bench.runs(r.job);
    r.bench.node_down("n");
    EXPECT_EQ(r.bench.job(r.job).state, JobState::kRunnable) << i;
    r.bench.register_node("n", 1);
  }
  EXPECT_EQ(r.bench.job(r.job).counted_attempts, 0);
  r.bench.runs(r.job);
  r.bench.node_down("n");
  EXPECT_EQ(r.bench.job(r.job).state, JobState::kFailed);
}

TEST(RetryTest, ATimedOutAttemptIsNotRetried) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1)}, 1);
  JobRequest request = Bench::request("A");
  request.timeout = seconds(5);
  request.max_attempts = 5;
  const JobId job = bench.submit(std::move(request));
  const AttemptId attempt = bench.runs(job);
  // The agent says nothing: the server itself stops what is long overdue.
  bench.advance(seconds(5) + seconds(60));
  ASSERT_EQ(bench.gateway.stops.size(), 1u);
  EXPECT_EQ(bench.gateway.stops[0].cause, StopCause::kTimeout);
  bench.exits(attempt, {143, true});
  EXPECT_EQ(bench.job(job).state, JobState::kFailed);
  EXPECT_EQ(bench.state().attempt(attempt).outcome, AttemptOutcome::kTimedOut);
}

TEST(Reports, OldAndRepeatedOnesChangeNothing) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1)}, 1);
  const JobId job = bench.submit(Bench::request("A"));
  const AttemptId attempt = bench.runs(job);
  const std::size_t events = bench.events.size();
  bench.report(attempt, InstanceState::kStarting);
  bench.report(attempt, InstanceState::kRunning);
  EXPECT_EQ(bench.events.size(), events);
  bench.exits(attempt, {0, false});
  bench.exits(attempt, {1, false});
  EXPECT_EQ(bench.job(job).state, JobState::kSucceeded);
}

TEST(Reports, AnAttemptOfAnotherServersDayIsStopped) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1)}, 1);
  ReportCommand stray;
  stray.node = "n";
  stray.report.attempt = AttemptId(77);
  EXPECT_TRUE(bench.ask(stray).has_value());
  ASSERT_EQ(bench.gateway.stops.size(), 1u);
  EXPECT_EQ(bench.gateway.stops[0].fence.attempt, AttemptId(77));
}

TEST(Registration, SendsAgainWhatCanNotHaveBegunAndLosesTheRest) {
  Bench bench;
  bench.register_node("n", 2);
  bench.apply({Bench::share("A", 2)}, 2);
  const JobId sent = bench.submit(Bench::request("A"));
  const JobId ran = bench.submit(Bench::request("A"));
  const AttemptId running = bench.runs(ran);
  bench.restart();
  bench.register_node("n", 2);
  EXPECT_EQ(bench.start_orders(bench.job(sent).attempt), 2);
  EXPECT_EQ(bench.start_orders(running), 1);
  EXPECT_EQ(bench.state().attempt(running).outcome, AttemptOutcome::kLost);
  EXPECT_EQ(bench.job(ran).attempt_count, 2);
}

}  // namespace
}  // namespace gpuq::sim_test
