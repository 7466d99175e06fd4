#include "lower/math/library.h"

#include <unordered_map>

namespace strata::lower {

const std::vector<Function>& math_functions(const std::string& name) {
  using Table = std::unordered_map<std::string, std::vector<Function>>;
  static const Table table = [] {
    Table t;
    auto add = [&](const char* name, const char* text) {
      for (Function& f : parse_functions(text, name)) t[f.name].push_back(std::move(f));
    };
    for (const MathText* m = math_texts(); m->name; ++m) add(m->name, m->text);
    add("complex functions", complex_text);
    return t;
  }();
  static const std::vector<Function> none;
  auto at = table.find(name);
  return at == table.end() ? none : at->second;
}

}  // namespace strata::lower
