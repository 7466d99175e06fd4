#include "run/loop/turned_tiles.h"

#include <immintrin.h>

#include <bit>

#include "run/isa.h"
#include "run/loop/rows_fold.h"

namespace strata::eager {

namespace {

constexpr int64_t kChunk = 1024;  // positions of tree T
constexpr int kMostClasses = 32;
constexpr int64_t kMostStrips = 4;

[[gnu::target("avx2"), gnu::always_inline]] inline __m256 joined(__m256 a, __m256 b, bool product) {
  return product ? _mm256_mul_ps(a, b) : _mm256_add_ps(a, b);
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256d joined(__m256d a, __m256d b, bool product) {
  return product ? _mm256_mul_pd(a, b) : _mm256_add_pd(a, b);
}

[[gnu::target("avx2"), gnu::always_inline]] inline __m256 two(const float* low, const float* high) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}
[[gnu::target("avx2"), gnu::always_inline]] inline __m256d two(const double* low, const double* high) {
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(low)), _mm_loadu_pd(high), 1);
}

// Four columns of eight rows of float32, or two of four of float64, as a vector each.
[[gnu::target("avx2"), gnu::always_inline]] inline void turn(const float* from, int64_t apart, __m256* to) {
  const __m256 a = two(from, from + 4 * apart), b = two(from + apart, from + 5 * apart);
  const __m256 c = two(from + 2 * apart, from + 6 * apart), d = two(from + 3 * apart, from + 7 * apart);
  const __m256 e = _mm256_unpacklo_ps(a, b), f = _mm256_unpacklo_ps(c, d);
  const __m256 g = _mm256_unpackhi_ps(a, b), h = _mm256_unpackhi_ps(c, d);
  to[0] = _mm256_shuffle_ps(e, f, 0x44);
  to[1] = _mm256_shuffle_ps(e, f, 0xee);
  to[2] = _mm256_shuffle_ps(g, h, 0x44);
  to[3] = _mm256_shuffle_ps(g, h, 0xee);
}
[[gnu::target("avx2"), gnu::always_inline]] inline void turn(const double* from, int64_t apart, __m256d* to) {
  const __m256d a = two(from, from + 2 * apart), b = two(from + apart, from + 3 * apart);
  to[0] = _mm256_unpacklo_pd(a, b);
  to[1] = _mm256_unpackhi_pd(a, b);
}

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using type = __m256;
};
template <>
struct VectorOf<double> {
  using type = __m256d;
};

// Element (r, c) has place c * rows + r of its part: `strips` runs of 1,024 rows have the same positions of tree T and
// are joined column by column, or the columns of fewer rows are `classes` runs of positions. Lanes are parts; `vectors`
// of them are summed side by side, as a chain waits for each of its additions. What lies a row ahead is fetched: no
// row ends where the next begins, and the processor does not look beyond.
template <class T, bool product, int strips, int classes, int vectors>
[[gnu::target("avx2"), gnu::always_inline]] inline void tile(const TurnedTiles& t, int64_t p, int64_t b) {
  using V = typename VectorOf<T>::type;
  constexpr int64_t lanes = 32 / sizeof(T), together = 16 / sizeof(T), line = 64 / sizeof(T);
  constexpr int64_t each = kPart / kChunk * classes / strips;
  const int64_t apart = t.apart / int64_t(sizeof(T)), positions = t.end - t.begin;
  const T* from = reinterpret_cast<const T*>(t.first) + p * apart + b * each;
  V sum[classes][vectors];
  for (int k = 0; k < classes; ++k)
    for (int v = 0; v < vectors; ++v) sum[k][v] = product ? V{} + T(1) : -V{};
  for (int64_t j = 0; j < each; j += together)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const T* at = from + v * lanes * each;
      V turned[strips][together];
      for (int s = 0; s < strips; ++s) {
        for (int64_t l = 0; classes == 1 && l < lanes * together; l += line)
          __builtin_prefetch(at + (s * kChunk + 1) * apart + j * lanes + l);
        turn(at + s * kChunk * apart + j, each, turned[s]);
      }
      for (int64_t i = 0; i < together; ++i)
        for (int s = 0; s < strips; ++s) {
          V& chain = sum[(j + i) % classes][v];
          chain = joined(chain, turned[s][i], product);
        }
    }
  T* to = reinterpret_cast<T*>(t.accumulators) + (p - t.begin) * t.parts + b;
  for (int k = 0; k < classes; ++k)
    for (int v = 0; v < vectors; ++v) *reinterpret_cast<V*>(to + k * positions * t.parts + v * lanes) = sum[k][v];
}

template <class T, bool product, int strips, int classes>
[[gnu::target("avx2")]] void tiles(const TurnedTiles& t) {
  constexpr int64_t lanes = 32 / sizeof(T), vectors = classes <= 2 ? 2 : 1;
  for (int64_t p = t.begin; p < t.end; ++p) {
    int64_t b = 0;
    for (; b + vectors * lanes <= t.parts; b += vectors * lanes) tile<T, product, strips, classes, vectors>(t, p, b);
    if (b < t.parts) tile<T, product, strips, classes, 1>(t, p, b);
  }
}

template <class T, bool product, int classes = kMostClasses>
TurnedTilesFn of_rows(int64_t rows) {
  if (rows == 4 * kChunk) return tiles<T, product, 4, 1>;
  if (rows == 2 * kChunk) return tiles<T, product, 2, 1>;
  if constexpr (classes > 1)
    if (rows > kChunk / classes) return of_rows<T, product, classes / 2>(rows);
  return tiles<T, product, 1, classes>;
}

}  // namespace

TurnedTilesFn turned_tiles(bool product, int64_t width, int64_t rows) {
  if (current_isa() == 0 || !std::has_single_bit(uint64_t(rows)) || rows < kChunk / kMostClasses ||
      rows > kMostStrips * kChunk)
    return nullptr;
  if (width == 4) return product ? of_rows<float, true>(rows) : of_rows<float, false>(rows);
  return width == 8 ? (product ? of_rows<double, true>(rows) : of_rows<double, false>(rows)) : nullptr;
}

}  // namespace strata::eager
