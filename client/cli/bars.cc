#include "client/cli/bars.h"

#include <algorithm>
#include <array>

namespace gpuq::cli {

namespace {

struct Part {
  const char* unicode;
  const char* ascii;
  Colour colour;
  const char* meaning;
};

constexpr std::array<Part, 4> kParts = {{
    {"\u2588", "#", Colour::kGreen, "own"},
    {"\u2592", "=", Colour::kBlue, "lent"},
    {"\u00b7", ".", Colour::kDim, "idle"},
    {"\u2593", "+", Colour::kYellow, "borrowed"},
}};

std::string repeat(const std::string& text, std::int64_t times) {
  std::string all;
  for (std::int64_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string cell(const Terminal& terminal, const Part& part) {
  return terminal.unicode ? part.unicode : part.ascii;
}

}  // namespace

std::string share_bar(const Terminal& terminal, const BarAmounts& amounts, std::int64_t full,
                      int width) {
  const std::array<std::int64_t, 4> values = {amounts.own, amounts.lent, amounts.idle,
                                              amounts.borrowed};
  std::string bar;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] <= 0 || full <= 0) continue;
    const std::int64_t cells = std::max<std::int64_t>((values[i] * width + full / 2) / full, 1);
    bar += paint(terminal, kParts[i].colour, repeat(cell(terminal, kParts[i]), cells));
  }
  return bar;
}

std::string bar_legend(const Terminal& terminal) {
  std::string text;
  for (const auto& part : kParts) {
    if (!text.empty()) text += "  ";
    text += paint(terminal, part.colour, cell(terminal, part)) + " " + part.meaning;
  }
  return text;
}

}  // namespace gpuq::cli
