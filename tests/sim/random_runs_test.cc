// Random runs over a store that fails and a server that is killed: what is stored is what is live,
// what was answered stays, nothing runs twice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/property/drive.h"
#include "tests/property/random_case.h"
#include "tests/property/seeds.h"
#include "tests/sim/counting_world.h"
#include "tests/sim/stored.h"

namespace gpuq::sim_test {
namespace {

using property::Dice;
using property::for_seeds;
using property::random_case;
using Drive = property::DriveOn<CountingWorld>;

std::string stored_against_live(CountingWorld& world) {
  return difference(*world.store().load(false), world.state().to_stored());
}

class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed)
      : seed_(seed), scenario_(random_case(seed, {false, 50})), dice_(seed * 7919) {}
  virtual ~RandomRun() = default;

  std::string run() {
    Drive drive(scenario_, config(),
                {{},
                 [this] { settled(); },
                 [this] { acted(); },
                 [this](const std::vector<Event>&) { committed(); },
                 [this](const Result<Reply>& reply) { replied(reply); }});
    drive_ = &drive;
    std::string end = drive.run();
    if (fault_.empty()) finished();
    drive_ = nullptr;
    return fault_.empty() ? end : fault_;
  }

 protected:
  virtual void acted() {}
  virtual void settled() {}
  virtual void finished() {}
  virtual void replied(const Result<Reply>&) {}
  virtual void committed() { note(stored_against_live(world())); }
  /// Every job's end, or what the store knows of the first that has none.
  void check_ends() {
    for (const auto& [id, job] : world().state().jobs()) {
      if (!is_active(job.state)) continue;
      std::string story = fmt::format("job {} never ends:", id.value);
      for (const Event& event : world().store().events()) {
        const bool of_nodes =
            event.type == EventType::kNodeChanged || event.type == EventType::kNodeRegistered;
        if (event.job != id && !of_nodes) continue;
        story +=
            fmt::format("\n  {} ms {} {}", to_ms(event.at), to_string(event.type), event.detail);
      }
      note(story);
    }
  }

  [[nodiscard]] EngineConfig config() const {
    EngineConfig config = property::strict_config(scenario_);
    config.max_batch_commands = seed_ % 2 == 0 ? 2 : 4'096;
    config.max_batch_decisions = seed_ % 3 == 0 ? 1 : 1'000;
    return config;
  }
  void note(const std::string& fault) {
    if (fault.empty() || !fault_.empty()) return;
    fault_ = fmt::format("at {} ms: {}", to_ms(world().clock().now()), fault);
  }
  CountingWorld& world() { return drive_->world(); }
  void reconnect() {
    for (const Node& node : scenario_.nodes) {
      world().agents().set_alive(node.name, world().agents().alive(node.name));
    }
  }
  Drive& drive() { return *drive_; }
  Dice& dice() { return dice_; }
  [[nodiscard]] const sim::Scenario& scenario() const { return scenario_; }

 private:
  std::uint64_t seed_;
  sim::Scenario scenario_;
  Dice dice_;
  std::string fault_;
  Drive* drive_ = nullptr;
};

TEST(RandomRuns, WhatIsStoredIsWhatIsLive) {
  for_seeds(150, [](std::uint64_t seed) { return RandomRun(seed).run(); });
}

/// Commits fail now and then. The agents report anew when the service is back, as on a reconnect.
class FailingRun final : public RandomRun {
 public:
  using RandomRun::RandomRun;

 private:
  void acted() override {
    if (!dice().one_in(4)) return;
    const int tasks = dice().roll(4);
    for (int i = 0; i < tasks; ++i) (void)world().executor().run_one();
    world().store().fail_next(dice().between(1, 3), {ErrorCode::kUnavailable, "the disk is away"});
  }
  void settled() override {
    if (world().asked() != world().answered()) note("a caller got no answer");
    if (world().engine().read_only()) {
      note(stored_against_live(world()));
      failed_ = true;
      return;
    }
    if (!std::exchange(failed_, false)) return;
    reconnect();
    drive().settle();
  }
  void finished() override {
    note(stored_against_live(world()));
    if (world().engine().read_only()) note("the service does not resume");
    check_ends();
  }

  bool failed_ = false;
};

TEST(RandomRuns, AFailingCommitChangesNothing) {
  for_seeds(150, [](std::uint64_t seed) { return FailingRun(seed + 5'000).run(); });
}

/// The server is killed between any two of its tasks.
class CrashingRun final : public RandomRun {
 public:
  using RandomRun::RandomRun;

 private:
  void acted() override {
    if (!dice().one_in(3)) return;
    const int tasks = dice().roll(8);
    for (int i = 0; i < tasks && world().executor().run_one(); ++i) {
    }
    const StoredState before = *world().store().load(false);
    drive().crash_after(0);
    // What a dead node's silence tells the server some day.
    for (const Node& node : scenario().nodes) {
      if (!world().agents().alive(node.name)) world().agents().set_alive(node.name, false);
    }
    const StoredState after = world().state().to_stored();
    note(difference("bookings", before.bookings, after.bookings));
    note(difference("jobs", before.jobs, after.jobs));
    note(difference("attempts", before.attempts, after.attempts));
    note(difference("preemptions", before.preemptions, after.preemptions));
    if (after.identity.epoch != before.identity.epoch + 1) note("the epoch did not rise by one");
  }
  void settled() override {
    note(world().ran_twice());
    for (const auto& [name, id] : drive().acknowledged()) {
      if (world().state().find_job(id) == nullptr) note(fmt::format("job {} is lost", name));
    }
  }
  void finished() override { check_ends(); }
};

TEST(RandomRuns, AKilledServerLosesNothingAndStartsNothingTwice) {
  for_seeds(150, [](std::uint64_t seed) { return CrashingRun(seed + 9'000).run(); });
}

}  // namespace
}  // namespace gpuq::sim_test
