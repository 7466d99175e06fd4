// Conversions of half floats: a printed kernel over contiguous runs, small buffers around it for strided ones.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "run/loop/cast.h"
#include "run/loop/pointwise_loop.h"
#include "run/pointwise.h"
#include "strata/generated/kernel_ops.h"

namespace strata::eager {

namespace {

constexpr int64_t kChunk = 256;  // elements of a buffer

template <DType from, DType to>
StrataPointwiseFn kernel() {
  const PointwiseOp& op = to == DType::F16    ? kernels::to_float16
                          : to == DType::BF16 ? kernels::to_bfloat16
                                              : kernels::to_float32;
  return kernel_for(op, from).pointwise;
}

void contiguous_run(StrataPointwiseFn fn, const char* src, int64_t from_size, char* dst, int64_t to_size, int64_t n) {
  const int64_t step[2] = {kBlock * to_size, kBlock * from_size}, whole = n / kBlock * kBlock, rest = n - whole;
  int32_t status = 0;
  if (whole) {
    char* ptr[2] = {dst, const_cast<char*>(src)};
    fn(ptr, step, nullptr, whole / kBlock, 0, &status);
  }
  if (rest && whole && (dst + n * to_size <= src || src + n * from_size <= dst)) {
    // A block that begins among the elements of the one before.
    char* ptr[2] = {dst + (n - kBlock) * to_size, const_cast<char*>(src) + (n - kBlock) * from_size};
    fn(ptr, step, nullptr, 1, 0, &status);
  } else if (rest) {
    alignas(64) char in[kBlock * 8] = {}, out[kBlock * 8];  // of float64, the widest
    std::memcpy(in, src + whole * from_size, rest * from_size);
    char* ptr[2] = {out, in};
    fn(ptr, step, nullptr, 1, 0, &status);
    std::memcpy(dst + whole * to_size, out, rest * to_size);
  }
}

// Between a half type and float32, and from float64.
template <DType from, DType to>
void direct(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n) {
  constexpr int64_t a = itemsize(from), b = itemsize(to);
  const StrataPointwiseFn fn = kernel<from, to>();
  if (ss == a && ds == b) return contiguous_run(fn, src, a, dst, b, n);
  alignas(64) char in[kChunk * a], out[kChunk * b];
  if (ss == 0) {
    contiguous_run(fn, src, a, out, b, 1);
    return move_fn(b)(out, 0, dst, ds, n);
  }
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t here = std::min(kChunk, n - i);
    const bool plain_in = ss == a, plain_out = ds == b;
    if (!plain_in) move_fn(a)(src + i * ss, ss, in, a, here);
    contiguous_run(fn, plain_in ? src + i * a : in, a, plain_out ? dst + i * b : out, b, here);
    if (!plain_out) move_fn(b)(out, b, dst + i * ds, ds, here);
  }
}

// Between a half type and any other.
template <DType from, DType to>
void through_float(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n) {
  alignas(64) char middle[kChunk * 4];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t here = std::min(kChunk, n - i);
    cast_fn(from, DType::F32)(src + i * ss, ss, middle, 4, here);
    cast_fn(DType::F32, to)(middle, 4, dst + i * ds, ds, here);
  }
}

template <DType from, DType to>
constexpr CastFn choose() {
  if constexpr (from == to || (!is_half(from) && !is_half(to)))
    return nullptr;
  else if constexpr (from == DType::F32 || from == DType::F64 || to == DType::F32)
    return direct<from, to>;
  else
    return through_float<from, to>;
}

template <DType from, size_t... to>
constexpr std::array<CastFn, kDTypeCount> row(std::index_sequence<to...>) {
  return {choose<from, DType(to)>()...};
}

template <size_t... from>
constexpr std::array<std::array<CastFn, kDTypeCount>, kDTypeCount> table(std::index_sequence<from...> all) {
  return {row<DType(from)>(all)...};
}

constexpr auto kTable = table(std::make_index_sequence<kDTypeCount>());

}  // namespace

CastFn half_cast_fn(DType from, DType to) { return kTable[size_t(from)][size_t(to)]; }

}  // namespace strata::eager
