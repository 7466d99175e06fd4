#include "lower/print/helpers.h"

#include "lower/print/fill.h"

namespace strata::lower {
namespace {

// Signs are as good as random: what hangs on them takes no branch.
const ScalarHelper kHelpers[] = {
    {"div", "", R"C($E div_$E($E a, $E b, i32* status) {
  if (b == 0) return *status |= 1, 0;
  return ($E)(b < 1 && b + 1 == 0 ? ($E)(($U)0 - ($U)a) : a / b);
}
)C"},
    {"rem", "", R"C($E rem_$E($E a, $E b, i32* status) {
  if (b == 0) return *status |= 1, 0;
  return ($E)(b < 1 && b + 1 == 0 ? 0 : a % b);
}
)C"},
    {"floordiv", "div,rem", R"C($E floordiv_$E($E a, $E b, i32* status) {
  $E q = div_$E(a, b, status), r = b == 0 ? 0 : rem_$E(a, b, status);
  return ($E)(q - ($E)((r != 0) & ((r < 0) != (b < 0))));
}
)C"},
    {"mod", "rem", R"C($E mod_$E($E a, $E b, i32* status) {
  $E r = rem_$E(a, b, status);
  return ($E)(r + (b & ($E)-($E)((r != 0) & ((r < 0) != (b < 0)))));
}
)C"},
    {"pow", "", R"C($E pow_$E($E a, $E b) {
  if (b < 0) return ($E)(a == 1 ? 1 : ($E)(($U)a + 1u) == 0 ? (b & 1 ? a : 1) : 0);
  $U r = 1, x = ($U)a;
  for (; b; b >>= 1, x = ($U)(1u * x * x))
    if (b & 1) r = ($U)(1u * r * x);
  return ($E)r;
}
)C"},
    // Exact: long division of the mantissas, bit by bit.
    {"fmod", "", R"C($E fmod_$E($E a, $E b) {
  const $U top = ($U)1 << (8 * sizeof($U) - 1), one = ($U)1 << $P, inf = ~(one - 1) ^ top;
  $U xb = bits_$U(a) & ~top, yb = bits_$U(b) & ~top;
  if (xb >= inf || yb > inf || yb == 0) return (a * 0) / (b * 0);
  if (xb < yb) return a;
  int ex = (int)(xb >> $P), ey = (int)(yb >> $P);
  $U xm = xb & (one - 1), ym = yb & (one - 1);
  if (ex) xm |= one; else ex = 1;
  if (ey) ym |= one; else ey = 1;
  for (; xm < one; ex--) xm <<= 1;
  for (; ym < one; ey--) ym <<= 1;
  for (; ex > ey; ex--) xm = (xm >= ym ? xm - ym : xm) << 1;
  if (xm >= ym) xm -= ym;
  if (xm) {
    for (; xm < one; ex--) xm <<= 1;
    xm = ex > 0 ? (xm - one) | (($U)ex << $P) : xm >> (1 - ex);
  }
  return bits_$E(xm | (bits_$U(a) & top));
}
)C"},
};

}  // namespace

const ScalarHelper* scalar_helper(const std::string& name) {
  for (const ScalarHelper& h : kHelpers)
    if (name == h.name) return &h;
  return nullptr;
}

std::string scalar_helper_text(const ScalarHelper& helper, const std::string& e) {
  return fill(helper.text, {{"E", e}, {"U", "u" + e.substr(1)}, {"P", e == "f32" ? "23" : "52"}});
}

}  // namespace strata::lower
