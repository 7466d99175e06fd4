// Derivatives of scans.
#include "eager/bind.h"
#include "grad/formulas.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/scan.h"
#include "strata/generated/ops/unary.h"

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
  Tensor x = ops::conj(self);
  Tensor before = moved_by_one(ops::cumprod(x, dim, std::nullopt), dim, 1);
  return before * scan_back(x, grad, dim);
}

std::tuple<Tensor, Tensor> linear_scan_backward(const Tensor& grad, const Tensor& factor, const Tensor& result,
                                                int64_t dim) {
  if (grad.dim() == 0 || grad.numel() == 0) return {ops::zeros_like(grad), grad};
  Tensor h = scan_back(ops::conj(factor), grad, dim);
  return {h * moved_by_one(ops::conj(result), dim, 0), h};
}

// Positive and negative parts of grad are summed as exponentials of logarithms, so that nothing overflows.
Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim) {
  if (grad.dim() == 0 || grad.numel() == 0) return grad;
  IntArrayRef dims(dim);
  if (grad.is_complex()) {
    Tensor logs = ops::log(ops::conj(grad)) - result;
    return ops::conj(ops::exp(ops::flip(ops::logcumsumexp(ops::flip(logs, dims), dim), dims) + self));
  }
  Tensor size = ops::log(ops::abs(grad));
  Scalar lowest(-eager::largest_of(grad.dtype()));  // finite, so that differences of it are numbers
  auto part = [&](const Tensor& wanted) {
    Tensor logs = ops::where(wanted, size, lowest) - result;
    return ops::exp(ops::flip(ops::logcumsumexp(ops::flip(logs, dims), dim), dims) + self);
  };
  return part(ops::gt(grad, Scalar(0))) - part(ops::lt(grad, Scalar(0)));
}

}  // namespace strata::formulas
