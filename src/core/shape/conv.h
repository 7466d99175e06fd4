// Sizes of convolutions, over a size type S.
#pragma once
#include <cstddef>

namespace strata::shape {

// One spatial size of a convolution, and of the transposed one.
template <class S>
S conv_size(const S& input, const S& kernel, const S& stride, const S& padding, const S& dilation) {
  return (input + padding + padding - dilation * (kernel - S(1)) - S(1)) / stride + S(1);
}
template <class S>
S conv_transpose_size(const S& input, const S& kernel, const S& stride, const S& padding, const S& dilation,
                      const S& extra) {
  return (input - S(1)) * stride - padding - padding + dilation * (kernel - S(1)) + extra + S(1);
}

}  // namespace strata::shape
