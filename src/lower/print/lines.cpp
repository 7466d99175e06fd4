// Lines of the user's in a printed file, for debuggers and profilers. A line to be marked ends with a sign and what its
// #line says until the file is whole: where texts are measured or chosen by their lines, these are the same as without.
#include <algorithm>

#include "lower/print/print_c.h"

namespace strata::lower {
namespace {

constexpr char kSign = '\x01';

}  // namespace

std::string BodyPrinter::marked(std::string text, int origin) const {
  if (origin < 0 || size_t(origin) >= kernel_.lines.size() || kernel_.lines[size_t(origin)].empty()) return text;
  const std::string mark = kSign + kernel_.lines[size_t(origin)];
  std::string out;
  for (char c : text) {
    if (c == '\n') out += mark;
    out += c;
  }
  return out;
}

std::string with_lines(const std::string& text, const std::string& name) {
  std::string out;
  size_t number = 1;  // of the next line of `out`
  bool away = false;  // the last #line was to the user's
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t sign = line.find(kSign);
    if (sign != line.npos) {
      out += "#line " + line.substr(sign + 1) + "\n";
      ++number;
    } else if (away) {
      ++number;
      out += "#line " + std::to_string(number) + " \"" + name + "\"\n";
    }
    away = sign != line.npos;
    out += line.substr(0, sign) + "\n";
    ++number;
  }
  return out;
}

}  // namespace strata::lower
