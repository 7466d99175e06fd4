// Conversions that programs make most, for processors whose registers are longer than the baseline's.
#include <array>

#include "run/isa.h"
#include "run/loop/cast.h"
#include "run/loop/convert.h"

namespace strata::eager {

namespace {

struct Pair {
  DType from, to;
  CastFn fn;
};

template <class S, class D>
[[gnu::always_inline]] inline void run(const char* src, char* dst, int64_t n) {
  const S* s = reinterpret_cast<const S*>(src);
  D* d = reinterpret_cast<D*>(dst);
#pragma clang loop interleave_count(1) unroll(disable)
  for (int64_t i = 0; i < n; ++i) d[i] = convert<D>(s[i]);
}
template <class S, class D>
[[gnu::target("avx2")]] void run_avx2(const char* src, char* dst, int64_t n) {
  run<S, D>(src, dst, n);
}
// AVX-512 alone converts between floats and int64.
template <class S, class D>
[[gnu::target("avx512f,avx512dq,avx512vl")]] void run_avx512(const char* src, char* dst, int64_t n) {
  run<S, D>(src, dst, n);
}

template <auto whole, class S, class D>
void cast(const char* src, int64_t ss, char* dst, int64_t ds, int64_t n) {
  if (ss == int64_t(sizeof(S)) && ds == int64_t(sizeof(D))) return whole(src, dst, n);
  convert_apart<S, D>(cast<whole, S, D>, src, ss, dst, ds, n);
}
template <class S, class D, DType from, DType to>
constexpr Pair avx2() {
  return {from, to, cast<run_avx2<S, D>, S, D>};
}
template <class S, class D, DType from, DType to>
constexpr Pair avx512() {
  return {from, to, cast<run_avx512<S, D>, S, D>};
}

using enum DType;
constexpr Pair kAvx2[] = {
    avx2<float, int8_t, F32, I8>(),     avx2<float, uint8_t, F32, U8>(),    avx2<float, int16_t, F32, I16>(),
    avx2<float, int32_t, F32, I32>(),   avx2<float, bool, F32, Bool>(),     avx2<double, int8_t, F64, I8>(),
    avx2<double, int16_t, F64, I16>(),  avx2<double, int32_t, F64, I32>(),  avx2<double, uint8_t, F64, U8>(),
    avx2<int64_t, bool, I64, Bool>(),   avx2<int64_t, int8_t, I64, I8>(),   avx2<int64_t, uint8_t, I64, U8>(),
    avx2<int64_t, int32_t, I64, I32>(), avx2<int32_t, int64_t, I32, I64>(), avx2<Truth, int64_t, Bool, I64>(),
    avx2<Truth, float, Bool, F32>(),    avx2<uint8_t, int64_t, U8, I64>(),  avx2<uint8_t, double, U8, F64>(),
    avx2<uint8_t, float, U8, F32>(),    avx2<int8_t, int64_t, I8, I64>(),   avx2<int8_t, float, I8, F32>(),
    avx2<int8_t, double, I8, F64>(),    avx2<int16_t, int64_t, I16, I64>(), avx2<int16_t, double, I16, F64>(),
    avx2<Truth, double, Bool, F64>(),   avx2<Truth, int32_t, Bool, I32>(),  avx2<int32_t, bool, I32, Bool>(),
    avx2<double, bool, F64, Bool>(),
};
constexpr Pair kAvx512[] = {
    avx512<float, int64_t, F32, I64>(),
    avx512<double, int64_t, F64, I64>(),
    avx512<int64_t, float, I64, F32>(),
    avx512<int64_t, double, I64, F64>(),
};

using Table = std::array<std::array<CastFn, kDTypeCount>, kDTypeCount>;
template <size_t count>
constexpr Table added(Table table, const Pair (&pairs)[count]) {
  for (const Pair& p : pairs) table[size_t(p.from)][size_t(p.to)] = p.fn;
  return table;
}
// By set: the baseline's has none.
constexpr Table kTables[] = {added({}, kAvx2), added(added({}, kAvx2), kAvx512)};

}  // namespace

CastFn wide_cast_fn(DType from, DType to) {
  const int isa = current_isa();
  return isa == 0 ? nullptr : kTables[isa - 1][size_t(from)][size_t(to)];
}

}  // namespace strata::eager
