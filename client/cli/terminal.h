#pragma once
// Where the program writes, and what that place can show.
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace gpuq::cli {

struct Terminal {
  std::ostream& out;
  std::ostream& err;
  bool colour = false;   ///< Standard output is a terminal and NO_COLOR is not set.
  bool unicode = false;  ///< The locale's character set is UTF-8.
  int width = 0;         ///< Columns of the terminal; 0 = no terminal: nothing is cut.
};

/// What standard output and error are, by isatty, the environment and the window size.
Terminal standard_terminal();

enum class Colour { kNone, kGreen, kYellow, kRed, kBlue, kDim, kBold };

/// `text` in `colour`, if the terminal shows colours.
std::string paint(const Terminal& terminal, Colour colour, const std::string& text);

/// Rows of cells under headings, columns aligned. The last column is cut at the terminal's width.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string heading;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// As many cells as columns. `colour` is that of the cell `coloured`.
  void add(std::vector<std::string> cells, std::size_t coloured = 0, Colour colour = Colour::kNone);
  void print(const Terminal& terminal) const;
  [[nodiscard]] bool empty() const { return rows_.empty(); }

 private:
  struct Row {
    std::vector<std::string> cells;
    std::size_t coloured;
    Colour colour;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// Characters of UTF-8 text, counted as one column each.
std::size_t text_width(const std::string& text);
/// The first `width` characters; an ellipsis stands for what is cut.
std::string cut_text(const std::string& text, std::size_t width);
/// Line breaks and other control characters become spaces: one line, whatever it was.
std::string one_line(const std::string& text);

}  // namespace gpuq::cli
