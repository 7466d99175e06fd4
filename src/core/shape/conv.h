// Sizes of convolutions, over a size type S.
#pragma once
#include "core/shape/arithmetic.h"

namespace strata::shape {

// One spatial size of a convolution, and of the transposed one.
template <class S>
S conv_size(const S& input, const S& kernel, const S& stride, const S& padding, const S& dilation) {
  S padded = plus(input, times(S(2), padding));
  return (padded - kernel_reach(kernel, dilation) - S(1)) / stride + S(1);
}
template <class S>
S conv_transpose_size(const S& input, const S& kernel, const S& stride, const S& padding, const S& dilation,
                      const S& extra) {
  S reach = plus(plus(kernel_reach(kernel, dilation), extra), S(1));
  return plus(times(S(input - S(1)), stride), reach) - times(S(2), padding);
}

}  // namespace strata::shape
