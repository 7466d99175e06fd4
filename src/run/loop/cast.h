// Conversion of strided runs of elements between dtypes (contract 3: float to integer saturates, NaN gives 0; complex
// to real drops the imaginary part; anything to bool is `!= 0`), and moves of one width.
#pragma once
#include <cstdint>

#include "core/scalar.h"

namespace strata::eager {

// n elements from src (stride in bytes) to dst (stride in bytes).
using CastFn = void (*)(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n);
CastFn cast_fn(DType from, DType to);
// Those from or to float16 and bfloat16, by printed kernels and through float32; what cast_fn gives for them.
constexpr bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }
CastFn half_cast_fn(DType from, DType to);
// Between others, with longer registers than the baseline's; or nothing.
CastFn wide_cast_fn(DType from, DType to);
// Elements with gaps, of a and b bytes: moved next to each other, converted by `fn`, which is for such, and moved
// apart.
void cast_apart(CastFn fn, int64_t a, int64_t b, const char* src, int64_t ss, char* dst, int64_t ds, int64_t n);
// The same dtype: keyed by element width (1, 2, 4, 8, 16 bytes).
CastFn move_fn(int64_t width);
// `rows` runs of `bytes` bytes each, without gaps inside, from and to places src_stride and dst_stride bytes apart.
void move_rows(int64_t bytes, const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows);
// Rows of n elements, each of which is read from its last element, at src, to its first.
void reverse_rows(int64_t width, int64_t n, const char* src, int64_t src_stride, char* dst, int64_t dst_stride,
                  int64_t rows);
// A scalar as element of dtype t, at dst.
void store_scalar(const Scalar& value, DType t, void* dst);

}  // namespace strata::eager
