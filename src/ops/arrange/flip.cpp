// Reversals, rot90 and rolls: copies of what lies in another order, or in parts.
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

Tensor part(const Tensor& t, int64_t dim, int64_t first, int64_t count) {
  DimVec sizes(t.sizes());
  sizes[dim] = count;
  return t.alias(sizes, t.strides(), t.storage_offset() + first * t.strides()[dim]);
}

// Along each dim what is moved past the end comes in at the start: two parts. `by`: in [0, size), by dim.
void roll_parts(const Tensor& result, const Tensor& self, const DimVec& by, int64_t dim) {
  while (dim < self.dim() && by[dim] == 0) ++dim;
  if (dim == self.dim()) return copy_values(result, self);
  const int64_t stays = self.sizes()[dim] - by[dim];
  roll_parts(part(result, dim, by[dim], stays), part(self, dim, 0, stays), by, dim + 1);
  roll_parts(part(result, dim, 0, by[dim]), part(self, dim, stays, by[dim]), by, dim + 1);
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

void flip(const Tensor& result, const Tensor& self, IntArrayRef dims) {
  DimVec wrapped;
  for (int64_t d : dims)
    if (self.dim() > 0) wrapped.push_back(wrap_dim(d, self.dim()));  // a number's only dim, 0 or -1, is none
  copy_values(result, backwards(self, wrapped));
}

void roll(const Tensor& result, const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  if (self.numel() == 0) return;
  if (dims.empty()) {
    const DimVec sizes{self.numel()}, strides{1};
    const Tensor from = as_contiguous(self);
    return roll_parts(result.alias(sizes, strides, result.storage_offset()),
                      from.alias(sizes, strides, from.storage_offset()), {floor_mod(shifts[0], self.numel())}, 0);
  }
  DimVec by(size_t(self.dim()), 0);
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t d = wrap_dim(dims[k], self.dim()), n = self.sizes()[d];
    by[d] = (by[d] + floor_mod(shifts[k], n)) % n;
  }
  roll_parts(result, self, by, 0);
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
