// Numbers that `bind:` of the table derives from arguments, and what `check:` calls.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

// How far apart the positions of a resampled dim are, where that is given by a factor of its size.
inline double inverse_or_zero(std::optional<double> scale) { return scale && *scale > 0 ? 1 / *scale : 0; }
double largest_of(DType t);      // of a floating dtype
Scalar smallest_value(DType t);  // -inf, or the least integer
Scalar largest_value(DType t);
// Bounds that clamp nothing where an argument is None; they take part in promotion only as self does.
Scalar lowest_scalar(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
Scalar highest_scalar(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
// A number as an operand beside `other`; raises where the dtype that the two have together cannot hold it.
Tensor fitting_number(const Scalar& value, const Tensor& other);
// masked_fill's value, after a check of the mask.
Scalar checked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);

// alpha is of the kind of the result of self and other.
void check_alpha_kind(const Tensor& self, const Tensor& other, const Scalar& alpha);
void check_alpha_kind(const Tensor& self, const Scalar& other, const Scalar& alpha);
template <class Other>
void check_alpha(const Tensor& self, const Other& other, const Scalar& alpha) {
  if (!alpha.is_integral(false)) check_alpha_kind(self, other, alpha);
}
// No difference of bools.
[[noreturn]] void refuse_bools(bool both);
inline bool is_bool(const Tensor& t) { return t.dtype() == DType::Bool; }
inline bool is_bool(const Scalar& s) { return s.is_bool(); }
template <class Other>
void check_difference(const Tensor& self, const Other& other, const Scalar& alpha) {
  if (is_bool(self) || is_bool(other)) refuse_bools(is_bool(self) && is_bool(other));
  check_alpha(self, other, alpha);
}
// Raises where the operator has no meaning for a dtype, in PyTorch's words and of its type, RuntimeError.
inline void refuse(bool wrong, const char* text) { STRATA_CHECK(!wrong, text); }
// The factor of what is added to self fits it.
void check_scale(const Tensor& self, const Scalar& alpha);
// A value to fill elements of self with.
void check_fill(const Tensor& self, const Scalar& value);
void check_one_dtype(const char* op, const Tensor& self, const Tensor& other, const char* argument);
// A reduction over `dims` (none or empty: all) that has no identity needs elements there.
void check_some(const Tensor& self, OptIntArrayRef dims, const char* op);
void check_hardtanh(const Tensor& self, const Scalar& min, const Scalar& max);
void check_softshrink(const Tensor& self, const Scalar& lambd);
// The real or imaginary part of an end of linspace. Integers take it rounded towards zero and wrapped, as PyTorch does.
double range_end(const Scalar& value, DType dtype, bool imaginary);
// beta and alpha of products of a dtype fit it; integers take them without their fractions.
void check_product_numbers(const Scalar& beta, const Scalar& alpha, DType dtype, const char* op);
inline void check_product(const Tensor& self, const Scalar& beta, const Scalar& alpha, const char* op) {
  if (!(beta.is_integral(false) && alpha.is_integral(false) && is_float(self.dtype())))
    check_product_numbers(beta, alpha, self.dtype(), op);
}
Scalar product_number(const Scalar& value, DType dtype);
// Of complex() and polar(): float32 or float64, both alike.
void check_parts(const char* name, const Tensor& a, const Tensor& b);

}  // namespace strata::eager
