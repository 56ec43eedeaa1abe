// Whom a change of the policy hits at once (F5), asked of a copy; and that the original stays as it
// is.
#include "core/sim/preview.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/sim/bench.h"
#include "tests/sim/stored.h"

namespace gpuq::sim_test {
namespace {

using sim::AffectedJob;
using sim::JobFate;
using sim::PolicyPreview;

/// Four GPUs, shares `s` and `t`.
class PreviewBench {
 public:
  PreviewBench(std::int64_t cap_s, std::int64_t cap_t) {
    bench.register_node("n1", 4);
    bench.apply({share("s", cap_s), share("t", cap_t)}, 4);
  }
  static ShareDef share(const std::string& name, std::int64_t cap) {
    return Bench::share(name, cap);
  }
  JobId running(const std::string& share, std::int64_t gpus = 1) {
    const JobId job = bench.submit(Bench::request(share, gpus));
    (void)bench.runs(job);
    return job;
  }
  /// These shares are changed.
  static ApplyPolicyCommand change(std::vector<ShareDef> shares) {
    ApplyPolicyCommand command;
    command.partial = true;
    QueueDef queue;
    queue.name = "q";
    queue.shares = std::move(shares);
    command.doc.queues = {queue};
    return command;
  }
  PolicyPreview look(ApplyPolicyCommand command) {
    const StoredState before = bench.state().to_stored();
    sim::ForecastRun run(bench.state().excerpt(100), bench.now());
    PolicyPreview preview = sim::preview_policy(run, {"admin", std::move(command)}, {});
    EXPECT_EQ(difference(bench.state().to_stored(), before), "");
    return preview;
  }

  Bench bench;
};

TEST(PolicyPreview, NamesWhomADrainStops) {
  PreviewBench f(2, 2);
  f.running("s");
  const JobId later = f.running("s");
  ApplyPolicyCommand command = PreviewBench::change({PreviewBench::share("s", 1)});
  EXPECT_TRUE(f.look(command).jobs.empty());  // It only becomes a loan.
  command.drain = true;
  const PolicyPreview preview = f.look(command);
  ASSERT_EQ(preview.jobs.size(), 1U);
  EXPECT_EQ(preview.jobs[0].job, later);
  EXPECT_EQ(preview.jobs[0].share, "s");
  EXPECT_EQ(preview.jobs[0].fate, JobFate::kStopped);
  EXPECT_NE(preview.jobs[0].reason.find("was lowered"), std::string::npos);
  EXPECT_EQ(preview.jobs[0].reason.find("PREEMPTION_IN_PROGRESS"), std::string::npos);
}

TEST(PolicyPreview, NamesWhomAnOwnerThatItMakesWouldReclaim) {
  PreviewBench f(4, 0);
  std::vector<JobId> running;
  for (int i = 0; i < 4; ++i) running.push_back(f.running("s"));
  (void)f.bench.submit(Bench::request("t"));
  const PolicyPreview preview =
      f.look(PreviewBench::change({PreviewBench::share("s", 3), PreviewBench::share("t", 1)}));
  ASSERT_EQ(preview.jobs.size(), 1U);
  EXPECT_EQ(preview.jobs[0].job, running.back());
  EXPECT_NE(preview.jobs[0].reason.find("reclaim"), std::string::npos) << preview.jobs[0].reason;
}

TEST(PolicyPreview, NamesWhatCanNeverStartAnyMore) {
  PreviewBench f(4, 0);
  f.running("s", 4);
  const JobId wide = f.bench.submit(Bench::request("s", 3));
  const JobId hopeless = f.bench.submit(Bench::request("s", 9));  // Before as well.
  ShareDef fixed = PreviewBench::share("s", 2);
  fixed.strategy = SharingStrategy::kReserve;
  const PolicyPreview preview = f.look(PreviewBench::change({fixed}));
  ASSERT_EQ(preview.jobs.size(), 1U);
  EXPECT_EQ(preview.jobs[0].job, wide);
  EXPECT_NE(preview.jobs[0].job, hopeless);
  EXPECT_EQ(preview.jobs[0].fate, JobFate::kStranded);
}

TEST(PolicyPreview, NamesWhatEndsWithItsShareAndNotWhatStopsAnyway) {
  PreviewBench f(2, 2);
  const JobId active = f.running("t", 2);
  const JobId leaving = f.running("s");
  (void)f.bench.ask(CancelCommand{leaving, "enough"});
  f.running("s");
  const JobId waiting = f.bench.submit(Bench::request("t"));
  ShareDef off = PreviewBench::share("t", 2);
  off.enabled = false;
  ASSERT_TRUE(f.bench.ask(PreviewBench::change({off})).has_value());
  ApplyPolicyCommand remove;
  remove.partial = true;
  remove.deletions = {{"share", "q/t"}};
  const PolicyPreview preview = f.look(remove);
  ASSERT_EQ(preview.jobs.size(), 2U);
  EXPECT_EQ(preview.jobs[0].job, active);
  EXPECT_EQ(preview.jobs[0].fate, JobFate::kStopped);
  EXPECT_EQ(preview.jobs[1].job, waiting);
  EXPECT_EQ(preview.jobs[1].share, "t");
  EXPECT_EQ(preview.jobs[1].fate, JobFate::kEnded);
}

TEST(PolicyPreview, SaysThatItWasCut) {
  PreviewBench f(2, 2);
  f.running("s");
  sim::ForecastRun run(f.bench.state().excerpt(100), f.bench.now());
  const auto command = PreviewBench::change({PreviewBench::share("s", 1)});
  EXPECT_TRUE(
      sim::preview_policy(run, {"admin", command}, {Duration(0), [] { return false; }}).cut);
}

}  // namespace
}  // namespace gpuq::sim_test
