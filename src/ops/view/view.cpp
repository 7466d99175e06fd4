// Views over one storage. Bookkeeping of bases is not done here. More of them: view_dims.cpp, view_shape.cpp,
// split.cpp.
#include <algorithm>

#include "base/checked.h"
#include "run/copy.h"
#include "run/view_rules.h"
#include "strata/generated/by_hand/view.h"

namespace strata::eager {

Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset) {
  STRATA_CHECK(size.size() == stride.size(), "as_strided: mismatch in length of strides (", stride.size(),
               ") and shape (", size.size(), ")");
  int64_t at = offset.value_or(self.storage_offset());
  STRATA_CHECK(at >= 0, "as_strided: Tensor: invalid storage offset ", at);
  for (int64_t s : stride)
    STRATA_CHECK(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
  int64_t n = checked_numel(size, "as_strided");
  int64_t reach = n == 0 ? 0 : checked_add(at, strided_span(size, stride), "as_strided");
  STRATA_CHECK(checked_mul(reach, self.itemsize(), "as_strided") <= int64_t(self.storage()->bytes()),
               "setStorage: sizes ", size, ", strides ", stride, ", storage offset ", at, ", and itemsize ",
               self.itemsize(), " requiring a storage size of ", reach * self.itemsize(),
               " are out of bounds for storage of size ", self.storage()->bytes());
  return self.alias(size, stride, at);
}

Tensor detach(const Tensor& self) { return self.alias(); }

Tensor expand(const Tensor& self, IntArrayRef size, bool) {
  auto [sizes, strides] = expanded(self.sizes(), self.strides(), size);
  return self.alias(sizes, strides, self.storage_offset());
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim() + 1);
  DimVec sizes(self.sizes()), strides(self.strides());
  int64_t step = dim < self.dim() ? self.sizes()[dim] * self.strides()[dim] : 1;
  sizes.insert(dim, 1);
  strides.insert(dim, step);
  return self.alias(sizes, strides, self.storage_offset());
}

Tensor squeeze_dim(const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim());
  DimVec sizes(self.sizes()), strides(self.strides());
  if (self.dim() > 0 && sizes[dim] == 1) {
    sizes.erase(dim);
    strides.erase(dim);
  }
  return self.alias(sizes, strides, self.storage_offset());
}

}  // namespace strata::eager
