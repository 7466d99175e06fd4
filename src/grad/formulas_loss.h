// Derivatives of losses.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

// The gradient of each element's loss from that of the reduced one: divided by the number of elements for a mean.
Tensor loss_grad(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction);
Tensor weighted(const Tensor& grad, const Tensor& weight);
Tensor bce_logits_grad_self(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                            const Tensor& pos_weight, int64_t reduction);
Tensor bce_logits_grad_target(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                              const Tensor& pos_weight, int64_t reduction);
Tensor nll_grad(const Grads& grads, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index, const Tensor& total_weight);

}  // namespace strata::formulas
