// Derivatives of embeddings, dropout, pooling and vector norms.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

Tensor embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                                 bool scale_grad_by_freq);
// Of a p-norm over dim (none: all).
Tensor vector_norm_grad(const Tensor& grad, const Tensor& self, const Tensor& result, double p, OptIntArrayRef dim,
                        bool keepdim);
Tensor glu_grad(const Tensor& grad, const Tensor& self, int64_t dim);
Tensor dropout_grad(const Grads& grads, const Tensor& mask, double p, std::optional<bool> train);
// The gradient at the places that a max pooling chose.
Tensor pool_chosen(const Tensor& grad, const Tensor& indices, int64_t spatial);
Tensor max_pool_grad(const Grads& grads, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, const Tensor& indices);
Tensor max_pool3d_grad(const Grads& grads, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                       IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, const Tensor& indices);

}  // namespace strata::formulas
