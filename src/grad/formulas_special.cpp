#include "grad/formulas.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/special.h"
#include "strata/generated/ops/unary.h"

namespace strata::formulas {
namespace {

// result / self, and its limit 1/2 at 0; a number other than 0 stands for self there, so that no NaN reaches the
// second derivative.
Tensor ratio(const Tensor& self, const Tensor& result) {
  const Tensor zero = ops::eq(self, Scalar(0));
  const Tensor safe = ops::masked_fill(self, zero, Scalar(1));
  return ops::masked_fill(result / safe, zero, Scalar(0.5));
}

}  // namespace

Tensor i1_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  return grad * (ops::i0(self) - ratio(self, result));
}

Tensor i1e_backward(const Tensor& grad, const Tensor& self, const Tensor& result) {
  return grad * (ops::special_i0e(self) - ops::sgn(self) * result - ratio(self, result));
}

Tensor igamma_slope(const Tensor& self, const Tensor& other) {
  return ops::exp((self - Scalar(1)) * ops::log(other) - other - ops::lgamma(self));
}

}  // namespace strata::formulas
