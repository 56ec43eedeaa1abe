#pragma once
// Which faults met which decisions in flight, over many runs: a run of faults that never struck a
// reclaim shows nothing about reclaims.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>

namespace gpuq::sim_test {

enum class Fault : std::uint8_t {
  kOrderLost,
  kOrderDoubled,
  kOrderLate,
  kOrderOvertaken,
  kOrderStale,  ///< Of a server that is dead, delivered after its death.
  kReportLost,
  kReportDoubled,
  kReportLate,
  kReportOvertaken,
  kAgentRestarted,  ///< Comes back with what runs.
  kAgentHung,       ///< Silent, with its node's work going on.
  kNodeDied,        ///< Its agent comes back with its journal.
  kNodeWiped,       ///< Its agent comes back without.
  kStartRefused,
  kServerKilled,
  kServerStoodStill,
  kCommitFailed,
  kDiskFull,
  kCount,
};

/// What is on its way when a fault strikes.
enum class InFlight : std::uint8_t {
  kStart,
  kPreemption,
  kBookingStart,
  kCancel,
  kRetry,
  kNodeLoss,
  kCount,
};

class FaultCounts {
 public:
  void add(Fault fault, const std::set<InFlight>& met) {
    for (const InFlight what : met) {
      ++counts_[static_cast<std::size_t>(fault)][static_cast<std::size_t>(what)];
    }
  }

  [[nodiscard]] std::string table() const {
    std::string text = fmt::format("{:<18}", "");
    for (const char* name : kInFlightNames) text += fmt::format("{:>14}", name);
    for (std::size_t f = 0; f < counts_.size(); ++f) {
      text += fmt::format("\n{:<18}", kFaultNames[f]);
      for (const std::uint64_t count : counts_[f]) text += fmt::format("{:>14}", count);
    }
    return text + "\n";
  }

  /// The first pair that never met, or "".
  [[nodiscard]] std::string missing() const {
    for (std::size_t f = 0; f < counts_.size(); ++f) {
      for (std::size_t i = 0; i < counts_[f].size(); ++i) {
        if (counts_[f][i] == 0) return fmt::format("{} / {}", kFaultNames[f], kInFlightNames[i]);
      }
    }
    return {};
  }

 private:
  static constexpr auto kFaults = static_cast<std::size_t>(Fault::kCount);
  static constexpr auto kKinds = static_cast<std::size_t>(InFlight::kCount);
  static constexpr std::array<const char*, kFaults> kFaultNames = {
      "order lost",     "order doubled",  "order late",  "order overtaken",  "order stale",
      "report lost",    "report doubled", "report late", "report overtaken", "agent restarted",
      "agent hung",     "node died",      "node wiped",  "start refused",    "server killed",
      "server stalled", "commit failed",  "disk full"};
  static constexpr std::array<const char*, kKinds> kInFlightNames = {
      "start", "preemption", "booking start", "cancel", "retry", "node loss"};

  std::array<std::array<std::uint64_t, kKinds>, kFaults> counts_{};
};

}  // namespace gpuq::sim_test
