#include "core/promote.h"
#include "grad/formulas.h"
#include "strata/generated/ops/class_loss.h"
#include "strata/generated/ops/loss.h"

namespace strata::formulas {

Tensor loss_grad(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
  if (reduction != 1) return grad;
  int64_t n = self.numel();
  if (!(self.sizes() == target.sizes())) {
    n = 1;
    for (int64_t s : broadcast_shapes(self.sizes(), target.sizes())) n *= s;
  }
  return grad / Scalar(double(n));
}

Tensor weighted(const Tensor& grad, const Tensor& weight) { return weight.defined() ? grad * weight : grad; }

Tensor bce_logits_grad_self(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                            const Tensor& pos_weight, int64_t reduction) {
  Tensor g = weighted(loss_grad(grad, self, target, reduction), weight);
  return pos_weight.defined() ? ops::strata__bce_logits_weighted_grad_self(g, self, target, pos_weight)
                              : ops::strata__bce_logits_grad_self(g, self, target);
}

Tensor bce_logits_grad_target(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                              const Tensor& pos_weight, int64_t reduction) {
  Tensor g = weighted(loss_grad(grad, self, target, reduction), weight);
  return pos_weight.defined() ? ops::strata__bce_logits_weighted_grad_target(g, self, pos_weight)
                              : ops::strata__bce_logits_grad_target(g, self);
}

Tensor nll_grad(const Grads& grads, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index, const Tensor& total_weight) {
  if (!grads[0].defined()) return {};
  return ops::nll_loss_backward(grads[0], self, target, weight, reduction, ignore_index, total_weight);
}

}  // namespace strata::formulas
