// What element takes which word of a stream, and why a draw is two numbers: Note [Random words].
#include "run/random.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/parallel.h"
#include "core/promote.h"
#include "dispatch/seen.h"
#include "run/copy.h"
#include "run/kernels.h"
#include "run/launch.h"
#include "run/loop/cast.h"
#include "run/loop/pointwise_loop.h"
#include "run/observe.h"
#include "strata/generated/by_hand/random.h"

namespace strata::eager {

namespace {

constexpr size_t kMaxNumbers = 4, kMaxEach = 2;

// Into all of `out`, which is contiguous and has the kernel's output dtype.
void draw_words(const DrawOp& op, const StrataKernelEntry& entry, const Tensor& out, TensorList each,
                const void* params, int64_t words, PhiloxState state) {
  const int64_t n = out.numel(), width = out.itemsize();
  const DType made = static_cast<DType>(entry.output_dtype[0]);  // float16 is drawn as float32
  const CastFn cast = made == out.dtype() ? nullptr : cast_fn(made, out.dtype());
  constexpr int64_t kChunk = 4096;
  parallel_for(0, n, 4 * kChunk, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t buffer[2 * kChunk];
    alignas(64) float wide[kChunk];
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t count = std::min(kChunk, end - i);
      philox_words(state, i * words, count * words, buffer);
      char* to = out.bytes() + i * width;
      char* ptr[2 + kMaxEach] = {cast ? reinterpret_cast<char*>(wide) : to, reinterpret_cast<char*>(buffer)};
      int64_t size[2 + kMaxEach] = {cast ? itemsize(made) : width, words * 4};
      for (size_t k = 0; k < each.size(); ++k) {
        size[2 + k] = each[k].itemsize();
        ptr[2 + k] = each[k].bytes() + i * size[2 + k];
      }
      raise_status(run_contiguous(entry.pointwise, ptr, size, 1, 1 + int(each.size()), params, count), op.kernel.name);
      if (cast) cast(ptr[0], itemsize(made), to, width, count);
    }
  });
}

}  // namespace

void generator_state(const Tensor& t, const Generator& generator) {
  const PhiloxState s = (generator.defined() ? generator : default_generator()).state();
  std::memcpy(t.bytes(), &s.seed, 8);
  std::memcpy(t.bytes() + 8, &s.offset, 8);
}

void set_generator_state(const Tensor& state, const Generator& generator) {
  const Tensor t = as_contiguous(state);
  PhiloxState s;
  std::memcpy(&s.seed, t.bytes(), 8);
  std::memcpy(&s.offset, t.bytes() + 8, 8);
  Generator(generator.defined() ? generator : default_generator()).set_state(s);
}

void check_generator(const Generator& generator, Device device) {
  STRATA_CHECK(generator.device().type == device.type, "Expected a '", device_type_name(device.type),
               "' device type for generator but found '", device_type_name(generator.device().type), "'");
}

Generator or_default(const Generator& generator, const Tensor& like) {
  const Device device = like.device();
  if (!generator.defined()) return default_generator(device);
  // In the place of a device the CPU's default generator is the device's own (core/generator_scope.h).
  if (!device.is_cpu() || !(generator == default_generator())) check_generator(generator, device);
  return generator;
}

void draw(const DrawOp& op, const Tensor& out, ArrayRef<DrawOperand> operands, ArrayRef<DrawNumber> numbers,
          const Generator& generator) {
  check_seen(op.kernel.name);
  if (out.numel() == 0) return;
  DType dtype = out.dtype();
  if (!(op.dtypes >> int(dtype) & 1)) {
    STRATA_CHECK_NOT_IMPLEMENTED(std::has_single_bit(op.dtypes), "\"",
                                 std::string_view(op.kernel.name).substr(std::string_view("draw_").size()),
                                 "\" not implemented for '", scalar_type_name(dtype), "'; expected a floating dtype");
    dtype = DType(std::countr_zero(op.dtypes));
  }
  if (shapes_alone(out)) return;
  Tensor each[kMaxEach];
  STRATA_INTERNAL(operands.size() <= kMaxEach, op.kernel.name, ": too many operands");
  for (size_t k = 0; k < operands.size(); ++k) {
    each[k] = new_tensor(out, out.sizes(), operands[k].dtype);
    copy_values(each[k], operands[k].tensor);
  }
  const bool direct = out.is_contiguous() && out.dtype() == dtype;
  const Tensor to = direct ? out : new_tensor(out, out.sizes(), dtype);
  const TensorList given(each, operands.size());
  if (has_elements_in_memory(out))
    draw_at(op, dtype, to, given, numbers, or_default(generator, out).reserve(out.numel() * words_each(op, dtype)));
  else
    LaunchObserver::current()->draw(op, dtype, to, given, numbers,
                                    generator.defined() ? or_default(generator, out) : generator);
  if (!direct) copy_values(out, to);
}

void draw_at(const DrawOp& op, DType dtype, const Tensor& out, TensorList operands, ArrayRef<DrawNumber> numbers,
             PhiloxState state) {
  alignas(16) char params[16 * kMaxNumbers];
  STRATA_INTERNAL(numbers.size() <= kMaxNumbers, op.kernel.name, ": too many numbers");
  for (size_t k = 0; k < numbers.size(); ++k)
    store_scalar(numbers[k].value, traits(numbers[k].dtype < 0 ? dtype : DType(numbers[k].dtype)).compute,
                 params + 16 * k);
  draw_words(op, kernel_for(op.kernel, dtype), out, operands, params, words_each(op, dtype), state);
}

}  // namespace strata::eager
