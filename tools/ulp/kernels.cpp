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
#include "../../src/lower/math/root.expr"
#include "../../src/lower/math/remainder.expr"
// clang-format on
#pragma clang attribute pop
}  // namespace
}  // namespace strata::mathtext

namespace strata::ulp {
namespace {

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
       .floor64 = 1,
       .limit64 = 8},
      {.name = "digamma",
       .unary32 = ONE32(digamma),
       .unary64 = ONE64(digamma),
       .points = {1.0, 2.0, 1.4616, 8.0},
       .floor64 = 32,
       .limit64 = 8},
      {.name = "trigamma",
       .unary32 = ONE32(trigamma),
       .unary64 = ONE64(trigamma),
       .points = {1.0, 2.0, 1.4616, 8.0},
       .floor64 = 1,
       .limit64 = 8},
      {.name = "tetragamma",
       .unary32 = ONE32(tetragamma),
       .unary64 = ONE64(tetragamma),
       .points = {1.0, 2.0, 1.4616, 8.0},
       .floor64 = 1,
       .limit64 = 8},
      {.name = "fmod", .binary32 = TWO32(fmod), .binary64 = TWO64(fmod), .points = {1.0, 3.0}},
      {.name = "rsqrt", .unary32 = ONE32(rsqrt), .unary64 = ONE64(rsqrt), .points = {1.0}},
  };
}

}  // namespace strata::ulp
