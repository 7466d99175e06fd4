// Orthogonal polynomials by their recurrences, whose steps are as many as an element says; polygamma_.
#include <cmath>
#include <limits>

#include "core/math.h"
#include "core/parallel.h"
#include "core/promote.h"
#include "eager/copy.h"
#include "eager/pointwise.h"
#include "strata/generated/eager_special.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/special.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor polygamma_(const Tensor& self, int64_t n) {
  // Recorded, as its part is, which keeps its operand.
  const Tensor result = ops::polygamma(n, self.requires_grad() ? ops::clone(self) : self);
  check_result(self, result, "polygamma_");
  return ops::copy_(self, result);
}

// ---- orthogonal polynomials

namespace {

// 2 x p(n - 1) - p(n - 2) from 1 and a first degree.
double chebyshev(double x, double first, int64_t n) {
  double p = 1, q = first;
  for (int64_t k = 1; k < n && q == q; ++k) {
    const double r = 2 * x * q - p;
    p = q, q = r;
  }
  return n == 0 ? p : q;
}

double sign(int64_t n) { return n % 2 ? -1 : 1; }

// Above this degree the trigonometric forms serve for |x| < 1, where the recurrence would take n steps.
constexpr int64_t many_steps = 1 << 16;
bool by_angle(double x, int64_t n) { return n > many_steps && std::abs(x) < 1; }

double chebyshev_t(double x, int64_t n) {
  if (by_angle(x, n)) return math::cos(double(n) * math::acos(x));
  return std::abs(x) == 1 ? (x > 0 ? 1 : sign(n)) : chebyshev(x, x, n);
}
double chebyshev_u(double x, int64_t n) {
  if (by_angle(x, n)) return math::sin(double(n + 1) * math::acos(x)) / math::sin(math::acos(x));
  return std::abs(x) == 1 ? double(n + 1) * (x > 0 ? 1 : sign(n)) : chebyshev(x, 2 * x, n);
}
double chebyshev_v(double x, int64_t n) {
  if (by_angle(x, n)) return math::cos((double(n) + 0.5) * math::acos(x)) / math::cos(math::acos(x) / 2);
  return std::abs(x) == 1 ? (x > 0 ? 1 : double(2 * n + 1) * sign(n)) : chebyshev(x, 2 * x - 1, n);
}
double chebyshev_w(double x, int64_t n) {
  if (by_angle(x, n)) return math::sin((double(n) + 0.5) * math::acos(x)) / math::sin(math::acos(x) / 2);
  return std::abs(x) == 1 ? (x > 0 ? double(2 * n + 1) : sign(n)) : chebyshev(x, 2 * x + 1, n);
}

double hermite_h(double x, int64_t n) {
  double p = 1, q = 2 * x;
  for (int64_t k = 1; k < n; ++k) {
    const double r = 2 * x * q - 2 * double(k) * p;
    p = q, q = r;
  }
  return n == 0 ? p : q;
}
double hermite_he(double x, int64_t n) {
  double p = 1, q = x;
  for (int64_t k = 1; k < n; ++k) {
    const double r = x * q - double(k) * p;
    p = q, q = r;
  }
  return n == 0 ? p : q;
}
double laguerre_l(double x, int64_t n) {
  double p = 1, q = 1 - x;
  for (int64_t k = 1; k < n && q == q; ++k) {
    const double r = ((2 * double(k) + (1 - x)) * q - double(k) * p) / double(k + 1);
    p = q, q = r;
  }
  return n == 0 ? p : q;
}
double legendre_p(double x, int64_t n) {
  if (std::abs(x) == 1) return x > 0 ? 1 : sign(n);
  double p = 1, q = x;
  for (int64_t k = 1; k < n && q == q; ++k) {
    const double r = (double(2 * k + 1) * x * q - double(k) * p) / double(k + 1);
    p = q, q = r;
  }
  return n == 0 ? p : q;
}

using Polynomial = double (*)(double x, int64_t n);

// `limit`: degrees above it give NaN.
template <class T>
double value_at(Polynomial f, double x, T degree, int64_t limit) {
  if (degree != degree) return double(degree);
  const double whole = std::trunc(double(degree));
  if (whole < 0) return 0;
  if (whole > double(limit)) return std::numeric_limits<double>::quiet_NaN();
  return f(x, int64_t(whole));
}

template <class T>
void fill(Polynomial f, const Tensor& x, const Tensor& n, const Tensor& out, int64_t limit) {
  const T* xs = x.data<T>();
  const T* ns = n.data<T>();
  T* to = out.data<T>();
  parallel_for(0, out.numel(), 4096, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = T(value_at(f, double(xs[i]), ns[i], limit));
  });
}

