// Complex functions as text over the real mathematics, in the language of math/*.expr. `real` and `complex` stand for
// either precision. Branch cuts and signs of zeros follow C99 for finite arguments.
#include "lower/math_library.h"

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
  real e = exp(real(z));
  real y = imag(z);
  return complex(e * cos(y), select(y == 0, y, e * sin(y)));
}
complex expm1(complex z) {
  real s = sin(0.5 * imag(z));
  real re = expm1(real(z)) * cos(imag(z)) - 2 * s * s;
  return complex(re, exp(real(z)) * sin(imag(z)));
}
complex log(complex z) { return complex(log_length(real(z), imag(z)), atan2(imag(z), real(z))); }
complex log2(complex z) { return log(z) * 1.4426950408889634; }
complex log10(complex z) { return log(z) * 0.4342944819032518; }
complex log1p(complex z) { return complex(log_length(real(z) + 1, imag(z)), atan2(imag(z), real(z) + 1)); }

// Quarter of the argument, so that |z| + |re| stays finite.
complex sqrt(complex z) {
  real x = 0.25 * real(z);
  real y = 0.25 * imag(z);
  real t = sqrt(0.5 * (abs(x) + length(x, y))) * 2;
  real u = select(t == 0, abs(imag(z)), 2 * abs(y) / t);
  real re = select(real(z) < 0, u, t);
  real im = select(real(z) < 0, t, u);
  return complex(select(isinf(imag(z)), inf, re), copysign(im, imag(z)));
}
complex rsqrt(complex z) { return 1 / sqrt(z); }
complex pow(complex a, complex b) {
  p = exp(b * log(a));
  zero = select(real(b) > 0, complex(0 * real(a), 0 * real(a)), complex(1 / abs(a), nan));
  r = select(a == 0, zero, p);
  return select(b == 0, complex(1 + 0 * abs(0 * real(b)), 0 * real(b)), r);
}

complex sinh(complex z) { return complex(sinh(real(z)) * cos(imag(z)), cosh(real(z)) * sin(imag(z))); }
complex cosh(complex z) { return complex(cosh(real(z)) * cos(imag(z)), sinh(real(z)) * sin(imag(z))); }
complex tanh(complex z) {
  real t = tan(imag(z));
  real s = sinh(real(z));
  real b = 1 + t * t;
  real r = sqrt(1 + s * s);
  real d = 1 + b * s * s;
  real far = 4 * sin(imag(z)) * cos(imag(z)) * exp(-2 * abs(real(z)));
  bool large = abs(real(z)) > 11;
  return complex(select(large, copysign(1, real(z)), b * r * s / d), select(large, far, t / d));
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

// Kahan's formulas.
complex asinh(complex z) {
  a = sqrt(complex(1 + imag(z), -real(z)));
  b = sqrt(complex(1 - imag(z), real(z)));
  real re = asinh(real(a) * imag(b) - real(b) * imag(a));
  return complex(re, atan2(imag(z), real(a) * real(b) - imag(a) * imag(b)));
}
complex asin(complex z) {
  w = asinh(complex(-imag(z), real(z)));
  return complex(imag(w), -real(w));
}
complex acos(complex z) {
  a = sqrt(complex(1 - real(z), -imag(z)));
  b = sqrt(complex(1 + real(z), imag(z)));
  return complex(2 * atan2(real(a), real(b)), asinh(real(b) * imag(a) - imag(b) * real(a)));
}
complex acosh(complex z) {
  a = sqrt(complex(real(z) - 1, imag(z)));
  b = sqrt(complex(real(z) + 1, imag(z)));
  return complex(asinh(real(b) * real(a) + imag(b) * imag(a)), 2 * atan2(imag(a), real(b)));
}
complex atanh(complex z) {
  real x = real(z);
  real y = imag(z);
  real re = 0.25 * log1p(4 * x / ((1 - x) * (1 - x) + y * y));
  return complex(re, 0.5 * atan2(2 * y, (1 - x) * (1 + x) - y * y));
}
complex atan(complex z) {
  w = atanh(complex(-imag(z), real(z)));
  return complex(imag(w), -real(w));
}
complex sigmoid(complex z) { return 1 / (1 + exp(-z)); }
)EXPR";

}  // namespace strata::lower
