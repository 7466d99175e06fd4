// Sizes of pooled dims, over a size type S.
#pragma once
#include "core/shape/arithmetic.h"

namespace strata::shape {

// Windows along one dim. With ceil_mode a last window may hang over the end, but must begin inside or in the padding
// before it.
template <class S>
S pool_size(const S& input, const S& kernel, const S& stride, const S& padding, const S& dilation, bool ceil_mode) {
  S span = plus(input, times(S(2), padding)) - kernel_reach(kernel, dilation) - S(1);
  if (!ceil_mode) return span / stride + S(1);
  S count = (plus(span, stride) - S(1)) / stride + S(1);
  return times(S(count - S(1)), stride) >= input + padding ? count - S(1) : count;
}

// Of `count` windows that cover `size` evenly, the i-th begins and ends here.
template <class S>
S even_begin(const S& i, const S& size, const S& count) {
  return i * size / count;
}
template <class S>
S even_end(const S& i, const S& size, const S& count) {
  return ((i + S(1)) * size + count - S(1)) / count;
}

}  // namespace strata::shape
