#include "lower/pass/space_text.h"

#include <algorithm>
#include <sstream>

namespace strata::lower {

std::vector<SpaceDim> dims_named(const std::string& list) {
  std::vector<SpaceDim> out;
  std::istringstream words(list);
  for (std::string d; words >> d;) {
    const bool group = d.size() > 2 && d.ends_with("..");
    const size_t is = d.find('=');
    const int64_t fixed = is == std::string::npos ? 0 : std::stoll(d.substr(is + 1));
    out.push_back({group ? d.substr(0, d.size() - 2) : d.substr(0, is), group, fixed});
  }
  return out;
}

std::vector<SpacePattern> patterns_named(const std::string& list) {
  std::vector<SpacePattern> out;
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    SpacePattern p;
    const size_t open = word.find('['), close = word.find(']');
    p.name = word.substr(0, std::min(open, word.find(':')));
    if (open != std::string::npos) {
      std::string dims = word.substr(open + 1, close - open - 1);
      std::replace(dims.begin(), dims.end(), ',', ' ');
      p.dims = dims_named(dims);
    }
    out.push_back(std::move(p));
  }
  return out;
}

NestStore::Into into_of(const Expr& e) {
  if (e.kind != Expr::Call) return NestStore::None;
  for (NestStore::Into into : {NestStore::Put, NestStore::Add, NestStore::Mul, NestStore::Max, NestStore::Min})
    if (e.name == into_name(into) + std::string("_into")) return into;
  return NestStore::None;
}

NestStore::Into into_of(const KernelDesc& desc) {
  const std::vector<Statement> lines = parse_statements(desc.text, desc.name);
  return lines.empty() ? NestStore::None : into_of(*lines.back().value);
}

namespace {
bool places(const Expr& e, const std::string& operand) {
  return (e.kind == Expr::Index && e.name == operand) ||
         std::any_of(e.args.begin(), e.args.end(), [&](const auto& arg) { return places(*arg, operand); });
}
}  // namespace

bool is_placed(const KernelDesc& desc, const std::string& operand) {
  const std::vector<Statement> lines = parse_statements(desc.text, desc.name);
  return std::any_of(lines.begin(), lines.end(), [&](const Statement& s) { return places(*s.value, operand); });
}

}  // namespace strata::lower
