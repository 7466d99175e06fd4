// flip, roll, rot90: the same elements in another order.
#include "base/checked.h"
#include "eager/copy.h"
#include "eager/view_rules.h"
#include "strata/generated/eager_arrange.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/create.h"

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

DimVec distinct_dims(const Tensor& self, IntArrayRef dims) {
  DimVec wrapped;
  for (int64_t d : dims) {
    int64_t w = wrap_dim(d, self.dim());
    for (int64_t other : wrapped) STRATA_CHECK(other != w, "dim ", w, " appears multiple times in the list of dims");
    wrapped.push_back(w);
  }
  if (self.dim() == 0) wrapped.clear();
  return wrapped;
}

// A part of `t`: `length` places from `start` along dim.
Tensor part(const Tensor& t, int64_t dim, int64_t start, int64_t length) {
  DimVec sizes(t.sizes());
  sizes[dim] = length;
  return t.alias(sizes, t.strides(), t.storage_offset() + start * t.strides()[dim]);
}

Tensor roll_dim(const Tensor& self, int64_t shift, int64_t dim) {
  Tensor out = ops::empty_like(self);
  if (out.is_meta() || out.numel() == 0) return out;
  int64_t n = self.sizes()[dim], by = ((shift % n) + n) % n;
  copy_values(part(out, dim, by, n - by), part(self, dim, 0, n - by));
  copy_values(part(out, dim, 0, by), part(self, dim, n - by, by));
  return out;
}

}  // namespace

Tensor flip(const Tensor& self, IntArrayRef dims) {
  DimVec wrapped = distinct_dims(self, dims);
  Tensor out = ops::empty_like(self);
  if (!out.is_meta() && out.numel() > 0) copy_values(out, backwards(self, wrapped));
  return out;
}

Tensor fliplr(const Tensor& self) {
  STRATA_CHECK(self.dim() >= 2, "Input must be >= 2-d.");
  return ops::flip(self, IntArrayRef(int64_t(1)));
}

Tensor flipud(const Tensor& self) {
  STRATA_CHECK(self.dim() >= 1, "Input must be >= 1-d.");
  return ops::flip(self, IntArrayRef(int64_t(0)));
}

Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  STRATA_CHECK(!shifts.empty(), "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    Tensor flat = as_contiguous(self);
    Tensor out =
        roll_dim(flat.alias(IntArrayRef(flat.numel()), IntArrayRef(int64_t(1)), flat.storage_offset()), shifts[0], 0);
    return out.alias(self.sizes(), flat.strides(), 0);
  }
  STRATA_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
               ", dims:", dims.size());
  Tensor r = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    STRATA_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dims[i], " but tensor has no dimensions");
    r = roll_dim(r, shifts[i], wrap_dim(dims[i], self.dim()));
  }
  return r;
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
