#include "run/loop/transpose.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "run/isa.h"

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

// Interleaving row i with row i + n / 2, as often as n halves, turns n rows of n elements over. As many rows are
// read and written as there are.
template <int width>
void square(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int from = 16 / width,
            int to = 16 / width) {
  constexpr int n = 16 / width;
  __m128i a[n], b[n];
  for (int i = 0; i < n; ++i)
    a[i] = i < from ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i * src_stride)) : _mm_setzero_si128();
  for (int round = 1; round < n; round *= 2) {
    for (int i = 0; i < n / 2; ++i) {
      b[2 * i] = low<width>(a[i], a[i + n / 2]);
      b[2 * i + 1] = high<width>(a[i], a[i + n / 2]);
    }
    for (int i = 0; i < n; ++i) a[i] = b[i];
  }
  for (int i = 0; i < n; ++i)
    if (i < to) _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + i * dst_stride), a[i]);
}

template <int width>
void plain(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(dst + c * dst_stride + r * width, src + r * src_stride + c * width, width);
}

// Where `n` of `count` begin, at `at` but for the last ones: these begin among the ones before, which are copied again.
int64_t from_end(int64_t at, int64_t n, int64_t count) { return std::min(at, count - n); }

template <int width>
void squares(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows, int64_t columns) {
  constexpr int64_t n = 16 / width;
  int64_t done = 0;
  if (rows >= n && columns >= n) {
    for (int64_t i = 0; i < rows; i += n)
      for (int64_t k = 0; k < columns; k += n) {
        const int64_t r = from_end(i, n, rows), c = from_end(k, n, columns);
        square<width>(src + r * src_stride + c * width, src_stride, dst + c * dst_stride + r * width, dst_stride);
      }
  } else if (columns < n && src_stride == columns * width) {
    // Rows without gaps, shorter than a register: it holds the next ones, too.
    for (; done + n <= rows && (done + n - 1) * src_stride + 16 <= rows * src_stride; done += n)
      square<width>(src + done * src_stride, src_stride, dst + done * width, dst_stride, n, int(columns));
    plain<width>(src + done * src_stride, src_stride, dst + done * width, dst_stride, rows - done, columns);
  } else if (rows < n && dst_stride == rows * width) {
    // The same of the result: what a register has too many of, the next one overwrites.
    for (; done + n <= columns && (done + n - 1) * dst_stride + 16 <= columns * dst_stride; done += n)
      square<width>(src + done * width, src_stride, dst + done * dst_stride, dst_stride, int(rows));
    plain<width>(src + done * width, src_stride, dst + done * dst_stride, dst_stride, rows, columns - done);
  } else {
    plain<width>(src, src_stride, dst, dst_stride, rows, columns);
  }
}

// Squares of 8 x 8 elements of 4 bytes, 4 x 4 of 8: halves of registers come together as they are read, and the squares
// of one half each are turned over side by side.
template <int width>
[[gnu::target("avx2"), gnu::always_inline]] inline void square_wide(const char* src, int64_t src_stride, char* dst,
                                                                    int64_t dst_stride) {
  constexpr int half = 16 / width;
  auto read = [&](int row, int part) __attribute__((target("avx2"), always_inline)) {
    const auto* low = reinterpret_cast<const __m128i*>(src + row * src_stride) + part;
    const auto* high = reinterpret_cast<const __m128i*>(src + (row + half) * src_stride) + part;
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)), _mm_loadu_si128(high), 1);
  };
  auto write = [&](int row, __m256i v) __attribute__((target("avx2"), always_inline)) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + row * dst_stride), v);
  };
  for (int part = 0; part < 2; ++part) {
    const int first = part * half;
    if constexpr (width == 8) {
      const __m256i a = read(0, part), b = read(1, part);
      write(first, _mm256_unpacklo_epi64(a, b));
      write(first + 1, _mm256_unpackhi_epi64(a, b));
    } else {
      const __m256i a = read(0, part), b = read(1, part), c = read(2, part), d = read(3, part);
      const __m256i e = _mm256_unpacklo_epi32(a, b), f = _mm256_unpacklo_epi32(c, d);
      const __m256i g = _mm256_unpackhi_epi32(a, b), h = _mm256_unpackhi_epi32(c, d);
      write(first, _mm256_unpacklo_epi64(e, f));
      write(first + 1, _mm256_unpackhi_epi64(e, f));
      write(first + 2, _mm256_unpacklo_epi64(g, h));
      write(first + 3, _mm256_unpackhi_epi64(g, h));
    }
  }
}

template <int width>
[[gnu::target("avx2")]] void squares_wide(const char* src, int64_t src_stride, char* dst, int64_t dst_stride,
                                          int64_t rows, int64_t columns) {
  constexpr int64_t n = 32 / width;
  if (columns == 2 && src_stride == 2 * width && rows > 0) {  // pairs come apart
    for (int64_t c = 0; c < 2; ++c) move_fn(width)(src + c * width, src_stride, dst + c * dst_stride, width, rows);
    return;
  }
  if (rows < n || columns < n) return squares<width>(src, src_stride, dst, dst_stride, rows, columns);
  const auto turn = [&](int64_t i, int64_t k) __attribute__((target("avx2"), always_inline)) {
    const int64_t r = from_end(i, n, rows), c = from_end(k, n, columns);
    square_wide<width>(src + r * src_stride + c * width, src_stride, dst + c * dst_stride + r * width, dst_stride);
  };
  // Lines of the result are written whole where many of them would meet in one set of the cache.
  if (dst_stride % kSameSets == 0 && src_stride % kSameSets != 0) {
    for (int64_t c = 0; c < columns; c += n)
      for (int64_t r = 0; r < rows; r += n) turn(r, c);
  } else {
    for (int64_t r = 0; r < rows; r += n)
      for (int64_t c = 0; c < columns; c += n) turn(r, c);
  }
}

using TransposeFn = void (*)(const char*, int64_t, char*, int64_t, int64_t, int64_t);

TransposeFn transpose_fn(int64_t width) {
  const bool wide = current_isa() > 0;
  return width == 1   ? squares<1>
         : width == 2 ? squares<2>
         : width == 4 ? (wide ? squares_wide<4> : squares<4>)
         : width == 8 ? (wide ? squares_wide<8> : squares<8>)
                      : plain<16>;
}

}  // namespace

void transpose_near(int64_t width, const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
                    int64_t columns) {
  transpose_fn(width)(src, src_stride, dst, dst_stride, rows, columns);
}

void transpose(int64_t width, const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t rows,
               int64_t columns) {
  const TransposeFn run = transpose_fn(width);
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

void cast_turned(CastFn cast, int64_t width, const char* src, int64_t step, int64_t apart, char* dst, int64_t wide,
                 int64_t run) {
  constexpr int64_t kBytes = 8192, kSide = 32;
  alignas(64) char taken[kBytes];
  for (int64_t r = 0; r < run; r += kSide)
    for (int64_t c = 0; c < wide; c += kSide) {
      const int64_t high = std::min(kSide, run - r), many = std::min(kSide, wide - c);
      for (int64_t k = 0; k < many; ++k)
        cast(src + (c + k) * step + r * apart, apart, taken + k * high * width, width, high);
      transpose(width, taken, high * width, dst + (r * wide + c) * width, wide * width, many, high);
    }
}

}  // namespace strata::eager
