// Fourier transforms made of matrix products with small matrices and of products with roots of 1, for what has no
// library.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

// Along dims of a complex tensor; nothing is scaled.
Tensor composed_transform(const Tensor& self, IntArrayRef dims, bool forward);
// Backward along all dims, the last of which has the half of the `length` values; real.
Tensor composed_from_half(const Tensor& self, IntArrayRef dims, int64_t length);
Tensor scaled(const Tensor& t, double scale);

}  // namespace strata::eager
