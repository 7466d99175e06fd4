#include "eager/random.h"

#include <algorithm>

#include "core/parallel.h"
#include "core/promote.h"
#include "eager/cast.h"
#include "eager/copy.h"
#include "eager/kernels.h"
#include "eager/pointwise_loop.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Generator or_default(const Generator& generator, const Tensor& like) {
  if (!generator.defined()) return default_generator(like.device());
  STRATA_CHECK(generator.device().type == like.device().type, "Expected a '", like.device(),
               "' device type for generator but found '", generator.device(), "'");
  return generator;
}

void DrawParams::add(const Scalar& value, DType dtype) {
  store_scalar(value, traits(dtype).compute, slots_ + 16 * count_++);
}

void draw(const char* name, DType dtype, const Tensor& out, int words, const DrawParams& params, PhiloxState state,
          const Tensor* each) {
  const StrataKernelEntry* entry = find_kernel(name, dtype);
  STRATA_INTERNAL(entry, name, ": no kernel for ", dtype);
  int64_t n = out.numel(), width = out.itemsize();
  const DType made = static_cast<DType>(entry->output_dtype[0]);  // float16 is drawn as float32
  const CastFn cast = made == out.dtype() ? nullptr : cast_fn(made, out.dtype());
  constexpr int64_t kChunk = 4096;
  parallel_for(0, n, 4 * kChunk, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t buffer[2 * kChunk];
    alignas(64) float wide[kChunk];
    for (int64_t i = begin; i < end; i += kChunk) {
      int64_t count = std::min(kChunk, end - i);
      philox_words(state, i * words, count * words, buffer);
      char* to = out.bytes() + i * width;
      char* ptr[3] = {cast ? reinterpret_cast<char*>(wide) : to, reinterpret_cast<char*>(buffer),
                      each ? each->bytes() + i * int64_t(sizeof(float)) : nullptr};
      const int64_t size[3] = {cast ? itemsize(made) : width, int64_t(words) * 4, 4};
      raise_status(run_contiguous(entry->pointwise, ptr, size, 1, each ? 2 : 1, params.data(), count), name);
      if (cast) cast(ptr[0], itemsize(made), to, width, count);
    }
  });
}

namespace {

// Calls fill(t) with `out` itself, or with a contiguous tensor of `dtype` that is copied to it.
template <class F>
void through(const Tensor& out, DType dtype, F fill) {
  if (out.is_contiguous() && out.dtype() == dtype) return fill(out);
  Tensor t = new_tensor(out, out.sizes(), dtype);
  fill(t);
  copy_values(out, t);
}

// Parts of a complex tensor as a real one.
Tensor real_parts(const Tensor& out) { return out.is_complex() ? ops::view_as_real(out) : out; }

void fill_floats(const char* op, const char* name, const Tensor& out, const Scalar& a, const Scalar* b,
                 const Generator& generator) {
  STRATA_CHECK_NOT_IMPLEMENTED(is_float(out.dtype()), "\"", op, "\" not implemented for '",
                               scalar_type_name(out.dtype()), "'; expected a floating dtype");
  if (out.is_meta() || out.numel() == 0) return;
  bool wide = out.dtype() == DType::F64;
  int words = wide ? 2 : 1;
  PhiloxState state = or_default(generator, out).reserve(out.numel() * words);
  DrawParams params;
  params.add(a, out.dtype());
  if (b) params.add(*b, out.dtype());
  through(out, out.dtype(), [&](const Tensor& t) { draw(name, t.dtype(), t, words, params, state); });
}

}  // namespace

void fill_uniform(const Tensor& out, double low, double high, const Generator& generator) {
  Scalar a(low), b(high);
  const char* name = "draw_uniform";
  if (out.dtype() == DType::F16) name = "draw_uniform_half";
  if (out.dtype() == DType::BF16) name = "draw_uniform_bfloat16";
  if (out.dtype() == DType::F64 || out.dtype() == DType::C128) name = "draw_uniform_double";
  fill_floats("uniform", name, real_parts(out), a, &b, generator);
}

void fill_normal(const Tensor& out, double mean, double std, const Generator& generator) {
  if (out.numel() == 0) return;  // of any dtype, as PyTorch has it
  // A complex normal number has its variance in both parts together.
  Scalar a(mean), b(out.is_complex() ? std * M_SQRT1_2 : std);
  bool wide = traits(out.dtype()).component == DType::F64;
  fill_floats("normal", wide ? "draw_normal_double" : "draw_normal", real_parts(out), a, &b, generator);
}

void fill_exponential(const Tensor& out, double rate, const Generator& generator) {
  if (out.numel() == 0) return;
  fill_floats("exponential", out.dtype() == DType::F64 ? "draw_exponential_double" : "draw_exponential", out,
              Scalar(rate), nullptr, generator);
}

void fill_cauchy(const Tensor& out, double median, double sigma, const Generator& generator) {
  Scalar b(sigma);
  fill_floats("cauchy", out.dtype() == DType::F64 ? "draw_cauchy_double" : "draw_cauchy", out, Scalar(median), &b,
              generator);
}

void fill_bernoulli(const Tensor& out, double p, const Generator& generator) {
  if (out.is_meta()) return;
  PhiloxState state = or_default(generator, out).reserve(out.numel());
  DrawParams params;
  params.add(Scalar(p), DType::F32);
  through(out, DType::Bool, [&](const Tensor& t) { draw("draw_bernoulli", DType::Bool, t, 1, params, state); });
}

void fill_bernoulli(const Tensor& out, const Tensor& p, const Generator& generator) {
  if (out.is_meta() || p.is_meta()) return;
  PhiloxState state = or_default(generator, out).reserve(out.numel());
  Tensor each = new_tensor(out, out.sizes(), DType::F32);
  copy_values(each, p);
  through(out, DType::Bool,
          [&](const Tensor& t) { draw("draw_bernoulli_each", DType::Bool, t, 1, DrawParams(), state, &each); });
}

void fill_integers(const Tensor& out, int64_t low, uint64_t span, const Generator& generator) {
  if (out.is_meta()) return;
  PhiloxState state = or_default(generator, out).reserve(out.numel() * 2);
  through(out, DType::I64, [&](const Tensor& t) {
    if (span == 0) {
      parallel_for(0, t.numel(), 16384, [&](int64_t b, int64_t e) {
        philox_words(state, 2 * b, 2 * (e - b), reinterpret_cast<uint32_t*>(t.data<int64_t>() + b));
      });
      return;
    }
    DrawParams params;
    params.add(Scalar(static_cast<long>(low)), DType::I64);
    params.add(Scalar::from_u64(span), DType::U64);
    draw(span >> 32 ? "draw_modulo" : "draw_below", DType::I64, t, 2, params, state);
  });
}

}  // namespace strata::eager
