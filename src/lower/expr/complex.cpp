// Arithmetic of complex values as pairs of nodes.
#include "lower/expr/build.h"

namespace strata::lower {

Value Builder::complex_binary(const std::string& op, const Value& a, const Value& b) {
  DType t = g.type(a.re);
  auto add = [&](int x, int y) { return g.bin(Op::Add, x, y); };
  auto sub = [&](int x, int y) { return g.bin(Op::Sub, x, y); };
  auto mul = [&](int x, int y) { return g.bin(Op::Mul, x, y); };
  if (op == "+") return pair(add(a.re, b.re), add(a.im, b.im));
  if (op == "-") return pair(sub(a.re, b.re), sub(a.im, b.im));
  if (op == "*") return pair(sub(mul(a.re, b.re), mul(a.im, b.im)), add(mul(a.re, b.im), mul(a.im, b.re)));
  if (op == "==" || op == "!=") {
    Op o = op == "==" ? Op::Eq : Op::Ne;
    return real(g.op(o == Op::Eq ? Op::And : Op::Or, DType::Bool, g.compare(o, a.re, b.re), g.compare(o, a.im, b.im)));
  }
  if (op != "/") fail(nullptr, "operator '" + op + "' takes no complex numbers");
  // Smith's division: the larger part of the divisor is factored out, so that nothing overflows on the way.
  int c = abs(b.re), d = abs(b.im), zero = g.real(t, 0);
  int re_larger = g.compare(Op::Ge, c, d);
  int large = g.select(re_larger, b.re, b.im), small = g.select(re_larger, b.im, b.re);
  int both_zero = g.op(Op::And, DType::Bool, g.compare(Op::Eq, c, zero), g.compare(Op::Eq, d, zero));
  int ratio = g.bin(Op::Div, small, large);
  int scale = g.bin(Op::Div, g.real(t, 1), add(large, mul(small, ratio)));
  int x = g.select(re_larger, a.re, a.im), y = g.select(re_larger, a.im, a.re);
  int im = sub(y, mul(x, ratio));
  int r = mul(add(x, mul(y, ratio)), scale);
  int i = mul(g.select(re_larger, im, g.op(Op::Neg, t, im)), scale);
  r = g.select(both_zero, g.bin(Op::Div, a.re, c), r);
  i = g.select(both_zero, g.bin(Op::Div, a.im, c), i);
  return pair(r, i);
}

}  // namespace strata::lower
