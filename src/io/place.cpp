#include "io/place.h"

#include "strata/generated/ops/copy.h"

namespace strata::io {

Ref<Storage> placed(const Source& source, const Place& place, Ref<Storage> storage, const std::string& location) {
  Device device;
  if (place) {
    device = place(storage, location);
  } else if (location != "cpu") {
    try {
      device = parse_device(location);
    } catch (const Error&) {
      source.refuse(str_cat("holds tensors saved on '", location,
                            "', a device that is not here; pass map_location='cpu' or load the plugin that offers it"));
    }
  }
  if (device.is_cpu()) return storage;
  int64_t bytes = int64_t(storage->bytes());
  Tensor all = make_tensor_over(std::move(storage), {bytes}, {1}, 0, DType::U8);
  return ops::_to_copy(all, std::nullopt, device).storage();
}

Tensor tensor_within(const Source& source, const Ref<Storage>& storage, IntArrayRef sizes, IntArrayRef strides,
                     int64_t offset, DType dtype) {
  bool fits = sizes.size() == strides.size() && sizes.size() <= size_t(TensorImpl::kMaxDims) && offset >= 0;
  bool empty = false;
  int64_t last = 0, numel = 1, end = 0;  // `last`: index of the last element
  for (size_t i = 0; fits && i < sizes.size(); ++i) {
    fits = sizes[i] >= 0 && strides[i] >= 0;
    empty |= sizes[i] == 0;
    int64_t step;
    // Sizes without their zeros must be countable too: other code multiplies them.
    fits = fits && !__builtin_mul_overflow(numel, std::max<int64_t>(sizes[i], 1), &numel) &&
           !__builtin_mul_overflow(std::max<int64_t>(sizes[i] - 1, 0), strides[i], &step) &&
           !__builtin_add_overflow(last, step, &last);
  }
  fits = fits && !__builtin_mul_overflow(numel, itemsize(dtype), &numel);
  fits = fits && !__builtin_add_overflow(offset, empty ? 0 : last, &end) &&
         !__builtin_add_overflow(end, empty ? 0 : 1, &end) && !__builtin_mul_overflow(end, itemsize(dtype), &end) &&
         uint64_t(end) <= storage->bytes();
  if (!fits)
    source.refuse(str_cat("is damaged: a tensor of sizes ", sizes, ", strides ", strides, " at offset ", offset,
                          " does not fit into ", storage->bytes(), " bytes of ", dtype));
  return make_tensor_over(storage, sizes, strides, offset, dtype);
}

}  // namespace strata::io
