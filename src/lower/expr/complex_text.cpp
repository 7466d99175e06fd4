// Complex functions as text over the real mathematics, in the language of math/*.expr. `real` and `complex` stand for
// either precision. Branch cuts and signs of zeros follow C99 for finite arguments.
#include "lower/math/library.h"

namespace strata::lower {

const char* const complex_text = R"EXPR(
// sqrt(a^2 + b^2) without overflow on the way.
f32 length(f32 a, f32 b) {
  f32 r = f32(sqrt(f64(a) * f64(a) + f64(b) * f64(b)));
  return select(isinf(a) || isinf(b), inf, r);
}
f64 length(f64 a, f64 b) {
  f64 x = maximum(abs(a), abs(b));
  f64 s = select(x > 0x1p+500, 0x1p-600, select(x < 0x1p-450, 0x1p+600, 1));
  f64 u = select(x > 0x1p+500, 0x1p+600, select(x < 0x1p-450, 0x1p-600, 1));
  f64 r = sqrt((a * s) * (a * s) + (b * s) * (b * s)) * u;
  return select(isinf(a) || isinf(b), inf, r);
}
// log(sqrt(a^2 + b^2)); near the unit circle by log1p of (x - 1)(x + 1) + y^2.
real log_length(real a, real b) {
  real x = maximum(abs(a), abs(b));
  real y = minimum(abs(a), abs(b));
  bool near = x > 0.5 && x < 2;
  real d = fma(x - 1, x + 1, y * y);
  return select(near && d < 3, 0.5 * log1p(d), log(length(a, b)));
}

real abs(complex z) { return length(real(z), imag(z)); }
real angle(complex z) { return atan2(imag(z), real(z)); }
complex sgn(complex z) {
  s = complex(real(z) / abs(z), imag(z) / abs(z));
  return select(abs(z) == 0, 0, s);
}
complex sign(complex z) { return sgn(z); }
complex reciprocal(complex z) { return 1 / z; }
complex square(complex z) { return z * z; }

complex exp(complex z) {
  real x = real(z);
  real y = imag(z);
  bool endless = isinf(x) && !isfinite(y);
  real re = select(endless, exp(x), exp(x) * cos(y));
  real im = select(endless && x < 0, 0, exp(x) * sin(y));
  return complex(re, select(y == 0, y, im));
}
complex exp2(complex z) { return exp(complex(real(z) * 0.6931471805599453, imag(z) * 0.6931471805599453)); }
complex expm1(complex z) {
  real s = sin(0.5 * imag(z));
  real re = expm1(real(z)) * cos(imag(z)) - 2 * s * s;
  return complex(re, exp(real(z)) * sin(imag(z)));
}
complex log(complex z) { return complex(log_length(real(z), imag(z)), atan2(imag(z), real(z))); }
complex log2(complex z) {
  w = log(z);
  return complex(real(w) * 1.4426950408889634, imag(w) * 1.4426950408889634);
}
complex log10(complex z) {
  w = log(z);
  return complex(real(w) * 0.4342944819032518, imag(w) * 0.4342944819032518);
}
// As log_length(real(z) + 1, y), whose first part would round a small real(z) away.
complex log1p(complex z) {
  real r = real(z);
  real y = imag(z);
  real a = r + 1;
  real high = maximum(abs(a), abs(y));
  real low = minimum(abs(a), abs(y));
  real d = select(high == a, fma(r, r + 2, y * y), fma(high - 1, high + 1, low * low));
  return complex(select(high > 0.5 && high < 2 && d < 3, 0.5 * log1p(d), log(length(a, y))), atan2(y, a));
}

// Quarter of the argument, so that |z| + |re| stays finite.
complex sqrt(complex z) {
  real x = 0.25 * real(z);
  real y = 0.25 * imag(z);
  real t = sqrt(0.5 * (abs(x) + length(x, y))) * 2;
  real u = select(t == 0, abs(imag(z)), 2 * abs(y) / t);
  real re = select(real(z) < 0, u, t);
  real im = select(real(z) < 0, t, u);
  bool endless = isinf(imag(z));
  return complex(select(endless, inf, re), select(endless, imag(z), copysign(im, imag(z))));
}
complex rsqrt(complex z) { return 1 / sqrt(z); }
complex pow(complex a, complex b) {
  p = exp(b * log(a));
  zero = select(real(b) > 0, complex(0 * real(a), 0 * real(a)), complex(1 / abs(a), nan));
  r = select(a == 0, zero, p);
  return select(b == 0, complex(1 + 0 * abs(0 * real(b)), 0 * real(b)), r);
}

// A zero part keeps the product with an infinity or a NaN of the other part at zero.
complex sinh(complex z) {
  real x = real(z);
  real y = imag(z);
  real re = select(x == 0 && !isfinite(y), x, sinh(x) * cos(y));
  return complex(re, select(y == 0, y, cosh(x) * sin(y)));
}
complex cosh(complex z) {
  real x = real(z);
  real y = imag(z);
  real im = select(x == 0 && !isfinite(y), 0, sinh(x) * sin(y));
  return complex(cosh(x) * cos(y), select(y == 0, copysign(1, x) * y, im));
}
complex tanh(complex z) {
  real x = real(z);
  real y = imag(z);
  real t = tan(y);
  real s = sinh(x);
  real b = 1 + t * t;
  real d = 1 + b * s * s;
  real re = b * sqrt(1 + s * s) * s / d;
  real far = select(isfinite(y), 4 * sin(y) * cos(y) * exp(-2 * abs(x)), copysign(0, y));
  bool large = abs(x) > 11;
  return complex(select(large, copysign(1, x), select(x == 0, x, re)), select(y == 0, y, select(large, far, t / d)));
}
complex sin(complex z) {
  w = sinh(complex(-imag(z), real(z)));
  return complex(imag(w), -real(w));
}
complex cos(complex z) { return cosh(complex(-imag(z), real(z))); }
complex tan(complex z) {
  w = tanh(complex(-imag(z), real(z)));
  return complex(imag(w), -real(w));
}

// Kahan's formulas; an infinite part has the limit.
bool endless(complex z) { return isinf(real(z)) || isinf(imag(z)); }
complex asinh(complex z) {
  a = sqrt(complex(1 + imag(z), -real(z)));
  b = sqrt(complex(1 - imag(z), real(z)));
  real re = asinh(real(a) * imag(b) - real(b) * imag(a));
  w = complex(re, atan2(imag(z), real(a) * real(b) - imag(a) * imag(b)));
  return select(endless(z), complex(copysign(inf, real(z)), atan2(imag(z), abs(real(z)))), w);
}
complex asin(complex z) {
  w = asinh(complex(-imag(z), real(z)));
  return complex(imag(w), -real(w));
}
complex acos(complex z) {
  a = sqrt(complex(1 - real(z), -imag(z)));
  b = sqrt(complex(1 + real(z), imag(z)));
  w = complex(2 * atan2(real(a), real(b)), asinh(real(b) * imag(a) - imag(b) * real(a)));
  return select(endless(z), complex(atan2(abs(imag(z)), real(z)), -copysign(inf, imag(z))), w);
}
complex acosh(complex z) {
  a = sqrt(complex(real(z) - 1, imag(z)));
  b = sqrt(complex(real(z) + 1, imag(z)));
  w = complex(asinh(real(b) * real(a) + imag(b) * imag(a)), 2 * atan2(imag(a), real(b)));
  return select(endless(z), complex(inf, atan2(imag(z), real(z))), w);
}
complex atanh(complex z) {
  real x = real(z);
  real y = imag(z);
  real a = abs(x);
  // So near to a pole that the square of the distance is no number, the distance is y.
  bool pole = a == 1 && abs(y) < 1e-18;
  real re = select(pole, 0.34657359027997264 - 0.5 * log(abs(y)), 0.25 * log1p(4 * a / ((1 - a) * (1 - a) + y * y)));
  real im = 0.5 * atan2(2 * y, (1 - x) * (1 + x) - y * y);
  real l = length(x, y);
  bool far = l > 1e17;
  real far_re = select(isinf(l), 0, a / l / l);
  return complex(copysign(select(far, far_re, re), x), select(far, copysign(0.5 * pi, y), im));
}
complex atan(complex z) {
  w = atanh(complex(-imag(z), real(z)));
  return complex(imag(w), -real(w));
}
complex sigmoid(complex z) { return 1 / (1 + exp(-z)); }

// log(exp(a) + exp(b)): the number of larger real part and what the other one adds to it.
real logaddexp(real a, real b) { return select(a == b, a + 0.6931471805599453, maximum(a, b) + log1p(exp(-abs(a - b)))); }
complex logaddexp(complex a, complex b) {
  bool first = real(a) >= real(b) || isnan(a);
  high = select(first, a, b);
  low = select(first, b, a);
  bool endless = isinf(real(high)) && real(high) == real(low);
  r = select(endless, log(exp(low) + exp(high)), high + log1p(exp(low - high)));
  return select(endless && real(high) < 0, low, r);
}
)EXPR";

}  // namespace strata::lower
