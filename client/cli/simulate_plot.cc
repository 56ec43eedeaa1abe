#include "client/cli/simulate_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
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

/// The smallest of 1, 2 and 5 times a power of ten that is not below `value`.
double round_up(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (value <= step * power) return step * power;
  }
  return 10 * power;
}

void text(std::string& svg, double x, double y, const char* anchor, const std::string& words) {
  svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", x, y, anchor,
                     escaped(words));
}

void axes(std::string& svg, const Frame& frame, const std::string& title, Duration span) {
  text(svg, kLeft, frame.top - 8, "start", title);
  for (int i = 0; i <= kTicks; ++i) {
    const double part = static_cast<double>(i) / kTicks;
    const double y = frame.y(frame.max * part);
    svg += fmt::format("<line x1='{:.1f}' x2='{:.1f}' y1='{:.1f}' y2='{:.1f}' class='grid'/>\n",
                       kLeft, kWidth - kRight, y, y);
    text(svg, kLeft - 6, y + 4, "end", fmt::format("{:g}", frame.max * part));
    const double spans = static_cast<double>(frame.spans) * part;
    const auto ms = static_cast<std::int64_t>(spans * static_cast<double>(span.count()));
    const Duration at(ms - ms % 1000);
    text(svg, frame.x(spans), frame.top + frame.height + 16, "middle", gpuq::format_duration(at));
  }
}

/// The area between two outlines, each a value a span.
void area(std::string& svg, const Frame& frame, const std::vector<double>& low,
          const std::vector<double>& high, const char* colour) {
  std::string points;
  const auto point = [&](std::size_t span, double value) {
    points += fmt::format("{:.1f},{:.1f} ", frame.x(static_cast<double>(span)), frame.y(value));
  };
  for (std::size_t i = 0; i < high.size(); ++i) {
    point(i, high[i]);
    point(i + 1, high[i]);
  }
  for (std::size_t i = low.size(); i-- > 0;) {
    point(i + 1, low[i]);
    point(i, low[i]);
  }
  svg += fmt::format("<polygon points='{}' fill='{}'/>\n", points, colour);
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
  Frame frame{kTop, kUseHeight, 1, std::max<std::size_t>(1, low.size())};
  if (!low.empty()) frame.max = round_up(*std::ranges::max_element(low));
  for (std::size_t share = 0; share < series.shares.size(); ++share) {
    area(svg, frame, outlines[share], outlines[share + 1], kColours[share % kColours.size()]);
  }
  axes(svg, frame, "Units held, by share", series.span);
}

void waiting_chart(std::string& svg, const sim::Series& series) {
  Frame frame{kTop + kUseHeight + kGap, kWaitHeight, 1,
              std::max<std::size_t>(1, series.waiting.size())};
  if (!series.waiting.empty()) frame.max = round_up(*std::ranges::max_element(series.waiting));
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
