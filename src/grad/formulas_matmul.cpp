#include "grad/formulas.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

Tensor scaled_by(const Tensor& grad, const Scalar& factor) { return factor.equals(1) ? grad : grad * factor.conj(); }

namespace {
Tensor product(const Tensor& a, const Tensor& b) { return a.dim() == 3 ? ops::bmm(a, b) : ops::mm(a, b); }

bool column_major(IntArrayRef sizes, IntArrayRef strides) {
  size_t n = sizes.size();
  return strides[n - 2] == 1 && strides[n - 1] == sizes[n - 2] && sizes[n - 1] > 1;
}
Tensor turned(const Tensor& t) { return ops::transpose(t, -2, -1); }

// a @ b with columns next to each other in memory: the product of the transposed operands. Complex operands keep their
// places, since the imaginary part of x * y is rounded otherwise than that of y * x.
Tensor product_by_columns(const Tensor& a, const Tensor& b) {
  if (a.is_complex()) return turned(ops::contiguous(turned(product(a, b))));
  return turned(product(turned(b), turned(a)));
}
}  // namespace

Tensor mm_self_grad(const Tensor& grad, const Tensor& mat2, IntArrayRef sizes, IntArrayRef strides) {
  if (column_major(sizes, strides)) return product_by_columns(grad, turned(ops::_conjugate(mat2)));
  return product(grad, turned(ops::_conjugate(mat2)));
}

Tensor mm_mat2_grad(const Tensor& grad, const Tensor& self, IntArrayRef sizes, IntArrayRef strides) {
  if (column_major(sizes, strides)) return product_by_columns(turned(ops::_conjugate(self)), grad);
  return product(turned(ops::_conjugate(self)), grad);
}

namespace {
Tensor repeated(const Tensor& grad, const Tensor& batch) {
  return ops::expand(grad, {batch.sizes()[0], grad.sizes()[0], grad.sizes()[1]});
}
}  // namespace

Tensor addbmm_batch1_grad(const Tensor& grad, const Tensor& batch2) {
  return ops::bmm(repeated(grad, batch2), turned(ops::_conjugate(batch2)));
}

Tensor addbmm_batch2_grad(const Tensor& grad, const Tensor& batch1) {
  return ops::bmm(turned(ops::_conjugate(batch1)), repeated(grad, batch1));
}

Tensor outer_grad(const Tensor& grad, const Tensor& vec) {
  return ops::unsqueeze(grad, -1) * ops::unsqueeze(ops::_conjugate(vec), 0);
}

}  // namespace strata::formulas
