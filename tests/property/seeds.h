#pragma once
// Seeds of random tests: 1..count, or only the one that the environment variable GPUQ_SEED names,
// or GPUQ_CASES of them from there. A failing seed is printed, also when a broken invariant aborts
// the program.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

namespace gpuq::property {

inline std::array<char, 128>& abort_text() {
  static std::array<char, 128> text{};
  return text;
}

inline void announce_abort(int) {
  const std::string_view text(abort_text().data());
  (void)!write(STDERR_FILENO, text.data(), text.size());
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 0;
};

/// The seeds to run where a test wants 1..count.
inline Seeds seeds_to_run(std::uint64_t count) {
  Seeds seeds{1, count};
  if (const char* only = std::getenv("GPUQ_SEED")) {
    seeds = {std::strtoull(only, nullptr, 10), 1};
  }
  if (const char* cases = std::getenv("GPUQ_CASES")) {
    seeds.count = std::strtoull(cases, nullptr, 10);
  }
  return seeds;
}

/// Runs `test` for each seed and stops at the first for which it returns a fault.
inline void for_seeds(std::uint64_t count, const std::function<std::string(std::uint64_t)>& test) {
  const Seeds seeds = seeds_to_run(count);
  std::signal(SIGABRT, announce_abort);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const auto end = fmt::format_to_n(abort_text().data(), abort_text().size() - 1,
                                      "aborted with GPUQ_SEED={}\n", seed);
    *end.out = '\0';
    const std::string fault = test(seed);
    ASSERT_EQ(fault, "") << "run it alone with GPUQ_SEED=" << seed;
  }
  std::signal(SIGABRT, SIG_DFL);
}

}  // namespace gpuq::property
