#include "lower/pass/contraction.h"

namespace strata::lower {

Value sum_products(Builder& b, const Expr& e, uint64_t over) {
  if (e.args.size() != 2 || !over) b.fail(&e, "sum_products takes two values, of a text that is `over` some dims");
  const Value left = b.eval(*e.args[0]), right = b.eval(*e.args[1]);
  DType t = b.join(left, right);
  if (is_integral(t)) t = traits(t).kind == DKind::Unsigned ? DType::U64 : DType::I64;
  const Value x = b.cast(left, t), y = b.cast(right, t);
  Reduction how{Combine::Add, t};
  how.name = "sum";
  how.over = over;
  how.value = {x.re, x.im};
  how.factor = {y.re, y.im};
  const uint64_t r = uint64_t(b.g.reduce(how));
  auto part = [&](uint8_t k) { return b.g.add({Op::Reduced, b.g.type(x.re), {-1, -1, -1}, r, k}); };
  return is_complex(t) ? Builder::pair(part(0), part(1)) : Builder::real(part(0));
}

}  // namespace strata::lower
