// What a forecast takes along of arrays: members that may start, as jobs of their own.
#include <gtest/gtest.h>

#include "tests/sim/bench.h"

namespace gpuq::sim_test {
namespace {

TEST(ArrayExcerpt, HoldsMembersAsJobsAndNoArrays) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1)}, 1);
  JobRequest request = Bench::request("A");
  request.array = ArrayRange{0, 99, 1, 10};
  const JobId id = bench.submit(request);
  ASSERT_TRUE(bench.ask(UpdateJobCommand{JobId(id.value + 21), 1}).has_value());  // Kept back.
  // Member 0 has an attempt; 1 to 9 may start, of these the first five are wanted.
  StateExcerpt excerpt = bench.state().excerpt(5, {id, JobId(id.value + 21)});
  const State state = std::move(excerpt).state();
  EXPECT_EQ(state.jobs().size(), 6u);
  EXPECT_EQ(state.jobs().begin()->first, JobId(id.value + 1));
  EXPECT_EQ(state.jobs().rbegin()->first, JobId(id.value + 6));
  EXPECT_TRUE(state.arrays().empty());
  EXPECT_EQ(state.sanity_check(), "");
}

TEST(ArrayExcerpt, TakesMembersWithoutRecordsAlong) {
  Bench bench;
  bench.register_node("n", 1);
  bench.apply({Bench::share("A", 1)}, 1);
  JobRequest request = Bench::request("A");
  request.array = ArrayRange{0, 9};
  const JobId id = bench.submit(request);
  ASSERT_EQ(bench.state().find_array(id)->made, 1);
  StateExcerpt excerpt = bench.state().excerpt(4);
  EXPECT_EQ(excerpt.left_out, 5);  // Nine wait, four are taken.
  const State state = std::move(excerpt).state();
  EXPECT_EQ(state.jobs().size(), 5u);
  EXPECT_EQ(state.job(JobId(id.value + 5)).state, JobState::kRunnable);
}

}  // namespace
}  // namespace gpuq::sim_test
