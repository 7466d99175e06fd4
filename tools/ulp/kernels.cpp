// Compiles the shared mathematics text and wraps each function in a loop.
#include "kernels.h"

#include "shim.h"

namespace strata::mathtext {
namespace {
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
// clang-format off: a file uses only those before it
#include "../../src/lower/math/exp.expr"
#include "../../src/lower/math/log.expr"
#include "../../src/lower/math/trig.expr"
#include "../../src/lower/math/trig64.expr"
#include "../../src/lower/math/invtrig.expr"
#include "../../src/lower/math/hyperbolic.expr"
#include "../../src/lower/math/erf.expr"
#include "../../src/lower/math/normal.expr"
#include "../../src/lower/math/pow.expr"
#include "../../src/lower/math/gamma.expr"
#include "../../src/lower/math/special.expr"
#include "../../src/lower/math/bessel.expr"
#include "../../src/lower/math/oscillating.expr"
#include "../../src/lower/math/incomplete.expr"
#include "../../src/lower/math/root.expr"
#include "../../src/lower/math/remainder.expr"
// clang-format on
#pragma clang attribute pop
}  // namespace
}  // namespace strata::mathtext

namespace strata::ulp {
namespace {

// As the table's kernel adds it up.
double zeta(double s, double q) {
  double sum = mathtext::zeta_tail(s, q);
  for (int k = 7; k >= 0; --k) sum = mathtext::zeta_term(s, q, k) + sum;
  return sum;
}

template <class T, auto kernel>
void each(const T* x, T* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = kernel(x[i]);
}

template <class T, auto kernel>
void each2(const T* a, const T* b, T* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = kernel(a[i], b[i]);
}

#define ONE32(name) each<float, [](float x) { return mathtext::name(x); }>
#define ONE64(name) each<double, [](double x) { return mathtext::name(x); }>
#define TWO32(name) each2<float, [](float x, float y) { return mathtext::name(x, y); }>
#define TWO64(name) each2<double, [](double x, double y) { return mathtext::name(x, y); }>

// Where a result may be zero by subtraction the error is measured beside 1, or beside the amplitude.
double below_zero(double x) { return x < 0 ? 1 : 0; }
double amplitude(double x) {
  const double a = x < 0 ? -x : x;
  return a > 1 ? 0.8 / __builtin_sqrt(a) : 0.8;
}
// Below -2^34 the phase is lost, and the value is bounded only.
double airy_amplitude(double x) {
  return x > -1 ? 0 : x < -0x1p+34 ? 0x1p+60 : 0.56 / __builtin_sqrt(__builtin_sqrt(-x));
}

}  // namespace

std::vector<Function> functions() {
  return {
      {.name = "exp", .unary32 = ONE32(exp), .unary64 = ONE64(exp), .points = {-87.33, 88.72, -103.3, 0.6931}},
      {.name = "exp2", .unary32 = ONE32(exp2), .unary64 = ONE64(exp2), .points = {-126.0, 128.0, -149.0, 0.5}},
      {.name = "sigmoid", .unary32 = ONE32(sigmoid), .unary64 = ONE64(sigmoid), .points = {-87.33, 88.72, -103.3}},
      {.name = "expm1", .unary32 = ONE32(expm1), .unary64 = ONE64(expm1), .points = {-17.3, 0.3466, 88.72}},
      {.name = "tanh", .unary32 = ONE32(tanh), .unary64 = ONE64(tanh), .points = {0.3466, 9.01}},
      {.name = "log", .unary32 = ONE32(log), .unary64 = ONE64(log), .points = {1.0, 1.3333, 0.6667}},
      {.name = "log1p", .unary32 = ONE32(log1p), .unary64 = ONE64(log1p), .points = {-1.0, 0.3333, -0.3333}},
      {.name = "sin",
       .unary32 = ONE32(sin),
       .unary64 = ONE64(sin),
       .points = {48000.0, 0.7854, 1.6e6, 3.1415926, 1.5707963}},
      {.name = "cos",
       .unary32 = ONE32(cos),
       .unary64 = ONE64(cos),
       .points = {48000.0, 0.7854, 1.6e6, 3.1415926, 1.5707963}},
      {.name = "tan",
       .unary32 = ONE32(tan),
       .unary64 = ONE64(tan),
       .points = {48000.0, 0.7854, 1.6e6, 3.1415926, 1.5707963}},
      {.name = "asin", .unary32 = ONE32(asin), .unary64 = ONE64(asin), .points = {0.5, 1.0}},
      {.name = "acos", .unary32 = ONE32(acos), .unary64 = ONE64(acos), .points = {0.5, 1.0, -1.0}},
      {.name = "atan", .unary32 = ONE32(atan), .unary64 = ONE64(atan), .points = {1.0}},
      {.name = "sinh", .unary32 = ONE32(sinh), .unary64 = ONE64(sinh), .points = {1.0, 89.0, 709.8}},
      {.name = "cosh", .unary32 = ONE32(cosh), .unary64 = ONE64(cosh), .points = {89.0, 710.4}},
      {.name = "asinh", .unary32 = ONE32(asinh), .unary64 = ONE64(asinh), .points = {0.5, 1.0}},
      {.name = "acosh", .unary32 = ONE32(acosh), .unary64 = ONE64(acosh), .points = {1.0, 1.5}},
      {.name = "atanh", .unary32 = ONE32(atanh), .unary64 = ONE64(atanh), .points = {0.5, 1.0}},
      {.name = "log2", .unary32 = ONE32(log2), .unary64 = ONE64(log2), .points = {1.0, 0.6667, 1.3333}},
      {.name = "log10", .unary32 = ONE32(log10), .unary64 = ONE64(log10), .points = {1.0, 0.6667, 1.3333}},
      {.name = "atan2", .binary32 = TWO32(atan2), .binary64 = TWO64(atan2), .points = {1.0}},
      {.name = "erf", .unary32 = ONE32(erf), .unary64 = ONE64(erf), .points = {3.92}},
      {.name = "erfc", .unary32 = ONE32(erfc), .unary64 = ONE64(erfc), .points = {2.3, 9.2, 10.0, 26.5, 27.2, 0.1}},
      {.name = "erfinv", .unary32 = ONE32(erfinv), .unary64 = ONE64(erfinv), .points = {0.995, 1.0, -1.0, 0.0}},
      {.name = "normpdf", .unary32 = ONE32(normpdf), .unary64 = ONE64(normpdf), .points = {14.2, -14.2}},
      {.name = "normcdf", .unary32 = ONE32(normcdf), .unary64 = ONE64(normcdf), .points = {-12.9, -14.2, -3.75, -1.0}},
      {.name = "pow", .binary32 = TWO32(pow), .binary64 = TWO64(pow), .points = {1.0, 2.0, 88.0}},
      {.name = "lgamma",
       .unary32 = ONE32(lgamma),
       .unary64 = ONE64(lgamma),
       .points = {1.0, 2.0, 1.4616, 8.0},
       .floor64 = below_zero},
      {.name = "digamma",
       .unary32 = ONE32(digamma),
       .unary64 = ONE64(digamma),
       .points = {1.0, 2.0, 1.4616, 8.0},
       .floor64 = below_zero},
      {.name = "trigamma",
       .unary32 = ONE32(trigamma),
       .unary64 = ONE64(trigamma),
       .points = {1.0, 2.0, 1.4616, 8.0},
       .floor64 = below_zero},
      {.name = "tetragamma",
       .unary32 = ONE32(tetragamma),
       .unary64 = ONE64(tetragamma),
       .points = {1.0, 2.0, 1.4616, 8.0},
       .floor64 = below_zero},
      // In float32 these are the float64 text, rounded.
      {.name = "erfcx", .unary64 = ONE64(erfcx), .points = {-1.0, -0.25, 1.0, -26.6}, .limit64 = 3},
      {.name = "log_normcdf", .unary64 = ONE64(log_normcdf), .points = {-4.0, -1.5, 0.3, 38.0}, .limit64 = 4},
      {.name = "norminv", .unary64 = ONE64(norminv), .points = {0.25, 0.75, 0.5, 3.7e-6, 1.0}, .limit64 = 4},
      {.name = "bessel_i0", .unary64 = ONE64(bessel_i0), .points = {8.0, -8.0, 713.0}, .limit64 = 5},
      {.name = "bessel_i0e", .unary64 = ONE64(bessel_i0e), .points = {8.0, -8.0}, .limit64 = 5},
      {.name = "bessel_i1", .unary64 = ONE64(bessel_i1), .points = {8.0, -8.0, 713.0}, .limit64 = 5},
      {.name = "bessel_i1e", .unary64 = ONE64(bessel_i1e), .points = {8.0, -8.0}, .limit64 = 5},
      {.name = "bessel_k0", .unary64 = ONE64(bessel_k0), .points = {1.0, 2.0, 705.0}, .limit64 = 4},
      {.name = "bessel_k0e", .unary64 = ONE64(bessel_k0e), .points = {1.0, 2.0}, .limit64 = 4},
      {.name = "bessel_k1", .unary64 = ONE64(bessel_k1), .points = {1.0, 2.0, 705.0}, .limit64 = 4},
      {.name = "bessel_k1e", .unary64 = ONE64(bessel_k1e), .points = {1.0, 2.0}, .limit64 = 4},
      {.name = "bessel_j0",
       .unary64 = ONE64(bessel_j0),
       .points = {5.0, 2.4048, 3.8317, 0.8936, 2.1971},
       .floor64 = amplitude,
       .limit64 = 8},
      {.name = "bessel_j1",
       .unary64 = ONE64(bessel_j1),
       .points = {5.0, 2.4048, 3.8317, 0.8936, 2.1971},
       .floor64 = amplitude,
       .limit64 = 8},
      {.name = "bessel_y0",
       .unary64 = ONE64(bessel_y0),
       .points = {5.0, 2.4048, 3.8317, 0.8936, 2.1971},
       .floor64 = amplitude,
       .limit64 = 8},
      {.name = "bessel_y1",
       .unary64 = ONE64(bessel_y1),
       .points = {5.0, 2.4048, 3.8317, 0.8936, 2.1971},
       .floor64 = amplitude,
       .limit64 = 8},
      {.name = "airy_ai",
       .unary64 = ONE64(airy_ai),
       .points = {-4.0, -1.0, 1.2, -2.3381},
       .floor64 = airy_amplitude,
       .limit64 = 6},
      {.name = "spherical_bessel_j0", .unary64 = ONE64(spherical_bessel_j0), .points = {3.1415926}, .limit64 = 3},
      // Below zero the terms of either side cancel; only above is there a bound beside the result.
      {.name = "zeta",
       .binary64 = each2<double, [](double s, double q) { return zeta(s, __builtin_fabs(q)); }>,
       .points = {1.0, 2.0, 8.0},
       .limit64 = 8},
      {.name = "fmod", .binary32 = TWO32(fmod), .binary64 = TWO64(fmod), .points = {1.0, 3.0}},
      {.name = "rsqrt", .unary32 = ONE32(rsqrt), .unary64 = ONE64(rsqrt), .points = {1.0}},
  };
}

}  // namespace strata::ulp
