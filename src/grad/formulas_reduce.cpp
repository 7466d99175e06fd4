#include "grad/formulas_reduce.h"

#include <algorithm>

#include "base/checked.h"
#include "grad/formulas.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

// ---- products

namespace {

// Products of all elements before each one along the last dim, or after it, by doubling: log n steps of which each has
// derivatives.
Tensor products_beside(const Tensor& x, bool before) {
  int64_t n = x.size(-1);
  DimVec one(x.sizes());
  one[x.dim() - 1] = 1;
  Tensor r = ops::ones(one, x.dtype(), x.device());
  if (n == 1) return r;
  r = before ? ops::cat({r, ops::narrow(x, -1, 0, n - 1)}, -1) : ops::cat({ops::narrow(x, -1, 1, n - 1), r}, -1);
  for (int64_t step = 1; step < n; step *= 2) {
    Tensor product = ops::narrow(r, -1, step, n - step) * ops::narrow(r, -1, 0, n - step);
    r = before ? ops::cat({ops::narrow(r, -1, 0, step), product}, -1)
               : ops::cat({product, ops::narrow(r, -1, n - step, step)}, -1);
  }
  return r;
}

bool has_zero(const Tensor& x) {
  if (x.is_meta()) return false;
  return ops::item(ops::any(ops::eq(x, Scalar(0)))).to_bool();
}

// Product of all the other elements along the last dim, zeros among them or not.
Tensor products_of_others(const Tensor& x) { return products_beside(x, true) * products_beside(x, false); }

}  // namespace

Tensor prod_back(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (self.dim() == 0) return grad;
  if (self.numel() == 0) return ops::zeros_like(self);
  // A second derivative through result / self would meet the zeros of the first one.
  if (!has_zero(self)) return grad * ops::_conjugate(result / self);
  return grad * ops::_conjugate(ops::reshape(products_of_others(ops::reshape(self, {-1})), self.sizes()));
}

Tensor prod_dim_back(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim, bool keepdim) {
  if (self.dim() == 0) return grad;
  if (self.numel() == 0) return ops::zeros_like(self);
  dim = wrap_dim(dim, self.dim());
  Tensor g = keepdim ? grad : ops::unsqueeze(grad, dim);
  Tensor r = keepdim ? result : ops::unsqueeze(result, dim);
  if (!has_zero(self)) return g * ops::_conjugate(r / self);
  Tensor last = ops::transpose(self, dim, -1);
  return g * ops::_conjugate(ops::transpose(products_of_others(last), dim, -1));
}

// ---- extrema

Tensor extremum_back(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dim, bool keepdim) {
  if (self.numel() == 0) return ops::zeros_like(self);
  OptIntArrayRef dims(dim);
  Tensor g = unsqueeze_reduced(grad, self.dim(), dims, keepdim);
  Tensor r = unsqueeze_reduced(result, self.dim(), dims, keepdim);
  Tensor same = ops::logical_or(ops::eq(self, r), ops::logical_and(ops::isnan(self), ops::isnan(r)));
  Tensor count = ops::sum(same, dims, true, std::nullopt);
  return ops::to(same, grad.dtype()) * (g / count);
}

Tensor aminmax_back(const Grads& grads, const Tensor& self, const Tensor& min, const Tensor& max,
                    std::optional<int64_t> dim, bool keepdim) {
  DimVec dims;
  if (dim) dims.push_back(*dim);
  Tensor r;
  if (grads[0].defined()) r = extremum_back(grads[0], self, min, dims, keepdim);
  if (!grads[1].defined()) return r;
  Tensor other = extremum_back(grads[1], self, max, dims, keepdim);
  return r.defined() ? r + other : other;
}

Tensor logsumexp_back(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dim, bool keepdim) {
  Tensor g = unsqueeze_reduced(grad, self.dim(), OptIntArrayRef(dim), keepdim);
  Tensor r = unsqueeze_reduced(result, self.dim(), OptIntArrayRef(dim), keepdim);
  // Rows of nothing but -inf would give NaN by inf - inf; their gradient is 0.
  Tensor finite = ops::where(ops::isinf(r), ops::zeros_like(r), r);
  return g * ops::_conjugate(ops::exp(self - finite));
}

// ---- variances

namespace {
double freedom(const Tensor& self, OptIntArrayRef dim, const std::optional<Scalar>& correction) {
  return std::max(0.0, double(reduced_numel(self.sizes(), dim)) - (correction ? correction->to_double() : 1.0));
}
}  // namespace

Tensor var_back(const Tensor& grad, const Tensor& self, OptIntArrayRef dim, const std::optional<Scalar>& correction,
                bool keepdim) {
  Tensor g = unsqueeze_reduced(grad, self.dim(), dim, keepdim);
  Tensor deviation = self - ops::mean(self, dim, true, std::nullopt);
  return (g * Scalar(2.0 / freedom(self, dim, correction))) * deviation;
}

Tensor std_back(const Tensor& grad, const Tensor& self, const Tensor& result, OptIntArrayRef dim,
                const std::optional<Scalar>& correction, bool keepdim) {
  Tensor g = grad / (result * Scalar(2));
  g = ops::where(ops::eq(result, Scalar(0)), ops::zeros_like(g), g);
  return var_back(g, self, dim, correction, keepdim);
}

namespace {
Tensor plus_mean_back(const Tensor& r, const Tensor& grad, const Tensor& self, OptIntArrayRef dim, bool keepdim) {
  if (!grad.defined()) return r;
  Tensor m = expand_reduced(grad, self.sizes(), dim, keepdim) / Scalar(long(reduced_numel(self.sizes(), dim)));
  return r.defined() ? r + m : m;
}
}  // namespace

Tensor var_mean_back(const Grads& grads, const Tensor& self, OptIntArrayRef dim,
                     const std::optional<Scalar>& correction, bool keepdim) {
  Tensor r = grads[0].defined() ? var_back(grads[0], self, dim, correction, keepdim) : Tensor();
  return plus_mean_back(r, grads[1], self, dim, keepdim);
}

Tensor std_mean_back(const Grads& grads, const Tensor& self, const Tensor& std, OptIntArrayRef dim,
                     const std::optional<Scalar>& correction, bool keepdim) {
  Tensor r = grads[0].defined() ? std_back(grads[0], self, std, dim, correction, keepdim) : Tensor();
  return plus_mean_back(r, grads[1], self, dim, keepdim);
}

}  // namespace strata::formulas
