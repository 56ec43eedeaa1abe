#include "client/cli/terminal.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace gpuq::cli {

namespace {

const char* escape_code(Colour colour) {
  switch (colour) {
    case Colour::kGreen:
      return "\x1b[32m";
    case Colour::kYellow:
      return "\x1b[33m";
    case Colour::kRed:
      return "\x1b[31m";
    case Colour::kBlue:
      return "\x1b[34m";
    case Colour::kDim:
      return "\x1b[2m";
    case Colour::kBold:
      return "\x1b[1m";
    case Colour::kNone:
      break;
  }
  return "";
}

std::string padded(const std::string& cell, std::size_t width, Table::Align align) {
  const std::size_t have = text_width(cell);
  if (have >= width) return cell;
  const std::string spaces(width - have, ' ');
  return align == Table::Align::kRight ? spaces + cell : cell + spaces;
}

}  // namespace

Terminal standard_terminal() {
  Terminal terminal{std::cout, std::cerr};
  std::setlocale(LC_CTYPE, "");
  terminal.unicode = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  if (isatty(STDOUT_FILENO) == 0) return terminal;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  const bool dumb = kind != nullptr && std::strcmp(kind, "dumb") == 0;
  terminal.colour = (no_colour == nullptr || *no_colour == '\0') && !dumb;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  terminal.width = known ? size.ws_col : 80;
  return terminal;
}

std::string paint(const Terminal& terminal, Colour colour, const std::string& text) {
  if (!terminal.colour || colour == Colour::kNone) return text;
  return escape_code(colour) + text + "\x1b[0m";
}

std::size_t text_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string cut_text(const std::string& text, std::size_t width) {
  if (text_width(text) <= width || width == 0) return text;
  std::size_t seen = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const bool starts = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (starts && ++seen == width) break;
    ++at;
  }
  return text.substr(0, at) + "~";
}

std::string one_line(const std::string& text) {
  std::string line = text;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

void Table::add(std::vector<std::string> cells, std::size_t coloured, Colour colour) {
  for (auto& cell : cells) {
    cell = one_line(cell);
    if (cell.empty()) cell = "-";
  }
  rows_.push_back(Row{std::move(cells), coloured, colour});
}

void Table::print(const Terminal& terminal) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = text_width(columns_[c].heading);
    for (const auto& row : rows_) width = std::max(width, text_width(row.cells[c]));
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& cells, std::size_t coloured,
                        Colour colour) {
    std::string text;
    std::size_t used = 0;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool last = c + 1 == cells.size();
      std::string cell = cells[c];
      if (last && terminal.width > 0) {
        const auto columns = static_cast<std::size_t>(terminal.width);
        cell = cut_text(cell, std::max<std::size_t>(columns > used ? columns - used : 0, 8));
      }
      if (!last || columns_[c].align == Align::kRight) {
        cell = padded(cell, widths[c], columns_[c].align);
      }
      if (c == coloured) cell = paint(terminal, colour, cell);
      text += cell;
      if (!last) text += "  ";
      used += widths[c] + 2;
    }
    terminal.out << text << '\n';
  };
  std::vector<std::string> headings;
  for (const auto& column : columns_) headings.push_back(column.heading);
  line(headings, columns_.size(), Colour::kNone);
  for (const auto& row : rows_) line(row.cells, row.coloured, row.colour);
}

}  // namespace gpuq::cli
