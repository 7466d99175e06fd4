// Derivatives of matrix products.
#pragma once
#include "core/tensor.h"

namespace strata::formulas {

Tensor scaled_by(const Tensor& grad, const Scalar& factor);
// Of a @ b over the last two dims, by a and by b. The gradient lies in memory as its operand does (sizes, strides), so
// that the gradient of a transposed weight is the weight's own without a copy.
Tensor mm_self_grad(const Tensor& grad, const Tensor& mat2, IntArrayRef sizes, IntArrayRef strides);
Tensor mm_mat2_grad(const Tensor& grad, const Tensor& self, IntArrayRef sizes, IntArrayRef strides);
Tensor addbmm_batch1_grad(const Tensor& grad, const Tensor& batch2);
Tensor addbmm_batch2_grad(const Tensor& grad, const Tensor& batch1);
Tensor outer_grad(const Tensor& grad, const Tensor& vec);

}  // namespace strata::formulas
