// Makes the shared mathematics text (src/lower/math/*.expr) a C++ program.
//
// Contract: one type per name of the language (f32, f64, i32, i64, u32, u64, bool) and one inline function per builtin.
// Compile with -ffp-contract=off -fwrapv -fno-math-errno; integers then wrap and every fma is one that the text asks
// for.
#pragma once

#include <bit>
#include <cstdint>

namespace strata::mathtext {

using f32 = float;
using f64 = double;
using i32 = std::int32_t;
using i64 = long;
using u32 = std::uint32_t;
using u64 = unsigned long;
static_assert(sizeof(i64) == 8 && sizeof(u64) == 8, "the literals 1l and 1ul must be 64-bit");

inline f32 fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
inline f64 fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
inline f32 sqrt(f32 x) { return __builtin_sqrtf(x); }
inline f64 sqrt(f64 x) { return __builtin_sqrt(x); }
inline f32 floor(f32 x) { return __builtin_floorf(x); }
inline f64 floor(f64 x) { return __builtin_floor(x); }
inline f32 ceil(f32 x) { return __builtin_ceilf(x); }
inline f64 ceil(f64 x) { return __builtin_ceil(x); }
inline f32 trunc(f32 x) { return __builtin_truncf(x); }
inline f64 trunc(f64 x) { return __builtin_trunc(x); }
inline f32 rint(f32 x) { return __builtin_rintf(x); }
inline f64 rint(f64 x) { return __builtin_rint(x); }
inline f32 abs(f32 x) { return __builtin_fabsf(x); }
inline f64 abs(f64 x) { return __builtin_fabs(x); }
inline f32 copysign(f32 a, f32 b) { return __builtin_copysignf(a, b); }
inline f64 copysign(f64 a, f64 b) { return __builtin_copysign(a, b); }
inline i32 bits(f32 x) { return std::bit_cast<i32>(x); }
inline i64 bits(f64 x) { return std::bit_cast<i64>(x); }
inline f32 from_bits(i32 i) { return std::bit_cast<f32>(i); }
inline f64 from_bits(i64 i) { return std::bit_cast<f64>(i); }

/// Both values are computed; the arguments have one type, as in the language.
template <class T>
inline T select(bool c, T a, T b) {
  return c ? a : b;
}
/// The value of select(); a code generator may leave `slow` out where no lane has `c`.
template <class T>
inline T rare(bool c, T slow, T fast) {
  return c ? slow : fast;
}

}  // namespace strata::mathtext
