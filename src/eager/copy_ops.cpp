// clone, copy_, fill_, conversions and item.
#include "core/promote.h"
#include "eager/cast.h"
#include "eager/copy.h"
#include "eager/pointwise.h"
#include "strata/generated/eager_copy.h"
#include "strata/generated/ops.h"

namespace strata::eager {

Tensor clone(const Tensor& self, std::optional<MemoryFormat> format) {
  Tensor t = ops::empty_like(self, std::nullopt, std::nullopt, format);
  copy_values(t, self);
  return t;
}

Tensor copy_(const Tensor& self, const Tensor& src, bool) {
  STRATA_CHECK(src.defined(), "copy_: argument src: expected a tensor, got None");
  if (self.is_same(src)) return self;
  DimVec shape = broadcast_shapes(self.sizes(), src.sizes());
  STRATA_CHECK(self.sizes() == IntArrayRef(shape), "output with shape ", self.sizes(), " doesn't match the broadcast shape ",
               shape);
  STRATA_CHECK(!overlaps_itself(self),
               "copy_: unsupported operation: more than one element of the written-to tensor refers to a single memory "
               "location. Please clone() the tensor before performing the operation.");
  if (self.storage().get() == src.storage().get() && overlap_between(self, src) != Overlap::None) {
    copy_values(self, contiguous_copy(src));
  } else {
    copy_values(self, src);
  }
  return self;
}

Tensor fill_(const Tensor& self, const Scalar& value) {
  STRATA_CHECK(!value.is_complex() || self.is_complex(), "fill_: value cannot be converted to type ", self.dtype(),
               " without overflow");
  fill_values(self, value);
  return self;
}

Tensor zero_(const Tensor& self) {
  fill_values(self, Scalar(0));
  return self;
}

Tensor to_dtype(const Tensor& self, DType dtype, bool non_blocking, bool copy, std::optional<MemoryFormat> format) {
  bool same_format = !format || *format == MemoryFormat::Preserve || self.is_contiguous(*format);
  if (self.dtype() == dtype && !copy && same_format) return self;
  return ops::_to_copy(self, dtype, std::nullopt, non_blocking, format);
}

Tensor to_copy(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device, bool,
               std::optional<MemoryFormat> format) {
  Tensor t = ops::empty_like(self, dtype, device, format);
  copy_values(t, self);
  return t;
}

Scalar item(const Tensor& self) {
  STRATA_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  STRATA_CHECK(!self.is_meta(), "item: Tensor.item() cannot be called on shape-only tensors");
  const char* p = self.bytes();
  if (self.dtype() == DType::Bool) return Scalar(*self.data<bool>());
  if (self.dtype() == DType::U64) return Scalar::from_u64(*self.data<uint64_t>());
  if (is_integral(self.dtype())) {
    int64_t v;
    cast_fn(self.dtype(), DType::I64)(p, 8, reinterpret_cast<char*>(&v), 8, 1);
    return Scalar(static_cast<long>(v));
  }
  if (self.is_complex()) {
    std::complex<double> v;
    cast_fn(self.dtype(), DType::C128)(p, 16, reinterpret_cast<char*>(&v), 16, 1);
    return Scalar(v);
  }
  double v;
  cast_fn(self.dtype(), DType::F64)(p, 8, reinterpret_cast<char*>(&v), 8, 1);
  return Scalar(v);
}

}  // namespace strata::eager
