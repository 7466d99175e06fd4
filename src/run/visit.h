// Calls a generic function with the C++ type of a dtype, or of an element width. Hand-written kernels that compute see
// float16 and bfloat16 converted to float32 (one rounding per operator): see widened() and narrowed().
#pragma once
#include <complex>
#include <type_traits>

#include "core/promote.h"
#include "run/copy.h"
#include "run/loop/cast.h"

namespace strata::eager {

template <class T>
struct Tag {
  using type = T;
};

struct Width16 {
  uint64_t low, high;
};

// f(Tag<T>) with an unsigned type of `width` bytes (Width16 for 16).
template <class F>
auto visit_width(int64_t width, F&& f) {
  switch (width) {
    case 1:
      return f(Tag<uint8_t>());
    case 2:
      return f(Tag<uint16_t>());
    case 4:
      return f(Tag<uint32_t>());
    case 8:
      return f(Tag<uint64_t>());
    default:
      return f(Tag<Width16>());
  }
}

// f(Tag<T>) for bool, integers, float32 and float64.
template <class F>
auto visit_reals(DType t, const char* name, F&& f) {
  switch (t) {
    case DType::Bool:
      return f(Tag<bool>());
    case DType::U8:
      return f(Tag<uint8_t>());
    case DType::I8:
      return f(Tag<int8_t>());
    case DType::U16:
      return f(Tag<uint16_t>());
    case DType::I16:
      return f(Tag<int16_t>());
    case DType::U32:
      return f(Tag<uint32_t>());
    case DType::I32:
      return f(Tag<int32_t>());
    case DType::U64:
      return f(Tag<uint64_t>());
    case DType::I64:
      return f(Tag<int64_t>());
    case DType::F32:
      return f(Tag<float>());
    case DType::F64:
      return f(Tag<double>());
    default:
      throw_error(ErrorKind::NotImplemented, str_cat("\"", name, "\" not implemented for '", scalar_type_name(t),
                                                     "'; convert the operands with .to() first"));
  }
}

// The same and complex numbers.
template <class F>
auto visit_numbers(DType t, const char* name, F&& f) {
  if (t == DType::C64) return f(Tag<std::complex<float>>());
  if (t == DType::C128) return f(Tag<std::complex<double>>());
  return visit_reals(t, name, static_cast<F&&>(f));
}

inline DType wide_dtype(DType t) { return is_half(t) ? DType::F32 : t; }
inline Tensor widened(const Tensor& t) { return as_dtype(t, wide_dtype(t.dtype())); }

// Sums and products whose integers wrap; `or` and `and` for bool.
template <class T>
inline T add_values(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return T(uint64_t(a) + uint64_t(b));
  else
    return a + b;
}
template <class T>
inline T multiply_values(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (std::is_integral_v<T>)
    return T(uint64_t(a) * uint64_t(b));
  else if constexpr (std::is_floating_point_v<T>)
    return a * b;
  else  // as kernels do: C++'s own makes infinities of some NaN
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}
template <class T>
inline bool is_nan(T a) {
  if constexpr (std::is_floating_point_v<T>)
    return a != a;
  else
    return false;
}

}  // namespace strata::eager
