// diag, diagonal, diag_embed, diagonal_scatter, trace.
#include "base/checked.h"
#include "core/shape/arithmetic.h"
#include "core/shape/arrange.h"
#include "run/copy.h"
#include "strata/generated/by_hand/arrange.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t a = wrap_dim(dim1, self.dim()), b = wrap_dim(dim2, self.dim());
  STRATA_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  DimVec sizes = shape::diagonal_sizes(DimVec(self.sizes()), offset, a, b), strides;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != a && d != b) strides.push_back(self.strides()[d]);
  strides.push_back(self.strides()[a] + self.strides()[b]);
  int64_t at = self.storage_offset();
  if (sizes.back() > 0) at += offset >= 0 ? offset * self.strides()[b] : -offset * self.strides()[a];
  return self.alias(sizes, strides, at);
}

Tensor diag(const Tensor& self, int64_t diagonal) {
  STRATA_CHECK(self.dim() == 1 || self.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ", self.dim(), "D");
  return self.dim() == 1 ? ops::diag_embed(self, diagonal, 0, 1) : ops::diagonal_copy(self, diagonal, 0, 1);
}

Tensor diagflat(const Tensor& self, int64_t offset) { return ops::diag(ops::reshape(self, {-1}), offset); }

}  // namespace strata::eager
