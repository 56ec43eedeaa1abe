#pragma once
// Rows of a benchmark: a figure beside its yardstick from the same run, and the ratio that must
// hold.
#include <cstdio>
#include <string>
#include <string_view>

namespace gpuq::bench {

class Table {
 public:
  /// `--check` among the arguments: finish() fails when a row misses its ratio.
  Table(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) check_ = check_ || std::string_view(argv[i]) == "--check";
    std::printf("%-44s %12s   %-28s %12s  %7s\n", "measure", "value", "yardstick", "value",
                "ratio");
  }
  /// A figure without a target.
  void row(const std::string& name, double value, const char* unit) {
    std::printf("%-44s %12.0f %s\n", name.c_str(), value, unit);
  }
  /// `value` must be at least `least` times `yardstick`; 0 = no target.
  void row(const std::string& name, double value, const std::string& yardstick_name,
           double yardstick, double least) {
    const double ratio = yardstick > 0 ? value / yardstick : 0;
    const bool missed = ratio < least;
    failed_ = failed_ || missed;
    std::printf("%-44s %12.0f   %-28s %12.0f  %7.2f", name.c_str(), value, yardstick_name.c_str(),
                yardstick, ratio);
    if (least > 0) std::printf("  (>= %.2f)%s", least, missed ? " MISSED" : "");
    std::printf("\n");
  }
  /// A figure that should be small: `value` may be up to `limit` (in its own unit), on a slow
  /// machine up to `times` the yardstick.
  void most(const std::string& name, double value, const std::string& yardstick_name,
            double yardstick, double limit, double times) {
    const bool missed = value > limit && value > times * yardstick;
    failed_ = failed_ || missed;
    std::printf("%-44s %12.0f   %-28s %12.0f  %7.2f  (<= %.0f or %.0f x)%s\n", name.c_str(), value,
                yardstick_name.c_str(), yardstick, yardstick > 0 ? value / yardstick : 0, limit,
                times, missed ? " MISSED" : "");
  }
  [[nodiscard]] int finish() const { return check_ && failed_ ? 1 : 0; }

 private:
  bool check_ = false;
  bool failed_ = false;
};

}  // namespace gpuq::bench
