#include "run/loop/rows_join.h"

#include <limits>
#include <type_traits>

#include "base/error.h"
#include "core/dtype.h"
#include "run/isa.h"

// Runs are apart or the same, which a compiler need not ask at run time.
#ifdef __clang__
#define STRATA_ANY_ORDER _Pragma("clang loop vectorize(assume_safety)")
#else
#define STRATA_ANY_ORDER _Pragma("GCC ivdep")
#endif

namespace strata::eager {

namespace {

template <class T, int how>
[[gnu::always_inline]] inline T joined(T a, T b) {
  if constexpr (how == STRATA_COMBINE_ADD) return T(a + b);
  if constexpr (how == STRATA_COMBINE_MUL && std::is_integral_v<T>) return T(uint64_t(a) * uint64_t(b));
  if constexpr (how == STRATA_COMBINE_MUL) return a * b;
  // The first of equals; NaN beats all.
  if constexpr (how == STRATA_COMBINE_MAX) return b > a || b != b ? b : a;
  return b < a || b != b ? b : a;
}

template <class T, int how>
[[gnu::always_inline]] inline void join_runs(char* to, const char* earlier, const char* later, int64_t n) {
  T* r = reinterpret_cast<T*>(to);
  const T *a = reinterpret_cast<const T*>(earlier), *b = reinterpret_cast<const T*>(later);
  STRATA_ANY_ORDER
  for (int64_t i = 0; i < n; ++i) r[i] = joined<T, how>(a[i], b[i]);
}

template <class T, int how>
[[gnu::always_inline]] inline void join_lanes(char* all, int64_t n) {
  T* a = reinterpret_cast<T*>(all);
  STRATA_ANY_ORDER
  for (int64_t i = 0; i < n; ++i) {
    T v[8];
    for (int l = 0; l < 8; ++l) v[l] = joined<T, how>(a[i + l * n], a[i + (l + 8) * n]);
    for (int h = 4; h > 0; h /= 2)
      for (int l = 0; l < h; ++l) v[l] = joined<T, how>(v[l], v[l + h]);
    a[i] = v[0];
  }
}

template <class T, int how>
[[gnu::always_inline]] inline void join_blocks(char* all, int64_t n) {
  T* a = reinterpret_cast<T*>(all);
  for (int64_t h = 1; h < n; h *= 2)
    for (int64_t k = 0; k + h < n; k += 2 * h) {
      T *r = a + 16 * k, *b = a + 16 * (k + h);
      STRATA_ANY_ORDER
      for (int64_t l = 0; l < 16; ++l) r[l] = joined<T, how>(r[l], b[l]);
    }
}

template <class T, int how>
void fill(char* to, int64_t n) {
  using Limits = std::numeric_limits<T>;
  T v = how == STRATA_COMBINE_ADD ? T(-0.0) : T(1);
  if (how == STRATA_COMBINE_MAX) v = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (how == STRATA_COMBINE_MIN) v = Limits::has_infinity ? Limits::infinity() : Limits::max();
  for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(to)[i] = v;
}

template <class T, int how>
void join(char* to, const char* earlier, const char* later, int64_t n) {
  join_runs<T, how>(to, earlier, later, n);
}
template <class T, int how>
void lanes(char* all, int64_t n) {
  join_lanes<T, how>(all, n);
}
template <class T, int how>
void blocks(char* all, int64_t n) {
  join_blocks<T, how>(all, n);
}
// The same with longer registers, for the sums, and for extrema of integers.
template <class T, int how>
[[gnu::target("avx2")]] void join_wide(char* to, const char* earlier, const char* later, int64_t n) {
  join_runs<T, how>(to, earlier, later, n);
}
template <class T>
[[gnu::target("avx2")]] void lanes_wide(char* all, int64_t n) {
  join_lanes<T, STRATA_COMBINE_ADD>(all, n);
}

template <class T>
[[gnu::target("avx2")]] void blocks_wide(char* all, int64_t n) {
  join_blocks<T, STRATA_COMBINE_ADD>(all, n);
}

template <class T, int how>
Joiner joiner() {
  if constexpr (how > STRATA_COMBINE_MUL && std::is_integral_v<T>)
    if (current_isa() > 0) return {join_wide<T, how>, lanes<T, how>, fill<T, how>, blocks<T, how>, true};
  return {join<T, how>, lanes<T, how>, fill<T, how>, blocks<T, how>};
}

template <class T>
Joiner joiner(uint8_t how) {
  // Sums and products wrap.
  using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  switch (how) {
    case STRATA_COMBINE_ADD:
      if constexpr (sizeof(T) >= 4)
        if (current_isa() > 0)
          return {join_wide<U, STRATA_COMBINE_ADD>, lanes_wide<U>, fill<U, STRATA_COMBINE_ADD>, blocks_wide<U>};
      return joiner<U, STRATA_COMBINE_ADD>();
    case STRATA_COMBINE_MUL:
      return joiner<U, STRATA_COMBINE_MUL>();
    case STRATA_COMBINE_MAX:
    case STRATA_COMBINE_OR:
      return joiner<T, STRATA_COMBINE_MAX>();
    default:
      return joiner<T, STRATA_COMBINE_MIN>();
  }
}

}  // namespace

Joiner joiner_of(const StrataReduction& how) {
  switch (static_cast<DType>(how.accumulator)) {
    case DType::F32:
      return joiner<float>(how.combine);
    case DType::F64:
      return joiner<double>(how.combine);
    case DType::I8:
      return joiner<int8_t>(how.combine);
    case DType::Bool:
    case DType::U8:
      return joiner<uint8_t>(how.combine);
    case DType::I16:
      return joiner<int16_t>(how.combine);
    case DType::U16:
      return joiner<uint16_t>(how.combine);
    case DType::I32:
      return joiner<int32_t>(how.combine);
    case DType::U32:
      return joiner<uint32_t>(how.combine);
    case DType::I64:
      return joiner<int64_t>(how.combine);
    default:
      STRATA_INTERNAL(static_cast<DType>(how.accumulator) == DType::U64, "accumulators that are not joined by runs");
      return joiner<uint64_t>(how.combine);
  }
}

void join_pairs(const Joiner& joiner, char* all, int64_t runs, int64_t step, int64_t n) {
  for (int64_t h = 1; h < runs; h *= 2)
    for (int64_t k = 0; k + h < runs; k += 2 * h) joiner.join(all + k * step, all + k * step, all + (k + h) * step, n);
}

}  // namespace strata::eager
