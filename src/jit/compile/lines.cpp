#include "jit/compile/lines.h"

#include <algorithm>

namespace strata::jit {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// `12 "model.py"` of "model.py:12 in forward < train.py:40 in step"; nothing where there is no line.
std::string line_of(const std::string& span) {
  for (size_t at = 0; (at = span.find(" in ", at)) != span.npos; ++at) {
    size_t digits = at;
    while (digits > 0 && is_digit(span[digits - 1])) --digits;
    if (digits == at || digits < 2 || span[digits - 1] != ':') continue;
    std::string out = span.substr(digits, at - digits) + " \"";
    for (char c : span.substr(0, digits - 1)) {
      if (static_cast<unsigned char>(c) < ' ') return "";
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + "\"";
  }
  return "";
}

}  // namespace

std::vector<std::string> source_lines(const LaunchList& list, const Group& group) {
  std::vector<std::string> lines;
  for (int i : group.launches) {
    const Launch& l = list.launches[size_t(i)];
    lines.resize(std::max(lines.size(), size_t(i) + 1));
    if (l.node) lines[size_t(i)] = line_of(l.node->span);
  }
  return lines;
}

}  // namespace strata::jit
