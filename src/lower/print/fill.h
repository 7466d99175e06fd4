// C text with holes: fill("$T x = $a;", {{"T", "f32"}, {"a", "b"}}). A hole is $name or ${name}.
#pragma once
#include <cctype>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace strata::lower {

using Holes = std::map<std::string, std::string, std::less<>>;

inline std::string fill(std::string_view text, const Holes& holes) {
  std::string out;
  while (!text.empty()) {
    size_t at = text.find('$');
    out += text.substr(0, at);
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
    bool braces = text[0] == '{';
    if (braces) text.remove_prefix(1);
    size_t n = 0;
    while (n < text.size() && (std::isalnum(static_cast<unsigned char>(text[n])) || text[n] == '_')) ++n;
    auto found = holes.find(text.substr(0, n));
    STRATA_INTERNAL(found != holes.end(), "no text for the hole $", std::string(text.substr(0, n)));
    out += found->second;
    text.remove_prefix(n + braces);
  }
  return out;
}

}  // namespace strata::lower
