// Random clusters, policies and streams of events through the engine: after every change of the
// state the rules' invariants hold, counted anew without the ledger. With GPUQ_SHRINK set, a
// failing case is cut down and printed as a scenario file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/property/case_text.h"
#include "tests/property/drive.h"
#include "tests/property/plan_checks.h"
#include "tests/property/random_case.h"
#include "tests/property/recount.h"
#include "tests/property/seeds.h"
#include "tests/property/shrink.h"
#include "tests/property/usage_check.h"

namespace gpuq::property {
namespace {

/// Runs one case with every check; the first fault, with the time at which it showed.
class CheckedRun {
 public:
  CheckedRun(const sim::Scenario& scenario, EngineConfig config, bool plain)
      : config_(config),
        plain_(plain),
        drive_(scenario, std::move(config),
               {[this] { changed(); }, [this] { settled(); }, {}, {}, {}}) {}

  std::string run() {
    const std::string end = drive_.run();
    return fault_.empty() ? end : fault_;
  }

 private:
  void note(const std::string& fault) {
    if (fault.empty() || !fault_.empty()) return;
    fault_ = fmt::format("at {} ms: {}", to_ms(drive_.world().clock().now()), fault);
  }

  void changed() {
    if (!fault_.empty()) return;
    const State& state = drive_.state();
    note(check_plan(state, std::max(drive_.world().clock().now(), state.last_time()), config_));
    note(history_.see(state));
    note(usage_.see(state));
  }

  void settled() {
    if (!fault_.empty()) return;
    const std::uint64_t version = drive_.state().version();
    if (!drive_.world().engine().idle()) note("the engine is not idle after everything settled");
    drive_.world().settle();
    if (drive_.state().version() != version)
      note("a settled world changes by itself (invariant 9)");
    note(check_rest(drive_.state(), drive_.world().clock().now(), plain_));
  }

  EngineConfig config_;
  bool plain_;
  History history_;
  UsageCheck usage_;
  std::string fault_;
  Drive drive_;
};

std::string run_case(const sim::Scenario& scenario, std::uint64_t seed, bool plain) {
  EngineConfig config = strict_config(scenario);
  // Plans carried out in one transaction, or in many.
  config.max_batch_decisions = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 2 : 1'000;
  return CheckedRun(scenario, config, plain).run();
}

std::string check_seed(std::uint64_t seed, const Shape& shape) {
  const sim::Scenario scenario = random_case(seed, shape);
  const auto run = [&](const sim::Scenario& s) { return run_case(s, seed, shape.plain); };
  if (std::getenv("GPUQ_SHRINK") == nullptr) return run(scenario);
  if (!fails(scenario, run)) return {};
  const sim::Scenario smallest = Shrinker(scenario, run).shrink();
  std::fputs(to_yaml(smallest).c_str(), stderr);
  return run(smallest);
}

TEST(Invariants, HoldInRandomRuns) {
  for_seeds(200, [](std::uint64_t seed) { return check_seed(seed, {}); });
}

TEST(Invariants, HoldInRunsOfSingleGpuJobs) {
  for_seeds(150, [](std::uint64_t seed) { return check_seed(seed + 1'000'000, {true, 60}); });
}

}  // namespace
}  // namespace gpuq::property
