// rot90, and flips of given dims.
#include "base/checked.h"
#include "eager/copy.h"
#include "eager/view_rules.h"
#include "strata/generated/eager_arrange.h"
#include "strata/generated/ops/arrange.h"

namespace strata::eager {

namespace {

// self with some dims walked backwards: for reading only.
Tensor backwards(const Tensor& self, const DimVec& dims) {
  DimVec strides(self.strides());
  int64_t offset = self.storage_offset();
  for (int64_t d : dims) {
    offset += std::max<int64_t>(self.sizes()[d] - 1, 0) * strides[d];
    strides[d] = -strides[d];
  }
  return self.alias(self.sizes(), strides, offset);
}

}  // namespace

Tensor fliplr(const Tensor& self) {
  STRATA_CHECK(self.dim() >= 2, "Input must be >= 2-d.");
  return ops::flip(self, IntArrayRef(int64_t(1)));
}

Tensor flipud(const Tensor& self) {
  STRATA_CHECK(self.dim() >= 1, "Input must be >= 1-d.");
  return ops::flip(self, IntArrayRef(int64_t(0)));
}

Tensor rot90(const Tensor& self, int64_t k, IntArrayRef dims) {
  STRATA_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  STRATA_CHECK(self.dim() >= 2, "expected total dims >= 2, but got total dims = ", self.dim());
  const auto apart = int64_t(uint64_t(dims[0]) - uint64_t(dims[1]));  // wraps for dims that are out of range anyway
  STRATA_CHECK(apart != 0 && apart != self.dim() && apart != -self.dim(),
               "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  int64_t a = wrap_dim(dims[0], self.dim()), b = wrap_dim(dims[1], self.dim());
  k = ((k % 4) + 4) % 4;
  Tensor from = self;
  if (k == 2) from = backwards(self, {a, b});
  if (k % 2) {
    from = backwards(self, {k == 1 ? b : a});
    DimVec sizes(from.sizes()), strides(from.strides());
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
    from = from.alias(sizes, strides, from.storage_offset());
  }
  Tensor out = new_tensor(self, from.sizes());
  if (!out.is_meta() && out.numel() > 0) copy_values(out, from);
  return out;
}

}  // namespace strata::eager
