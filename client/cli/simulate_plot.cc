#include "client/cli/simulate_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "common/policy/units.h"

namespace gpuq::cli {

namespace {

constexpr double kWidth = 960;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 60;
constexpr double kUseHeight = 260;
constexpr double kWaitHeight = 120;
constexpr double kGap = 50;
constexpr int kTicks = 5;
constexpr int kTimeTicks = 8;

// Told apart by people who do not see all colours (Okabe and Ito).
constexpr std::array<const char*, 8> kColours{"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                              "#56B4E9", "#D55E00", "#F0E442", "#999999"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

/// One chart: where it stands and what its axes mean.
struct Frame {
  double top = 0;
  double height = 0;
  double max = 1;  ///< Value at the top.
  std::size_t spans = 1;

  [[nodiscard]] double x(double span) const {
    return kLeft + (kWidth - kLeft - kRight) * span / static_cast<double>(spans);
  }
  [[nodiscard]] double y(double value) const { return top + height * (1 - value / max); }
};

/// The smallest of 1, 2, 4 and 5 times a power of ten of which at most kTicks make `value`.
double step_for(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(value / kTicks)));
  for (const double step : {1.0, 2.0, 4.0, 5.0}) {
    if (value <= step * power * kTicks) return step * power;
  }
  return 10 * power;
}

/// Likewise, of the steps in which people count time.
Duration step_for(Duration span) {
  using std::chrono::hours, std::chrono::minutes, std::chrono::seconds;
  for (const Duration step :
       std::initializer_list<Duration>{seconds(1), seconds(5), seconds(15), minutes(1), minutes(5),
                                       minutes(15), hours(1), hours(2), hours(6), hours(24)}) {
    if (span <= step * kTimeTicks) return step;
  }
  const Duration day = hours(24);
  return day * static_cast<std::int64_t>(
                   step_for(static_cast<double>(span / day + 1) * kTicks / kTimeTicks));
}

void text(std::string& svg, double x, double y, const char* anchor, const std::string& words) {
  svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", x, y, anchor,
                     escaped(words));
}

void axes(std::string& svg, const Frame& frame, const std::string& title, Duration span) {
  text(svg, kLeft, frame.top - 8, "start", title);
  const double step = step_for(frame.max);
  for (int i = 0; i * step <= frame.max; ++i) {
    const double y = frame.y(i * step);
    svg += fmt::format("<line x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' class='grid'/>\n",
                       kLeft, kWidth - kRight, y, y);
    text(svg, kLeft - 6, y + 4, "end", fmt::format("{:g}", i * step));
  }
  const Duration end = span * static_cast<std::int64_t>(frame.spans);
  const Duration time_step = step_for(end);
  for (Duration at{0}; at <= end; at += time_step) {
    const double spans = static_cast<double>(at.count()) / static_cast<double>(span.count());
    text(svg, frame.x(spans), frame.top + frame.height + 16, "middle", gpuq::format_duration(at));
  }
}

/// The frame of values up to `most`: its top is a multiple of its step.
Frame frame_for(double top, double height, double most, std::size_t spans) {
  const double step = step_for(most);
  const double max = std::max(1.0, std::ceil(most / step)) * step;
  return {top, height, max, std::max<std::size_t>(1, spans)};
}

/// Where a step line of one value a span has its corners, from left to right.
std::vector<std::pair<double, double>> corners(const Frame& frame,
                                               const std::vector<double>& values) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool level = i > 0 && values[i] == values[i - 1];
    if (level) points.pop_back();
    if (!level) points.emplace_back(frame.x(static_cast<double>(i)), frame.y(values[i]));
    points.emplace_back(frame.x(static_cast<double>(i + 1)), frame.y(values[i]));
  }
  return points;
}

/// The area between two outlines, each a value a span.
void area(std::string& svg, const Frame& frame, const std::vector<double>& low,
          const std::vector<double>& high, const char* colour) {
  auto points = corners(frame, high);
  const auto back = corners(frame, low);
  points.insert(points.end(), back.rbegin(), back.rend());
  svg += "<polygon points='";
  for (const auto& [x, y] : points) svg += fmt::format("{:.1f},{:.1f} ", x, y);
  svg += fmt::format("' fill='{}'/>\n", colour);
}

void legend(std::string& svg, const std::vector<std::string>& shares) {
  double x = kLeft;
  for (std::size_t i = 0; i < shares.size() && x < kWidth - kRight - 60; ++i) {
    svg += fmt::format("<rect x='{:.1f}' y='24' width='12' height='12' fill='{}'/>\n", x,
                       kColours[i % kColours.size()]);
    text(svg, x + 16, 34, "start", shares[i]);
    x += 36 + 7.5 * static_cast<double>(shares[i].size());
  }
}

void held_chart(std::string& svg, const sim::Series& series) {
  std::vector<double> low(series.held.size());
  std::vector<std::vector<double>> outlines{low};
  for (std::size_t share = 0; share < series.shares.size(); ++share) {
    for (std::size_t i = 0; i < low.size(); ++i) low[i] += series.held[i][share];
    outlines.push_back(low);
  }
  const double most = low.empty() ? 0 : *std::ranges::max_element(low);
  const Frame frame = frame_for(kTop, kUseHeight, most, low.size());
  for (std::size_t share = 0; share < series.shares.size(); ++share) {
    area(svg, frame, outlines[share], outlines[share + 1], kColours[share % kColours.size()]);
  }
  axes(svg, frame, "Units held, by share", series.span);
}

void waiting_chart(std::string& svg, const sim::Series& series) {
  const auto& waiting = series.waiting;
  const double most = waiting.empty() ? 0 : *std::ranges::max_element(waiting);
  const Frame frame = frame_for(kTop + kUseHeight + kGap, kWaitHeight, most, waiting.size());
  area(svg, frame, std::vector<double>(series.waiting.size()), series.waiting, "#777777");
  axes(svg, frame, "Jobs waiting", series.span);
}

}  // namespace

std::string plot_svg(const SimulatedRun& run) {
  const double height = kTop + kUseHeight + kGap + kWaitHeight + 30;
  const std::string title = escaped(run.scenario->title);
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {:.0f} {:.0f}' role='img'>\n"
      "<title>{}</title>\n"
      "<style>text{{font:12px sans-serif;fill:#222}}.grid{{stroke:#0002}}</style>\n"
      "<rect width='100%' height='100%' fill='#fff'/>\n",
      kWidth, height, title);
  text(svg, kLeft, 16, "start", run.scenario->title);
  legend(svg, run.result.series.shares);
  held_chart(svg, run.result.series);
  waiting_chart(svg, run.result.series);
  return svg + "</svg>\n";
}

}  // namespace gpuq::cli
