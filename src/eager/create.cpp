// Factories. Those that count are in create_range.cpp.
#include <algorithm>

#include "base/checked.h"
#include "core/default_device.h"
#include "core/promote.h"
#include "eager/cast.h"
#include "eager/copy.h"
#include "eager/pointwise.h"
#include "eager/visit.h"
#include "strata/generated/eager_create.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"

namespace strata::eager {

namespace {
DType or_default(std::optional<DType> t) { return t ? *t : default_dtype(); }
Device or_default(std::optional<Device> d) { return d ? *d : default_device(); }

}  // namespace

DimVec like_strides(const Tensor& self, std::optional<MemoryFormat> format) {
  MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  if (f != MemoryFormat::Preserve) return strides_for(self.sizes(), f);
  if (self.is_non_overlapping_and_dense()) return DimVec(self.strides());
  const Tensor* in[] = {&self};
  return result_strides(self.sizes(), {in, 1});
}

Tensor empty(IntArrayRef size, std::optional<DType> dtype, std::optional<Device> device,
             std::optional<MemoryFormat> format) {
  if (format && *format != MemoryFormat::Contiguous) {
    STRATA_CHECK(*format != MemoryFormat::Preserve, "empty: unsupported memory format option Preserve");
    checked_numel(size, "empty");
    return make_tensor_strided(size, strides_for(size, *format), or_default(dtype), or_default(device));
  }
  return make_tensor(size, or_default(dtype), or_default(device));
}

void empty_out(IntArrayRef size, std::optional<DType>, std::optional<Device>, std::optional<MemoryFormat> format,
               const Tensor& out) {
  STRATA_CHECK(!format, "empty: 'memory_format' argument is incompatible with 'out' tensor argument");
  STRATA_CHECK(out.defined(), "empty: argument out: expected a tensor, got None");
  resize_output(out, size, "empty");
}

namespace {
// A tensor like a shape-only one is shape-only, unless another device is asked for.
bool stays_meta(const Tensor& like, const std::optional<Device>& device) {
  return like.is_meta() && (!device || *device == like.device());
}
}  // namespace

namespace {
void check_strides(IntArrayRef size, IntArrayRef stride) {
  STRATA_CHECK(size.size() == stride.size(), "empty_strided: dimensionality of sizes (", size.size(),
               ") must match dimensionality of strides (", stride.size(), ")");
  for (int64_t s : stride) STRATA_CHECK(s >= 0, "empty_strided: expected strides of 0 or more, got ", stride);
}
}  // namespace

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<DType> dtype, std::optional<Device> device) {
  check_strides(size, stride);
  return make_tensor_strided(size, stride, or_default(dtype), or_default(device));
}

Tensor empty_permuted(IntArrayRef size, IntArrayRef layout, std::optional<DType> dtype, std::optional<Device> device) {
  const int64_t n = int64_t(size.size());
  STRATA_CHECK(n == int64_t(layout.size()),
               "empty_permuted: Number of dimensions in size does not match the length of the physical_layout; i.e. "
               "len(size) = ",
               n, " is not equal to len(physical_layout) = ", layout.size());
  checked_numel(size, "empty_permuted");
  DimVec strides(n, -1);
  int64_t step = 1;
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t d = layout[i];
    STRATA_CHECK(d >= 0 && d < n, "empty_permuted: Dimension out of range (expected to be between 0 and ", n - 1,
                 ", but got ", d, " at index ", i, ").  NB: negative dims not currently supported");
    STRATA_CHECK(strides[d] < 0, "empty_permuted: Duplicate dim not allowed: ", d, " in physical_layout ", layout);
    strides[d] = step;
    step = checked_mul(step, std::max<int64_t>(size[d], 1), "empty_permuted");
  }
  return make_tensor_strided(size, strides, or_default(dtype), or_default(device));
}

Tensor empty_like(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
                  std::optional<MemoryFormat> format) {
  return make_tensor_strided(self.sizes(), like_strides(self, format), dtype.value_or(self.dtype()),
                             device.value_or(self.device()), stays_meta(self, device));
}

Tensor full(IntArrayRef size, const Scalar& value, std::optional<DType> dtype, std::optional<Device> device) {
  DType type = dtype.value_or(value.dtype());
  check_fits(value, type);
  Tensor t = make_tensor(size, type, or_default(device));
  fill_values(t, value);
  return t;
}

Tensor zeros(IntArrayRef size, std::optional<DType> dtype, std::optional<Device> device) {
  return full(size, Scalar(0), or_default(dtype), device);
}

Tensor ones(IntArrayRef size, std::optional<DType> dtype, std::optional<Device> device) {
  return full(size, Scalar(1), or_default(dtype), device);
}

Tensor full_like(const Tensor& self, const Scalar& value, std::optional<DType> dtype, std::optional<Device> device,
                 std::optional<MemoryFormat> format) {
  Tensor t = ops::empty_like(self, dtype, device, format);
  ops::fill_(t, value);
  return t;
}

Tensor zeros_like(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
                  std::optional<MemoryFormat> format) {
  return full_like(self, Scalar(0), dtype, device, format);
}

Tensor ones_like(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
                 std::optional<MemoryFormat> format) {
  return full_like(self, Scalar(1), dtype, device, format);
}

// ---- like another tensor, of another shape

Tensor new_empty(const Tensor& self, IntArrayRef size, std::optional<DType> dtype, std::optional<Device> device) {
  return make_tensor(size, dtype.value_or(self.dtype()), device.value_or(self.device()), stays_meta(self, device));
}

Tensor new_empty_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<DType> dtype,
                         std::optional<Device> device) {
  check_strides(size, stride);
  return make_tensor_strided(size, stride, dtype.value_or(self.dtype()), device.value_or(self.device()),
                             stays_meta(self, device));
}

Tensor new_full(const Tensor& self, IntArrayRef size, const Scalar& value, std::optional<DType> dtype,
                std::optional<Device> device) {
  Tensor t = new_empty(self, size, dtype, device);
  fill_values(t, value);
  return t;
}

Tensor new_zeros(const Tensor& self, IntArrayRef size, std::optional<DType> dtype, std::optional<Device> device) {
  return new_full(self, size, Scalar(0), dtype, device);
}

Tensor new_ones(const Tensor& self, IntArrayRef size, std::optional<DType> dtype, std::optional<Device> device) {
  return new_full(self, size, Scalar(1), dtype, device);
}

Tensor scalar_tensor(const Scalar& s, std::optional<DType> dtype, std::optional<Device> device) {
  DType type = or_default(dtype);
  if (!is_half(type)) return full(IntArrayRef(), s, type, device);
  // A half rounds to infinity here, as PyTorch's does.
  check_fits(s, DType::F64);
  Tensor t = make_tensor(IntArrayRef(), type, or_default(device));
  if (!t.is_meta()) store_scalar(s, type, t.bytes());
  return t;
}

Tensor eye(int64_t n, int64_t m, std::optional<DType> dtype, std::optional<Device> device) {
  STRATA_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  STRATA_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  Tensor t = full({n, m}, Scalar(0), or_default(dtype), device);
  if (int64_t k = std::min(n, m)) fill_values(t.alias(IntArrayRef(k), IntArrayRef(m + 1), 0), Scalar(1));
  return t;
}

Tensor eye(int64_t n, std::optional<DType> dtype, std::optional<Device> device) { return eye(n, n, dtype, device); }

}  // namespace strata::eager
