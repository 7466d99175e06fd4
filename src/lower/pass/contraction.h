// Sums of products, as matrix products and convolutions have them: sum_products(a, b) of a space kernel's text.
//
// a * b is summed over the dims that the description is `over`, in the order given, the last fastest. Floats are added
// by fma, in chains of 1,024 whose results are added in order; an empty sum is 0. Half types are float32's here, and
// integers wrap. Of complex values the real part adds ar * br, then -ai * bi, the imaginary one ar * bi, then ai * br.
#pragma once
#include "lower/expr/build.h"

namespace strata::lower {

// The value of `e`, whose reduction runs `over` these ranges.
Value sum_products(Builder& b, const Expr& e, uint64_t over);

}  // namespace strata::lower
