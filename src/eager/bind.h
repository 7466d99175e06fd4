// Numbers that `bind:` of the table derives from arguments.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

double largest_of(DType t);      // of a floating dtype
Scalar smallest_value(DType t);  // -inf, or the least integer
Scalar largest_value(DType t);
// Bounds that clamp nothing where an argument is None; they take part in promotion only as self does.
Scalar lowest_scalar(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
Scalar highest_scalar(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max);
// masked_fill's value, after a check of the mask.
Scalar checked_fill(const Tensor& self, const Tensor& mask, const Scalar& value);

}  // namespace strata::eager
