// Tensors and operators for programs in C++.
#pragma once
#include <concepts>
#include <initializer_list>

#include "core/generator.h"
#include "strata/generated/ops.h"

namespace strata {

using namespace ops;

// The dtype of a C++ type.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::same_as<T, bool>) return DType::Bool;
  if constexpr (std::floating_point<T>) return sizeof(T) == 4 ? DType::F32 : DType::F64;
  if constexpr (std::same_as<T, std::complex<float>>) return DType::C64;
  if constexpr (std::same_as<T, std::complex<double>>) return DType::C128;
  constexpr DType of[2][4] = {{DType::U8, DType::U16, DType::U32, DType::U64},
                              {DType::I8, DType::I16, DType::I32, DType::I64}};
  return of[std::is_signed_v<T>][sizeof(T) == 8 ? 3 : sizeof(T) / 2];
}

// Seeds the generators of all devices that are there, as Python's manual_seed().
void manual_seed(uint64_t seed);

// A tensor of these values, which are copied; one dim, or the sizes given, whose product is the number of values.
template <class T>
Tensor from_values(ArrayRef<T> values, std::optional<IntArrayRef> sizes = std::nullopt) {
  const int64_t count = int64_t(values.size());
  const IntArrayRef shape = sizes ? *sizes : IntArrayRef(count);
  Tensor t = make_tensor(shape, dtype_of<T>());
  STRATA_CHECK_VALUE(t.numel() == count, "from_values: expected sizes of ", count, " elements, got ", t.numel());
  std::memcpy(t.data_ptr(), values.data(), values.size() * sizeof(T));
  return t;
}
template <class T>
Tensor tensor(std::initializer_list<T> values) {
  return from_values(ArrayRef<T>(values.begin(), values.size()));
}

// Elementwise, broadcast and promoted; numbers stand for tensors on either side.
#define STRATA_OPERATOR(SIGN, NAME)                                                                           \
  inline Tensor operator SIGN(const Tensor& a, const Tensor& b) { return ops::NAME(a, b); }                   \
  inline Tensor operator SIGN(const Tensor& a, const Scalar& b) { return ops::NAME(a, b); }                   \
  inline Tensor operator SIGN(const Scalar& a, const Tensor& b) { return ops::NAME(wrapped_number(a), b); }   \
  inline const Tensor& operator SIGN##=(const Tensor & a, const Tensor & b) { return ops::NAME##_(a, b), a; } \
  inline const Tensor& operator SIGN##=(const Tensor & a, const Scalar & b) { return ops::NAME##_(a, b), a; }
STRATA_OPERATOR(+, add)
STRATA_OPERATOR(-, sub)
STRATA_OPERATOR(*, mul)
STRATA_OPERATOR(/, div)
#undef STRATA_OPERATOR
#define STRATA_OPERATOR(SIGN, NAME, TURNED)                                                 \
  inline Tensor operator SIGN(const Tensor& a, const Tensor& b) { return ops::NAME(a, b); } \
  inline Tensor operator SIGN(const Tensor& a, const Scalar& b) { return ops::NAME(a, b); } \
  inline Tensor operator SIGN(const Scalar& a, const Tensor& b) { return ops::TURNED(b, a); }
STRATA_OPERATOR(<, lt, gt)
STRATA_OPERATOR(<=, le, ge)
STRATA_OPERATOR(>, gt, lt)
STRATA_OPERATOR(>=, ge, le)
STRATA_OPERATOR(==, eq, eq)
STRATA_OPERATOR(!=, ne, ne)
#undef STRATA_OPERATOR
inline Tensor operator-(const Tensor& a) { return ops::neg(a); }

// The only element of a tensor.
template <class T>
T item(const Tensor& t) {
  const Scalar s = ops::item(t);
  if constexpr (std::is_floating_point_v<T>)
    return T(s.to_double());
  else
    return T(s.to_int());
}

}  // namespace strata
