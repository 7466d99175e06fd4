// repeat(value, going, x, x0, x1, y, y0, y1, ...): x, y ... begin as x0, y0 ... and become x1, y1 ... while `going`
// holds; then `value`. All but the starts may name them. A start that is a plain number is of the compute type.
#include "lower/expr/build.h"

#include <map>

namespace strata::lower {

Value Builder::carried_number(Op op, const Value& like, int carry, size_t first) {
  auto part = [&](size_t k, int of) {
    return g.add({op, g.type(of), {-1, -1, -1}, uint64_t(carry), uint8_t(first + k)});
  };
  return like.kind == Value::Complex ? pair(part(0, like.re), part(1, like.im)) : real(part(0, like.re));
}

Value Builder::carry_start(const Expr& e, const std::string& name, Carry& carry) {
  Value v = eval(e);
  if (v.kind == Value::Number) v = cast(v, number_type());
  carry.start.push_back(v.re);
  if (v.kind == Value::Complex) carry.start.push_back(v.im);
  carry.names.resize(carry.start.size(), name);
  return v;
}

void Builder::carry_next(const Expr& e, const Value& like, Carry& carry) {
  const Value v = cast(eval(e), type_of(like));
  carry.next.push_back(v.re);
  if (v.kind == Value::Complex) carry.next.push_back(v.im);
}

Value Builder::repeat(const Expr& e) {
  if (e.args.size() < 5 || e.args.size() % 3 != 2)
    fail(&e, "repeat takes a value, a condition, and for each name its start and what it becomes");
  const int number = int(g.carries.size());
  g.carries.emplace_back();
  Carry carry;
  std::vector<Value> starts;
  std::vector<size_t> first;
  for (size_t k = 2; k < e.args.size(); k += 3) {
    if (e.args[k]->kind != Expr::Name) fail(e.args[k].get(), "expected the name of a value that repeat carries");
    first.push_back(carry.start.size());
    starts.push_back(carry_start(*e.args[k + 1], e.args[k]->name, carry));
    if (type_of(starts.back()) == DType::Bool)
      fail(e.args[k + 1].get(), "repeat carries numbers; use where(condition, 1, 0)");
  }
  std::map<std::string, Value> outer = values_;
  auto bind = [&](Op op) {
    for (size_t k = 0; k < starts.size(); ++k)
      values_[e.args[2 + 3 * k]->name] = carried_number(op, starts[k], number, first[k]);
  };
  bind(Op::State);
  carry.going = condition(eval(*e.args[1]));
  for (size_t k = 0; k < starts.size(); ++k) carry_next(*e.args[4 + 3 * k], starts[k], carry);
  g.carries[size_t(number)] = carry;
  bind(Op::Carried);
  const Value result = eval(*e.args[0]);
  values_ = std::move(outer);
  return result;
}

}  // namespace strata::lower
