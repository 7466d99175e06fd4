// rot90, and flips of given dims.
#include "base/checked.h"
#include "core/sym.h"
#include "run/copy.h"
#include "run/view_rules.h"
#include "strata/generated/by_hand/arrange.h"
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

void rot90(const Tensor& result, const Tensor& self, int64_t k, IntArrayRef dims) {
  const int64_t a = wrap_dim(dims[0], self.dim()), b = wrap_dim(dims[1], self.dim()), turns = floor_mod(k, 4);
  Tensor from = self;
  if (turns == 2) from = backwards(self, {a, b});
  if (turns % 2) {
    from = backwards(self, {turns == 1 ? b : a});
    DimVec strides(from.strides());
    std::swap(strides[a], strides[b]);
    from = from.alias(result.sizes(), strides, from.storage_offset());
  }
  copy_values(result, from);
}

}  // namespace strata::eager
