// What the normalisations share: dtypes in which statistics are kept, constants for absent weights.
#pragma once
#include "core/tensor.h"
#include "eager/copy.h"

namespace strata::eager {

constexpr DType accumulator_of(DType t) { return t == DType::F16 || t == DType::BF16 ? DType::F32 : t; }

inline Tensor constant(const Tensor& like, IntArrayRef sizes, DType dtype, double value) {
  Tensor t = new_tensor(like, sizes, dtype);
  fill_values(t, Scalar(value));
  return t;
}
// `t`, or a constant of the given sizes where it is absent.
inline Tensor or_constant(const Tensor& t, const Tensor& like, IntArrayRef sizes, DType dtype, double value) {
  return t.defined() ? t : constant(like, sizes, dtype, value);
}

}  // namespace strata::eager
