// Convolutions as implicit matrix products on the generated kernels (ops/matmul/gemm.h): panels are gathered from the
// image, nothing is materialised. 1 to 3 spatial dimensions, groups, strides, padding, dilation, every real and complex
// dtype.
//
// The bits (contract 5; chains of 1,024 k, chains added in order, one rounding):
//   forward           k = (input channel of the group, ky, kx); the bias is one more chain, added last
//   gradient of input k = (output channel of the group, ky, kx)
//   gradient of weight k = (batch, output position in row-major order)
// A term that falls into padding, or that no output position meets, counts as a product with zero.
// Layouts and threads leave them alone, except that complex products over a channels-last result take the image as
// left operand. (A bias gradient is an ordinary sum and not here.)
//
// Any strides are read. What is written needs either contiguous dense space (plain order) or contiguous channels over
// dense space (channels last): otherwise the functions return false and have done nothing. Sizes must be consistent.
#pragma once

#include "ops/matmul/gemm.h"
#include "vendor/library.h"

namespace strata::eager {

bool conv_forward_generated(const GemmKernel& kernel, const StrataConvolution& shape, const void* input,
                            const void* weight, const void* bias, void* output, const GemmThreads& threads);
bool conv_backward_data_generated(const GemmKernel& kernel, const StrataConvolution& shape, const void* grad_output,
                                  const void* weight, void* grad_input, const GemmThreads& threads);
bool conv_backward_weights_generated(const GemmKernel& kernel, const StrataConvolution& shape, const void* input,
                                     const void* grad_output, void* grad_weight, const GemmThreads& threads);

}  // namespace strata::eager
