// Derivatives of convolutions: one fused call, or recorded convolutions where second derivatives are asked for.
#pragma once
#include "grad/formulas_norm.h"

namespace strata::formulas {

ThreeGrads convolution_grad(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& bias,
                            IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                            IntArrayRef output_padding, int64_t groups, const BoolVec& wanted);

}  // namespace strata::formulas
