#include "lower/pass/carry_text.h"

#include <cctype>

namespace strata::lower {

bool carries_along(const KernelDesc& desc) {
  const std::string text = desc.text;
  for (const char* call : {"scan(", "recurrence("})
    for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1))
      if (at == 0 || !(std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '_')) return true;
  return false;
}

bool CarryTexts::value(Builder& b, const Expr& e, Value& out) {
  if (e.kind == Expr::Name) {
    for (size_t k = given_.size(); k-- > 0;)
      if (given_[k].name == e.name) {
        out = given_[k].value;
        return true;
      }
    return false;
  }
  if (e.kind != Expr::Call) return false;
  if (e.name == "recurrence")
    out = along(b, e, Carry::Recurrence);
  else if (e.name == "scan")
    out = along(b, e, Carry::Blocks);
  else
    return false;
  return true;
}

Value CarryTexts::along(Builder& b, const Expr& e, Carry::Kind kind) {
  const bool scans = kind == Carry::Blocks;
  const size_t names = scans ? 2 : 1;
  if (e.args.size() != 3 + names)
    b.fail(&e, scans ? "scan takes a dim, two names, their combination and an element"
                     : "recurrence takes a dim, a name, its start and what it becomes");
  for (size_t k = 0; k <= names; ++k)
    if (e.args[k]->kind != Expr::Name) b.fail(e.args[k].get(), "expected a name");
  const int number = int(b.g.carries.size());
  b.g.carries.emplace_back();
  Carry carry;
  carry.kind = kind;
  carry.range = range_of(*e.args[0]);
  const Value like = b.carry_start(*e.args[scans ? 4 : 2], e.args[1]->name, carry);
  const size_t outer = given_.size();
  for (size_t k = 0; k < names; ++k)
    given_.push_back({e.args[1 + k]->name, b.carried_number(Op::State, like, number, k * carry.start.size())});
  b.carry_next(*e.args[3], like, carry);
  given_.resize(outer);
  b.g.carries[size_t(number)] = carry;
  return b.carried_number(Op::Carried, like, number, 0);
}

}  // namespace strata::lower
