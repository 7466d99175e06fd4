// The incomplete gamma functions: a factor from the mathematics text times a series or a continued fraction in float64.
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "core/promote.h"
#include "eager/copy.h"
#include "eager/pointwise.h"
#include "strata/generated/eager_special.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon() / 4;
constexpr double large = 1e6;  // from here on one expansion serves, and the loops would be long
constexpr int64_t most = 100000;

// P(a, x) / factor, DLMF 8.7.1: for x up to a.
double series(double a, double x) {
  double sum = 1, term = 1;
  for (int64_t k = 1; k < most && term > epsilon * sum; ++k) {
    term *= x / (a + double(k));
    sum += term;
  }
  return sum;
}

// Q(a, x) / (a factor), DLMF 8.9.2, its convergents by Lentz's method: for x from max(a, 1) on.
double fraction(double a, double x) {
  constexpr double tiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / tiny, d = 1 / b, h = d;
  for (int64_t i = 1; i < most; ++i) {
    const double n = -double(i) * (double(i) - a);
    b += 2;
    d = n * d + b;
    d = 1 / (std::abs(d) < tiny ? tiny : d);
    c = b + n / c;
    if (std::abs(c) < tiny) c = tiny;
    const double step = d * c;
    h *= step;
    if (std::abs(step - 1) <= 4 * epsilon) break;
  }
  return h;
}

// P, or Q where `upper`.
double incomplete(double a, double x, double factor, bool upper) {
  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x)))
    return std::numeric_limits<double>::quiet_NaN();
  if (a == 0 || std::isinf(x)) return upper ? 0 : 1;
  if (x == 0 || std::isinf(a)) return upper ? 1 : 0;
  if (x <= a || x <= 1) {
    const double p = factor * series(a, x);
    return upper ? 1 - p : p;
  }
  const double q = factor * a * fraction(a, x);
  return upper ? q : 1 - q;
}

Tensor regularised(const char* name, const Tensor& self, const Tensor& other, bool upper) {
  const Tensor* in[] = {&self, &other};
  const DType t = compute_dtype(name, Promote::Common, 0, {in, 2}, {});
  STRATA_CHECK_NOT_IMPLEMENTED(is_float(t), "\"", name, "\" not implemented for '", scalar_type_name(t),
                               "'; convert to a floating point dtype");
  const DimVec sizes = broadcast_shapes(self.sizes(), other.sizes());
  Tensor result = new_tensor(self.is_meta() ? self : other, sizes, t);
  if (result.is_meta() || result.numel() == 0) return result;
  Tensor out = new_tensor(result, sizes, DType::F64);
  const Tensor a = as_contiguous(ops::expand(as_dtype(self, DType::F64), sizes));
  const Tensor x = as_contiguous(ops::expand(as_dtype(other, DType::F64), sizes));
  const Tensor* both[] = {&a, &x};
  const Tensor factor = as_contiguous(pointwise(kernels::igamma_factor, {both, 2}, {}));
  const double *as = a.data<double>(), *xs = x.data<double>(), *factors = factor.data<double>();
  Tensor wide;
  for (int64_t i = 0; i < a.numel() && !wide.defined(); ++i)
    if (as[i] >= large) wide = as_contiguous(pointwise(kernels::igammac_large, {both, 2}, {}));
  const double* q = wide.defined() ? wide.data<double>() : nullptr;
  double* to = out.data<double>();
  parallel_for(0, out.numel(), 256, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (as[i] >= large && std::isfinite(as[i]) && xs[i] > 0 && std::isfinite(xs[i]))
        to[i] = upper ? q[i] : 1 - q[i];
      else
        to[i] = incomplete(as[i], xs[i], factors[i], upper);
    }
  });
  return laid_out(as_dtype(out, t), {&self, &other});
}

}  // namespace

Tensor igamma(const Tensor& self, const Tensor& other) { return regularised("igamma", self, other, false); }
Tensor igammac(const Tensor& self, const Tensor& other) { return regularised("igammac", self, other, true); }

}  // namespace strata::eager
