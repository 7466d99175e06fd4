// Derivatives of diagonals.
#include "grad/formulas.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

Tensor diagonal_backward(const Tensor& grad, IntArrayRef sizes, int64_t offset, int64_t dim1, int64_t dim2) {
  return ops::diagonal_scatter(zeros_like_sizes(grad, sizes), grad, offset, dim1, dim2);
}

Tensor trace_backward(const Tensor& grad, IntArrayRef sizes) {
  return diagonal_backward(ops::expand(grad, IntArrayRef(std::min(sizes[0], sizes[1]))), sizes, 0, 0, 1);
}

DimVec negated(IntArrayRef values) {
  DimVec r;
  for (int64_t v : values) r.push_back(-v);
  return r;
}

}  // namespace strata::formulas
