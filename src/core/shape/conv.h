// Convolutions: their sizes over a size type S, and what refuses their arguments.
#pragma once
#include "core/shape/arithmetic.h"
#include "core/shape/prepared.h"

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

// The sizes of the result, after all checks. Lists have one number for each spatial dim, or one for all; the bias may
// be undefined.
template <class S>
Sizes<S> convolution(const Geometry<S>& input, const Geometry<S>& weight, const Geometry<S>& bias, ArrayRef<S> stride,
                     ArrayRef<S> padding, ArrayRef<S> dilation, bool transposed, ArrayRef<S> output_padding,
                     const S& groups);
// result[b,o,f..] of input[b,x,g..], weight[o,c,k..] and bias[o]; transposed, of weight[y,z,k..], c runs over the
// channels of a group. Lists step, pad and apart; `per` outputs have a group.
template <class S>
Prepared<S> convolve(const Geometry<S>& input, const Geometry<S>& weight, const Geometry<S>& bias, ArrayRef<S> stride,
                     ArrayRef<S> padding, ArrayRef<S> dilation, const S& groups);
template <class S>
Prepared<S> convolve_back(const Geometry<S>& input, const Geometry<S>& weight, const Geometry<S>& bias,
                          ArrayRef<S> stride, ArrayRef<S> padding, ArrayRef<S> dilation, ArrayRef<S> output_padding,
                          const S& groups);

// Gradients by input, weight and bias, of which `mask` has those that are wanted. Where input or weight has its
// channels last, so have they.
template <class S>
Prepared<S> convolution_backward(const Geometry<S>& grad, const Geometry<S>& input, const Geometry<S>& weight,
                                 ArrayRef<S> stride, ArrayRef<S> padding, ArrayRef<S> dilation, bool transposed,
                                 ArrayRef<S> output_padding, const S& groups, const BoolVec& mask);

}  // namespace strata::shape
