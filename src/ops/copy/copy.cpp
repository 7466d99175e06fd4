// clone, copy_, conversions, resize_ and item.
#include "run/copy.h"
#include "core/promote.h"
#include "core/stream.h"
#include "run/loop/cast.h"
#include "run/pointwise.h"
#include "strata/generated/by_hand/copy.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

// ---- the CPU's schedule of copies

void clone(const Tensor& result, const Tensor& self, std::optional<MemoryFormat>) { copy_values(result, self); }

void to_copy(const Tensor& result, const Tensor& self, std::optional<DType>, std::optional<Device>, bool,
             std::optional<MemoryFormat>) {
  copy_values(result, self);
}

void copy_(const Tensor& self, const Tensor& src, bool) {
  if (self.is_same(src)) return;
  const bool shared = self.storage().get() == src.storage().get() && overlap_between(self, src) != Overlap::None;
  copy_values(self, shared ? contiguous_copy(src) : src);
}

Tensor resize_(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> format) {
  STRATA_CHECK(!self.requires_grad(), "cannot resize variables that require grad");
  STRATA_CHECK(!format || *format != MemoryFormat::Preserve, "Unsupported memory format Preserve");
  for (int64_t s : size) STRATA_CHECK(s >= 0, "resize_: expected sizes of 0 or more, got ", size);
  const DimVec strides = format ? strides_for(size, *format) : DimVec();  // which may refuse the format
  if (format || !(self.sizes() == size)) resize_tensor(self, size);       // expanded elements may need more memory, too
  if (format) self.impl()->set_geometry(size, strides, self.storage_offset());
  return self;
}

Tensor resize_as_(const Tensor& self, const Tensor& model, std::optional<MemoryFormat> format) {
  if (format && *format == MemoryFormat::Preserve) format = suggested_format(model);
  return resize_(self, model.sizes(), format);
}

Tensor to_any(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device, bool non_blocking,
              bool copy, std::optional<MemoryFormat> format) {
  bool same_format = !format || *format == MemoryFormat::Preserve || self.is_contiguous(*format);
  bool same = (!dtype || *dtype == self.dtype()) && (!device || is_at(self.device(), *device));
  if (same && same_format && !copy) return self;
  return ops::_to_copy(self, dtype, device, non_blocking, format);
}

Scalar item(const Tensor& self) {
  STRATA_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  const char* p = self.bytes();
  if (self.dtype() == DType::Bool) return Scalar(*reinterpret_cast<const uint8_t*>(p) != 0);
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

bool is_nonzero(const Tensor& self) {
  STRATA_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  STRATA_CHECK(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  return item(self).to_bool();
}

Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  STRATA_CHECK(self.dim() == 0 || dim < self.dim(), "narrow_copy: expected dim < ", self.dim(),
               ", the number of dims, got ", dim);
  return ops::clone(ops::narrow(self, dim, start, length), MemoryFormat::Contiguous);
}

}  // namespace strata::eager
