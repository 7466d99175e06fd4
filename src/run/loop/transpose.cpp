#include "run/loop/transpose.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>

namespace strata::eager {

namespace {

// Rows of the result a multiple of that many bytes apart share a few sets of the cache: what is written to one drives
// out another's.
constexpr int64_t kSameSets = 512;

template <int width>
__m128i low(__m128i a, __m128i b) {
  if constexpr (width == 1) return _mm_unpacklo_epi8(a, b);
  if constexpr (width == 2) return _mm_unpacklo_epi16(a, b);
  if constexpr (width == 4) return _mm_unpacklo_epi32(a, b);
  return _mm_unpacklo_epi64(a, b);
}

template <int width>
__m128i high(__m128i a, __m128i b) {
  if constexpr (width == 1) return _mm_unpackhi_epi8(a, b);
  if constexpr (width == 2) return _mm_unpackhi_epi16(a, b);
  if constexpr (width == 4) return _mm_unpackhi_epi32(a, b);
  return _mm_unpackhi_epi64(a, b);
}

// Interleaving row i with row i + n / 2, as often as n halves, turns n rows of n elements over.
template <int width>
void square(const char* src, int64_t src_stride, char* dst, int64_t dst_stride) {
  constexpr int n = 16 / width;
  __m128i a[n], b[n];
  for (int i = 0; i < n; ++i) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i * src_stride));
  for (int round = 1; round < n; round *= 2) {
    for (int i = 0; i < n / 2; ++i) {
      b[2 * i] = low<width>(a[i], a[i + n / 2]);
      b[2 * i + 1] = high<width>(a[i], a[i + n / 2]);
    }
    for (int i = 0; i < n; ++i) a[i] = b[i];
  }
  for (int i = 0; i < n; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i * dst_stride), a[i]);
}

template <int width>
void plain(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(dst + c * dst_stride + r * width, src + r * src_stride + c * width, width);
}

template <int width>
void squares(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows, int64_t columns) {
  constexpr int64_t n = 16 / width;
  const int64_t whole = columns / n * n;
  int64_t r = 0;
  for (; r + n <= rows; r += n) {
    const char* from = src + r * src_stride;
    char* to = dst + r * width;
    for (int64_t c = 0; c < whole; c += n) square<width>(from + c * width, src_stride, to + c * dst_stride, dst_stride);
    plain<width>(from + whole * width, src_stride, to + whole * dst_stride, dst_stride, n, columns - whole);
  }
  plain<width>(src + r * src_stride, src_stride, dst + r * width, dst_stride, rows - r, columns);
}

}  // namespace

void transpose(int64_t width, const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
               int64_t columns) {
  auto* run = width == 1   ? squares<1>
              : width == 2 ? squares<2>
              : width == 4 ? squares<4>
              : width == 8 ? squares<8>
                           : plain<16>;
  if (dst_stride % kSameSets != 0 || columns <= 8)  // that many ways a set has
    return run(src, src_stride, dst, dst_stride, rows, columns);
  // Put together on the stack, and written a row at a time.
  constexpr int64_t kBytes = 16384;
  alignas(64) char square[kBytes];
  const int64_t side = width <= 4 ? 64 : 32;
  for (int64_t r = 0; r < rows; r += side)
    for (int64_t c = 0; c < columns; c += side) {
      const int64_t high = std::min(side, rows - r), wide = std::min(side, columns - c), row = high * width;
      run(src + r * src_stride + c * width, src_stride, square, row, high, wide);
      for (int64_t k = 0; k < wide; ++k)
        std::memcpy(dst + (c + k) * dst_stride + r * width, square + k * row, size_t(row));
    }
}

}  // namespace strata::eager