struct Limits {
  int64_t f32, f64;
};
constexpr Limits any_degree{int64_t(1) << 53, int64_t(1) << 53};
constexpr Limits hermite{128, 512};             // larger ones overflow
constexpr Limits recurrence{1 << 20, 1 << 20};  // a step per degree

Tensor polynomial(const char* name, Polynomial f, const Tensor& x, const Tensor& n, Limits limits = any_degree) {
  const Tensor* in[] = {&x, &n};
  const DType t = compute_dtype(name, Promote::Float, 0, {in, 2}, {});
  STRATA_CHECK_NOT_IMPLEMENTED(t == DType::F32 || t == DType::F64, "\"", name, "\" not implemented for '",
                               scalar_type_name(t), "'; convert to float32 or float64");
  const DimVec sizes = broadcast_shapes(x.sizes(), n.sizes());
  Tensor out = new_tensor(x.is_meta() ? x : n, sizes, t);
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor xs = as_contiguous(ops::expand(as_dtype(x, t), sizes));
  const Tensor ns = as_contiguous(ops::expand(as_dtype(n, t), sizes));
  if (t == DType::F32)
    fill<float>(f, xs, ns, out, limits.f32);
  else
    fill<double>(f, xs, ns, out, limits.f64);
  return laid_out(out, {&x, &n});
}

template <Polynomial f>
double shifted(double x, int64_t n) {
  return f(2 * x - 1, n);
}

}  // namespace

Tensor special_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) {
  return polynomial("special_chebyshev_polynomial_t", chebyshev_t, x, n);
}
Tensor special_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) {
  return polynomial("special_chebyshev_polynomial_u", chebyshev_u, x, n);
}
Tensor special_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) {
  return polynomial("special_chebyshev_polynomial_v", chebyshev_v, x, n);
}
Tensor special_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) {
  return polynomial("special_chebyshev_polynomial_w", chebyshev_w, x, n);
}
Tensor special_shifted_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) {
  return polynomial("special_shifted_chebyshev_polynomial_t", shifted<chebyshev_t>, x, n);
}
Tensor special_shifted_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) {
  return polynomial("special_shifted_chebyshev_polynomial_u", shifted<chebyshev_u>, x, n);
}
Tensor special_shifted_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) {
  return polynomial("special_shifted_chebyshev_polynomial_v", shifted<chebyshev_v>, x, n);
}
Tensor special_shifted_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) {
  return polynomial("special_shifted_chebyshev_polynomial_w", shifted<chebyshev_w>, x, n);
}
Tensor special_hermite_polynomial_h(const Tensor& x, const Tensor& n) {
  return polynomial("special_hermite_polynomial_h", hermite_h, x, n, hermite);
}
Tensor special_hermite_polynomial_he(const Tensor& x, const Tensor& n) {
  return polynomial("special_hermite_polynomial_he", hermite_he, x, n, hermite);
}
Tensor special_laguerre_polynomial_l(const Tensor& x, const Tensor& n) {
  return polynomial("special_laguerre_polynomial_l", laguerre_l, x, n, recurrence);
}
Tensor special_legendre_polynomial_p(const Tensor& x, const Tensor& n) {
  return polynomial("special_legendre_polynomial_p", legendre_p, x, n, recurrence);
}

}  // namespace strata::eager
