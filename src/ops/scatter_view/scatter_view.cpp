// Copies of a base in which the place of a view is replaced: the inverses and the derivatives of views.
#include <algorithm>

#include "base/checked.h"
#include "run/copy.h"
#include "run/view_rules.h"
#include "strata/generated/by_hand/scatter_view.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

// Writes src into the place of a view of a fresh tensor; shapes must agree.
void put(const char* name, const Tensor& place, const Tensor& src) {
  STRATA_CHECK(place.sizes() == src.sizes(), name,
               ": expected src to have a size equal to the slice of self. src size = ", src.sizes(),
               ", slice size = ", place.sizes());
  copy_values(place, src);
}

Tensor zeros_of(const Tensor& like, IntArrayRef sizes) {
  Tensor t = new_tensor(like, sizes);
  fill_values(t, Scalar(0));
  return t;
}

}  // namespace

Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset) {
  int64_t base = self.storage_offset(), offset = storage_offset.value_or(base);
  STRATA_CHECK(size.size() == stride.size(), "as_strided_scatter: mismatch in length of strides (", stride.size(),
               ") and shape (", size.size(), ")");
  STRATA_CHECK(offset >= 0, "as_strided_scatter: invalid storage offset ", offset);
  for (IntArrayRef numbers : {size, stride})
    for (int64_t v : numbers)
      STRATA_CHECK(v >= 0, "as_strided_scatter: expected sizes and strides of 0 or more, got ", numbers);
  const int64_t span = strided_span(size, stride);
  const int64_t reach = std::max(base + strided_span(self.sizes(), self.strides()),
                                 span > 0 ? checked_add(offset, span, "as_strided") : 0);
  STRATA_CHECK(checked_mul(reach, self.itemsize(), "as_strided_scatter") <= int64_t(self.storage()->bytes()),
               "as_strided_scatter: sizes ", size, ", strides ", stride, " and offset ", offset,
               " are out of bounds for storage of size ", self.storage()->bytes());
  Tensor flat = zeros_of(self, IntArrayRef(reach));
  Tensor r = flat.alias(self.sizes(), self.strides(), base);
  copy_values(r, self);
  put("as_strided_scatter", flat.alias(size, stride, offset), src);
  return r;
}

Tensor as_strided_backward(const Tensor& grad, IntArrayRef base_size, IntArrayRef base_stride, int64_t base_offset,
                           IntArrayRef size, IntArrayRef stride, int64_t offset) {
  STRATA_CHECK(base_size.size() == base_stride.size() && size.size() == stride.size() && grad.sizes() == size,
               "as_strided_backward: expected as many strides as sizes and a gradient of shape ", size, ", got ",
               base_size, ", ", base_stride, ", ", stride, " and shape ", grad.sizes());
  for (IntArrayRef numbers : {base_size, base_stride, size, stride})
    for (int64_t v : numbers)
      STRATA_CHECK(v >= 0, "as_strided_backward: expected sizes and strides of 0 or more, got ", numbers);
  STRATA_CHECK(base_offset >= 0 && offset >= 0, "as_strided_backward: expected offsets of 0 or more, got ", base_offset,
               " and ", offset);
  // Both geometries address one storage; the part of it that either reaches is rebuilt.
  int64_t low = std::min(base_offset, offset);
  int64_t high = std::max(checked_add(base_offset, strided_span(base_size, base_stride), "as_strided"),
                          checked_add(offset, strided_span(size, stride), "as_strided"));
  Tensor flat = zeros_of(grad, IntArrayRef(high - low));
  Tensor part = flat.alias(size, stride, offset - low);
  add_in_order(part, grad);
  return contiguous_copy(flat.alias(base_size, base_stride, base_offset - low));
}

}  // namespace strata::eager
