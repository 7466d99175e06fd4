// Reductions that are more than one row kernel.
#include "strata/generated/ops/reduce.h"
#include "base/checked.h"
#include "core/promote.h"
#include "eager/copy.h"
#include "eager/rows.h"
#include "strata/generated/eager_close.h"
#include "strata/generated/eager_reduce.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/close.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/scatter.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor sum_to_size(const Tensor& self, IntArrayRef size) {
  if (size.empty()) return ops::sum(self, std::optional<DType>());  // integers become int64, as PyTorch's do here alone
  if (self.sizes() == size) return self;
  int64_t lead = self.dim() - int64_t(size.size());
  STRATA_CHECK(lead >= 0, "size {", size, "} is not expandable to size {", self.sizes(), "}.");
  DimVec dims;
  for (int64_t d = 0; d < lead; ++d) dims.push_back(d);
  for (int64_t d = lead; d < self.dim(); ++d) {
    if (size[d - lead] == self.sizes()[d]) continue;
    STRATA_CHECK(size[d - lead] == 1, "size {", size, "} is not expandable to size {", self.sizes(), "}.");
    dims.push_back(d);
  }
  Tensor r = ops::sum(self, OptIntArrayRef(IntArrayRef(dims)), true, std::nullopt);
  return lead > 0 ? ops::reshape(r, size) : r;
}

Tensor nanmean(const Tensor& self, OptIntArrayRef dim, bool keepdim, std::optional<DType> dtype) {
  STRATA_CHECK(is_differentiable(self.dtype()),
               "nanmean(): expected input to have floating point or complex dtype but got ",
               scalar_type_name(self.dtype()));
  Tensor count = ops::sum(ops::logical_not(ops::isnan(self)), dim, keepdim, std::nullopt);
  return ops::div(ops::nansum(self, dim, keepdim, dtype), count);
}

Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  Tensor x = is_differentiable(self.dtype()) ? self : as_dtype(self, default_dtype());
  DimVec dims = row_dims(x, dim);
  OptIntArrayRef all{IntArrayRef(dims)};
  for (int64_t d : dims)
    if (x.sizes()[d] == 0) return ops::log(ops::sum(x, all, keepdim, std::nullopt));
  if (x.is_complex()) {
    Tensor top = ops::amax(ops::real(x), dims, true);
    top = ops::where(ops::isfinite(top), top, ops::zeros_like(top));
    Tensor r = ops::log(ops::sum(ops::exp(ops::sub(x, top)), all, true, std::nullopt));
    r = ops::add(r, top);
    return keepdim || dims.empty() ? r : ops::squeeze(r, dims);
  }
  const Tensor* in[] = {&x};
  return rows(kernels::logsumexp_rows, {in, 1}, {}, dims, keepdim)[0];
}

Tensor value_selecting_reduction_backward(const Tensor& grad, int64_t dim, const Tensor& indices, IntArrayRef sizes,
                                          bool keepdim) {
  Tensor zeros = ops::new_zeros(grad, sizes);
  if (keepdim || sizes.empty()) return ops::scatter(zeros, dim, indices, grad);
  dim = wrap_dim(dim, int64_t(sizes.size()));
  return ops::scatter(zeros, dim, ops::unsqueeze(indices, dim), ops::unsqueeze(grad, dim));
}

// ---- whole tensors

bool equal(const Tensor& self, const Tensor& other) {
  STRATA_CHECK(self.device() == other.device(), "equal: Expected all tensors to be on the same device, but found ",
               self.device(), " and ", other.device());
  if (!(self.sizes() == other.sizes())) return false;
  return ops::item(ops::all(ops::eq(self, other))).to_bool();
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  STRATA_CHECK(self.dtype() == other.dtype(), scalar_type_name(self.dtype()), " did not match ",
               scalar_type_name(other.dtype()));
  STRATA_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  STRATA_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  Tensor close = ops::eq(self, other);
  if (equal_nan && is_differentiable(self.dtype()))
    close = ops::logical_or(close, ops::logical_and(ops::isnan(self), ops::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  bool exact = is_integral(self.dtype(), true);
  Tensor b = exact ? ops::to(other, default_dtype()) : other;
  Tensor allowed = ops::add(ops::abs(ops::mul(b, Scalar(rtol))), Scalar(atol));
  Tensor a = self.dtype() == DType::Bool ? ops::to(self, DType::I64) : self;
  Tensor error = ops::abs(ops::sub(a, b));
  return ops::logical_or(close, ops::logical_and(ops::isfinite(error), ops::le(error, allowed)));
}

bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return ops::item(ops::all(ops::isclose(self, other, rtol, atol, equal_nan))).to_bool();
}

}  // namespace strata::eager
