// Derivatives of scans.
#include "grad/formulas.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/scan.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

Tensor reversed_sum(const Tensor& grad, int64_t dim) {
  if (grad.dim() == 0) return grad;
  return ops::flip(ops::cumsum(ops::flip(grad, IntArrayRef(dim)), dim, std::nullopt), IntArrayRef(dim));
}

namespace {
// t moved by one place towards the end of dim; the first place is left as `first`.
Tensor moved_by_one(const Tensor& t, int64_t dim, double first) {
  Tensor r = ops::roll(t, IntArrayRef(int64_t(1)), IntArrayRef(dim));
  return ops::index_fill(r, dim, ops::zeros(IntArrayRef(int64_t(1)), DType::I64, t.device()), Scalar(first));
}
// The recurrence from the end of dim: h[i] = term[i] + factor[i + 1] * h[i + 1].
Tensor scan_back(const Tensor& factor, const Tensor& term, int64_t dim) {
  IntArrayRef dims(dim);
  Tensor f = ops::roll(ops::flip(factor, dims), IntArrayRef(int64_t(1)), dims);
  return ops::flip(ops::linear_scan(f, ops::flip(term, dims), dim), dims);
}
}  // namespace

// d/dx[k] of sum over j of grad[j] * x[0] ... x[j] is (x[0] ... x[k-1]) * (grad[k] + x[k+1] * (grad[k+1] + ...)), which
// needs no division and holds for zeros.
Tensor cumprod_backward(const Tensor& grad, const Tensor& self, int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) return grad;
  Tensor x = ops::_conjugate(self);
  Tensor before = moved_by_one(ops::cumprod(x, dim, std::nullopt), dim, 1);
  return before * scan_back(x, grad, dim);
}

std::tuple<Tensor, Tensor> linear_scan_backward(const Tensor& grad, const Tensor& factor, const Tensor& result,
                                                int64_t dim) {
  if (grad.dim() == 0 || grad.numel() == 0) return {ops::zeros_like(grad), grad};
  Tensor h = scan_back(ops::_conjugate(factor), grad, dim);
  return {h * moved_by_one(ops::_conjugate(result), dim, 0), h};
}

// With r the result, the gradient of x[j] is the sum over i >= j of g[i] exp(x[j] - r[i]): the recurrence
// s[j] = g[j] + s[j + 1] exp(r[j] - r[j + 1]), times exp(x[j] - r[j]). No exponent is above 0.
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (grad.dim() == 0 || grad.numel() == 0) return grad;
  const DType wide = grad.is_complex() ? DType::C128 : DType::F64;
  if (grad.dtype() != wide) {  // r anew, since the rounded one would move the exponents
    Tensor x = ops::to(self, wide);
    return ops::to(logcumsumexp_backward(ops::to(grad, wide), x, ops::logcumsumexp(x, dim), dim), grad.dtype());
  }
  auto decay = [](const Tensor& from, const Tensor& to) {  // 1 between equal infinities
    Tensor both = ops::logical_and(ops::eq(from, to), ops::isinf(from));
    return ops::_conjugate(ops::exp(ops::where(both, Scalar(0), from - to)));
  };
  const int64_t n = result.size(dim);
  Tensor steps = decay(ops::narrow(result, dim, 0, n - 1), ops::narrow(result, dim, 1, n - 1));
  Tensor none = ops::zeros_like(ops::narrow(result, dim, 0, 1));
  return scan_back(ops::cat({none, steps}, dim), grad, dim) * decay(self, result);
}

}  // namespace strata::formulas
