// Rules of tensors that are made of numbers alone, which give their sizes and dtype, and of those whose values nobody
// promises. That sizes are not negative is checked when memory is asked for. Default dtypes are PyTorch's.
#pragma once
#include <optional>

#include "core/memory_format.h"
#include "core/scalar.h"
#include "core/shape/prepared.h"

namespace strata::shape {

// Plain dims of the sizes `size`.
template <class S>
Output<S> full(ArrayRef<S> size, const std::optional<DType>& dtype) {
  return {size, dtype ? *dtype : default_dtype()};
}
// The dtype is that of a number.
template <class S>
Output<S> full_of(ArrayRef<S> size, const Scalar& value, const std::optional<DType>& dtype) {
  return {size, dtype ? *dtype : value.dtype()};
}
template <class S>
Output<S> new_full(const Geometry<S>& self, ArrayRef<S> size, const std::optional<DType>& dtype) {
  return {size, dtype ? *dtype : self.dtype};
}
// No dims. A half may round to infinity; in other dtypes the number must fit.
template <class S>
Output<S> scalar_tensor(const Scalar& value, const std::optional<DType>& dtype);
// Into self, from a tensor of one number.
template <class S>
Prepared<S> fill(const Geometry<S>& self, const Geometry<S>& value) {
  STRATA_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
               " dimensions.");
  return {self.sizes, self.dtype};
}

// Dims i and j.
template <class S>
Output<S> eye(const S& n, const S& m, const std::optional<DType>& dtype);

// Dim i: the numbers start + i * step on this side of end. Those of an int64 result are counted in integers.
template <class S>
Output<S> range(const Scalar& start, const Scalar& end, const Scalar& step, const std::optional<DType>& dtype);

// Dim i: `steps` numbers from start to end. `op` is the operator.
template <class S>
Output<S> spaced(const char* op, const Scalar& start, const Scalar& end, const S& steps,
                 const std::optional<DType>& dtype);

// ---- memory alone

template <class S>
struct Layout {
  ArrayRef<S> sizes;  // an argument's
  DType dtype;
  MemoryFormat format = MemoryFormat::Contiguous;  // Preserve: as the operator's first tensor
  bool strided = false;                            // by `strides` instead
  Sizes<S> strides = {};
};

template <class S>
Layout<S> empty(ArrayRef<S> size, const std::optional<DType>& dtype,
                std::optional<MemoryFormat> format = std::nullopt) {
  const MemoryFormat f = format ? *format : MemoryFormat::Contiguous;
  STRATA_CHECK(f != MemoryFormat::Preserve, "empty: unsupported memory format option Preserve");
  return {size, dtype ? *dtype : default_dtype(), f};
}
template <class S>
Layout<S> new_empty(const Geometry<S>& self, ArrayRef<S> size, const std::optional<DType>& dtype) {
  return {size, dtype ? *dtype : self.dtype};
}
template <class S>
Layout<S> empty_like(const Geometry<S>& self, const std::optional<DType>& dtype, std::optional<MemoryFormat> format) {
  return {self.sizes, dtype ? *dtype : self.dtype, format ? *format : MemoryFormat::Preserve};
}
template <class S>
Layout<S> empty_strided(ArrayRef<S> size, ArrayRef<S> stride, const std::optional<DType>& dtype);
template <class S>
Layout<S> new_empty_strided(const Geometry<S>& self, ArrayRef<S> size, ArrayRef<S> stride,
                            const std::optional<DType>& dtype) {
  return empty_strided<S>(size, stride, dtype ? *dtype : self.dtype);
}
// Without gaps, the dims in memory in the order `layout`, outermost first.
template <class S>
Layout<S> empty_permuted(ArrayRef<S> size, ArrayRef<int64_t> layout, const std::optional<DType>& dtype);

}  // namespace strata::shape
