#include "grad/formulas.h"

#include <algorithm>

#include "base/checked.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/scatter_view.h"
#include "strata/generated/ops/view.h"

namespace strata {

namespace {
template <class F>
Scalar combine(const Scalar& a, const Scalar& b, F f) {
  if (a.is_complex() || b.is_complex()) return Scalar(f(a.to_complex(), b.to_complex()));
  if (a.is_integral(true) && b.is_integral(true)) return Scalar(static_cast<long>(f(a.to_int(), b.to_int())));
  return Scalar(f(a.to_double(), b.to_double()));
}
}  // namespace

Scalar operator+(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x + y; });
}
Scalar operator-(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x - y; });
}
Scalar operator*(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x * y; });
}
Scalar operator/(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return Scalar(a.to_complex() / b.to_complex());
  return Scalar(a.to_double() / b.to_double());
}

namespace formulas {

Tensor no_second_derivative(const char* op, const char* arg) {
  throw_error(ErrorKind::NotImplemented,
              str_cat(op, ": the second derivative by ", arg, " is not implemented; use create_graph=False"));
}

Tensor unsqueeze_reduced(const Tensor& t, int64_t ndim, OptIntArrayRef dim, bool keepdim) {
  if (keepdim || ndim == 0) return t;
  if (!dim || dim->empty()) {
    DimVec ones(ndim, 1);
    return ops::reshape(t, ones);
  }
  DimVec dims;
  for (int64_t d : *dim) dims.push_back(wrap_dim(d, ndim));
  std::sort(dims.begin(), dims.end());
  Tensor r = t;
  for (int64_t d : dims) r = ops::unsqueeze(r, d);
  return r;
}

Tensor expand_reduced(const Tensor& grad, IntArrayRef sizes, OptIntArrayRef dim, bool keepdim) {
  return ops::expand(unsqueeze_reduced(grad, int64_t(sizes.size()), dim, keepdim), sizes);
}

int64_t reduced_numel(IntArrayRef sizes, OptIntArrayRef dim) {
  int64_t n = 1;
  if (!dim || dim->empty()) {
    for (int64_t s : sizes) n *= s;
    return n;
  }
  if (sizes.empty()) return 1;
  for (int64_t d : *dim) n *= sizes[wrap_dim(d, int64_t(sizes.size()))];
  return n;
}

Tensor zeros_like_sizes(const Tensor& grad, IntArrayRef sizes) {
  return ops::zeros(sizes, grad.dtype(), grad.device());
}

Tensor copy_src(const Tensor& grad, IntArrayRef sizes, DType dtype) {
  return to_copy_backward(ops::sum_to_size(grad, sizes), dtype, grad.device());
}

Tensor to_copy_backward(const Tensor& grad, DType dtype, Device) {
  Tensor g = grad.is_complex() && !is_complex(dtype) ? ops::real(grad) : grad;
  return ops::to(g, dtype);
}

Tensor as_strided_grad(const Tensor& grad, IntArrayRef base_size, IntArrayRef base_stride, int64_t base_offset,
                       IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset) {
  return ops::as_strided_backward(grad, base_size, base_stride, base_offset, size, stride,
                                  offset.value_or(base_offset));
}

// The inverse of as_strided_backward's scatter: reads a gradient of the base at the places of the view.
Tensor as_strided_gather(const Tensor& grad, IntArrayRef base_stride, int64_t base_offset, IntArrayRef size,
                         IntArrayRef stride, int64_t offset) {
  int64_t low = std::min(base_offset, offset);
  int64_t high = std::max(base_offset + strided_span(grad.sizes(), base_stride), offset + strided_span(size, stride));
  Tensor flat = ops::zeros(IntArrayRef(high - low), grad.dtype(), grad.device());
  ops::copy_(ops::as_strided(flat, grad.sizes(), base_stride, base_offset - low), grad);
  return ops::as_strided(flat, size, stride, offset - low);
}

}  // namespace formulas
}  // namespace strata
