// Views: new headers over the same storage. Bookkeeping of bases is not done here.
#include <algorithm>

#include "base/checked.h"
#include "eager/copy.h"
#include "eager/view_rules.h"
#include "strata/generated/eager_reduce.h"
#include "strata/generated/eager_view.h"
#include "strata/generated/ops.h"

namespace strata::eager {

Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset) {
  STRATA_CHECK(size.size() == stride.size(), "as_strided: mismatch in length of strides (", stride.size(), ") and shape (",
               size.size(), ")");
  int64_t at = offset.value_or(self.storage_offset());
  STRATA_CHECK(at >= 0, "as_strided: Tensor: invalid storage offset ", at);
  for (int64_t s : stride)
    STRATA_CHECK(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
  int64_t n = checked_numel(size, "as_strided");
  int64_t reach = n == 0 ? 0 : checked_add(at, strided_span(size, stride), "as_strided");
  STRATA_CHECK(checked_mul(reach, self.itemsize(), "as_strided") <= int64_t(self.storage()->bytes()),
               "setStorage: sizes ", size, ", strides ", stride, ", storage offset ", at, ", and itemsize ", self.itemsize(),
               " requiring a storage size of ", reach * self.itemsize(), " are out of bounds for storage of size ",
               self.storage()->bytes());
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

Tensor view_sizes(const Tensor& self, IntArrayRef size) {
  DimVec sizes = inferred_sizes(size, self.numel());
  std::optional<DimVec> strides = view_strides(self.sizes(), self.strides(), sizes);
  STRATA_CHECK(strides, "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
                        "two contiguous subspaces). Use .reshape(...) instead.");
  return self.alias(sizes, *strides, self.storage_offset());
}

Tensor reshape(const Tensor& self, IntArrayRef shape) {
  DimVec sizes = inferred_sizes(shape, self.numel());
  if (view_strides(self.sizes(), self.strides(), sizes)) return ops::view(self, sizes);
  return ops::view(ops::clone(self, MemoryFormat::Contiguous), sizes);
}

Tensor real_view(const Tensor& self) {
  STRATA_CHECK(self.is_complex(), "real: expected a complex tensor, got ", self.dtype());
  DimVec strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  Tensor t(Ref<TensorImpl>(new TensorImpl(self.storage(), traits(self.dtype()).component,
                                          self.keys() - KeySet(Key::Autograd), self.device())));
  t.impl()->set_geometry(self.sizes(), strides, self.storage_offset() * 2);
  return t;
}

Tensor as_strided_backward(const Tensor& grad, IntArrayRef base_size, IntArrayRef base_stride, int64_t base_offset,
                           IntArrayRef size, IntArrayRef stride, int64_t offset) {
  // Both geometries address one storage; the part of it that either reaches is rebuilt.
  int64_t low = std::min(base_offset, offset);
  int64_t high = std::max(base_offset + strided_span(base_size, base_stride), offset + strided_span(size, stride));
  Tensor flat = new_tensor(grad, IntArrayRef(high - low));
  fill_values(flat, 0);
  Tensor part = flat.alias(size, stride, offset - low);
  if (!flat.is_meta()) add_in_order(part, grad);
  return contiguous_copy(flat.alias(base_size, base_stride, base_offset - low));
}

Tensor sum_to_size(const Tensor& self, IntArrayRef size) {
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

}  // namespace strata::eager
