// True values of the special functions in float128: power series near 0, asymptotic series far away, the trapezoidal
// rule on an integral between.
#include <limits>
#include <map>
#include <string>

#include "kernels.h"

extern "C" {
__float128 expq(__float128);
__float128 logq(__float128);
__float128 log1pq(__float128);
__float128 sinq(__float128);
__float128 cosq(__float128);
__float128 coshq(__float128);
__float128 erfq(__float128);
__float128 erfcq(__float128);
__float128 sqrtq(__float128);
__float128 powq(__float128, __float128);
__float128 j0q(__float128);
__float128 j1q(__float128);
__float128 y0q(__float128);
__float128 y1q(__float128);
}

namespace strata::ulp {
namespace {

using quad = __float128;
constexpr quad pi = 3.14159265358979323846264338327950288Q;
constexpr quad root_pi = 1.77245385090551602729816748334114518Q;
constexpr quad root_two = 1.41421356237309504880168872420969808Q;
constexpr quad euler = 0.57721566490153286060651209008240243Q;
constexpr quad infinity = std::numeric_limits<double>::infinity();
constexpr quad nan = std::numeric_limits<double>::quiet_NaN();

quad size(quad x) { return x < 0 ? -x : x + 0; }

// The sum of terms, each the one before times next(k), until they do not count or (in an asymptotic series) grow.
template <class Next>
quad sum(quad first, Next next) {
  quad total = first, term = first;
  for (int k = 1; k < 2000; ++k) {
    const quad t = term * next(quad(k));
    if (k > 4 && size(t) > size(term) && size(t) < size(total) * 1e-6Q) break;
    term = t;
    total += term;
    if (size(term) <= size(total) * 1e-36Q) break;
  }
  return total;
}

quad erfcx(quad x) {
  if (x != x) return x;
  if (x < -200) return infinity;
  if (x < 100) return expq(x * x) * erfcq(x);
  if (x > 1e30Q) return 1 / (x * root_pi);
  return sum(1, [x](quad k) { return -(2 * k - 1) / (2 * x * x); }) / (x * root_pi);
}

quad log_normcdf(quad x) {
  if (x > 0) return log1pq(-erfcq(x / root_two) / 2);
  if (x < -1e160Q) return x * x / -2;
  return logq(erfcx(-x / root_two) / 2) - x * x / 2;
}

quad norminv(quad p) {
  if (!(p >= 0 && p <= 1)) return nan;
  if (p == 0 || p == 1) return p == 0 ? -infinity : infinity;
  const quad d = p - 0.5Q;
  quad y = 0;
  if (size(d) <= 0.25Q) {
    for (int i = 0; i < 8; ++i) y -= (erfq(y / root_two) / 2 - d) * expq(y * y / 2) * root_two * root_pi;
    return y;
  }
  const quad l = logq(d < 0 ? p : 1 - p), r = sqrtq(-2 * l);
  y = r > 2 ? r - logq(r) / r - 0.919Q / r : 0.7Q;
  for (int i = 0; i < 8; ++i) {  // Newton's steps on log of the tail, whose slope is -sqrt(2 / pi) / erfcx
    const quad e = erfcx(y / root_two);
    y += (logq(e / 2) - y * y / 2 - l) * e * root_pi / root_two;
  }
  return d < 0 ? -y : y;
}

quad asymptotic(int n, quad x, int sign) {
  const quad m = 4 * n * n;
  return sum(1, [=](quad k) { return sign * (m - (2 * k - 1) * (2 * k - 1)) / (8 * x * k); });
}

quad bessel_i(int n, quad x, bool scaled) {
  const quad a = size(x);
  if (!(a < infinity)) return x != x ? x : (scaled ? quad(0) : a) * (n && x < 0 ? -1 : 1);
  if (a > 12000 && !scaled) return n && x < 0 ? -infinity : infinity;
  quad y = a < 60 ? sum(
                        n ? a / 2 : quad(1), [=](quad k) { return a * a / 4 / (k * (k + n)); }) *
                        (scaled ? expq(-a) : 1)
                  : asymptotic(n, a, -1) / sqrtq(2 * pi * a) * (scaled ? 1 : expq(a));
  return n && (x < 0 || (x == 0 && 1 / double(x) < 0)) ? -y : y;
}

// exp(x) K_n(x) as an integral, DLMF 10.32.9.
quad trapezoid(quad x, quad n) {
  constexpr quad step = 0.0625Q;
  quad total = 0.5Q;
  for (int k = 1;; ++k) {
    const quad t = expq(-x * (coshq(k * step) - 1)) * coshq(n * k * step);
    total += t;
    if (t < 1e-36Q) break;
  }
  return total * step;
}

quad bessel_k(int n, quad x, bool scaled) {
  if (!(x > 0)) return x == 0 ? infinity : nan;
  if (!(x < infinity)) return 0;
  if (x < 2) {  // DLMF 10.31
    quad term = n ? x / 4 : quad(1), harmonic = n ? 1 - 2 * euler : -euler, total = 0;
    for (int k = 0; k < 60; ++k) {
      total += term * harmonic;
      term *= x * x / 4 / (quad(k + 1) * (k + 1 + n));
      harmonic += n ? 1 / quad(k + 1) + 1 / quad(k + 2) : 1 / quad(k + 1);
    }
    const quad l = logq(x / 2) * bessel_i(n, x, false);
    return (n ? 1 / x + l - total : total - l) * (scaled ? expq(x) : 1);
  }
  if (x >= 60) return asymptotic(n, x, 1) * sqrtq(pi / (2 * x)) * (scaled ? 1 : expq(-x));
  return trapezoid(x, n) * (scaled ? 1 : expq(-x));
}

// DLMF 9.4 and 9.7.
quad airy_ai(quad x) {
  const quad a = size(x);
  if (x != x || a > 1e200Q) return x == x ? quad(0) : x;
  if (a <= 4 || (x < 0 && a <= 12)) {
    const quad c = x * x * x;
    const quad f = sum(1, [c](quad k) { return c / ((3 * k - 1) * 3 * k); });
    const quad g = sum(x, [c](quad k) { return c / (3 * k * (3 * k + 1)); });
    return 0.355028053887817239260063186004183177Q * f - 0.258819403792806798405183560189203963Q * g;
  }
  const quad z = 2 * a * sqrtq(a) / 3;
  if (x > 0 && x < 16) return sqrtq(x / 3) / pi * expq(-z) * trapezoid(z, 1 / 3.0Q);
  const auto ratio = [z](quad k) { return (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1) * z); };
  const quad scale = 1 / (root_pi * sqrtq(sqrtq(a)));
  if (x > 0) return z > 11000 ? 0 : sum(1, [&](quad k) { return -ratio(k); }) * scale / 2 * expq(-z);
  const quad even = sum(1, [&](quad k) { return -ratio(2 * k) * ratio(2 * k - 1); });
  const quad odd = sum(ratio(1), [&](quad k) { return -ratio(2 * k + 1) * ratio(2 * k); });
  return scale * (even * cosq(z - pi / 4) + odd * sinq(z - pi / 4));
}

quad oscillating(quad (*f)(quad), quad x, bool second) {
  if (!(size(x) < infinity)) return nan;
  if (second && !(x > 0)) return x == 0 ? -infinity : nan;
  return f(x);
}

// q >= 0.
quad zeta(quad s, quad q) {
  if (s != s || q != q) return nan;
  if (!(s > 1)) return s == 1 ? infinity : nan;
  if (q == 0) return infinity;
  quad total = 0;
  quad term = 1;
  while (q < 30 || (q < 30 + 2 * s && size(term) > size(total) * 1e-36Q)) {
    term = powq(q, -s);
    total += term;
    q += 1;
  }
  static const quad b[] = {1 / 6.0Q,  -1 / 30.0Q,     1 / 42.0Q, -1 / 30.0Q,
                           5 / 66.0Q, -691 / 2730.0Q, 7 / 6.0Q,  -3617 / 510.0Q};
  const quad last = powq(q, -s);
  if (last == 0 || q < 30 + 2 * s || !(q < infinity)) return total;
  quad tail = q / (s - 1) + 0.5Q, factor = s / q / 2;
  for (int j = 0; j < 8; ++j) {
    tail += b[j] * factor;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (q * q * (2 * j + 3) * (2 * j + 4));
  }
  return total + last * tail;
}

using Wide = quad (*)(quad);
const std::map<std::string, Wide> one = {
    {"erfcx", erfcx},
    {"log_normcdf", log_normcdf},
    {"norminv", norminv},
    {"airy_ai", airy_ai},
    {"bessel_i0", [](quad x) { return bessel_i(0, x, false); }},
    {"bessel_i0e", [](quad x) { return bessel_i(0, x, true); }},
    {"bessel_i1", [](quad x) { return bessel_i(1, x, false); }},
    {"bessel_i1e", [](quad x) { return bessel_i(1, x, true); }},
    {"bessel_k0", [](quad x) { return bessel_k(0, x, false); }},
    {"bessel_k0e", [](quad x) { return bessel_k(0, x, true); }},
    {"bessel_k1", [](quad x) { return bessel_k(1, x, false); }},
    {"bessel_k1e", [](quad x) { return bessel_k(1, x, true); }},
    {"bessel_j0", [](quad x) { return oscillating(j0q, x, false); }},
    {"bessel_j1", [](quad x) { return oscillating(j1q, x, false); }},
    {"bessel_y0", [](quad x) { return oscillating(y0q, x, true); }},
    {"bessel_y1", [](quad x) { return oscillating(y1q, x, true); }},
    {"spherical_bessel_j0",
     [](quad x) {
       return x == 0 ? quad(1) : size(x) < infinity ? sinq(x) / x : x == x ? quad(0) : x;
     }},
};

}  // namespace

bool fill_special(Function& f) {
  if (f.name == "zeta") {
    f.wide64_2 = [](quad s, quad q) { return zeta(s, size(q)); };
    return true;
  }
  const auto it = one.find(f.name);
  if (it != one.end()) f.wide64 = it->second;
  return it != one.end();
}

}  // namespace strata::ulp
