#include "grad/formulas.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/dropout.h"
#include "strata/generated/ops/embedding.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/pool.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/scatter.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

Tensor embedding_double_backward(const Tensor& grad, const Tensor& indices, int64_t padding_idx,
                                 bool scale_grad_by_freq) {
  Tensor r = ops::embedding(grad, indices);
  DimVec each(indices.sizes());
  each.push_back(1);
  if (scale_grad_by_freq) {
    // How often each index occurs: what ones, scattered to the table and gathered again, add up to.
    Tensor ones = ops::ones(each, r.dtype(), r.device());
    r = r / ops::embedding(ops::embedding_dense_backward(ones, indices, grad.sizes()[0], -1, false), indices);
  }
  if (padding_idx < 0) return r;
  return ops::masked_fill(r, ops::reshape(ops::eq(indices, Scalar(static_cast<long>(padding_idx))), each), Scalar(0));
}

Tensor vector_norm_grad(const Tensor& grad, const Tensor& self, const Tensor& result, double p, OptIntArrayRef dim,
                        bool keepdim) {
  Tensor g = unsqueeze_reduced(grad, self.dim(), dim, keepdim),
         norm = unsqueeze_reduced(result, self.dim(), dim, keepdim);
  if (p == 0.0) return ops::zeros_like(self);
  if (p == 1.0) return g * ops::sgn(self);
  if (p == 2.0) return ops::masked_fill(g * (self / norm), ops::eq(norm, Scalar(0)), Scalar(0));
  if (std::isinf(p)) {
    // Divided among all elements that reach the extremum.
    Tensor chosen = ops::to(ops::eq(ops::abs(self), norm), g.dtype());
    Tensor count = self.dim() == 0        ? chosen
                   : dim && !dim->empty() ? ops::sum(chosen, dim, true)
                                          : ops::reshape(ops::sum(chosen), DimVec(self.dim(), 1));
    return ops::sgn(self) * (g * (chosen / count));
  }
  if (p < 1.0) {
    Tensor slope =
        ops::sgn(self) * ops::masked_fill(ops::pow(ops::abs(self), Scalar(p - 1)), ops::eq(self, Scalar(0)), Scalar(0));
    return slope * g * ops::pow(norm, Scalar(1 - p));
  }
  Tensor scale = g / ops::pow(norm, Scalar(p - 1));
  Tensor slope = p < 2.0 ? ops::masked_fill(ops::sgn(self) * ops::pow(ops::abs(self), Scalar(p - 1)),
                                            ops::eq(self, Scalar(0)), Scalar(0))
                         : self * ops::pow(ops::abs(self), Scalar(p - 2));
  return slope * ops::masked_fill(scale, ops::eq(norm, Scalar(0)), Scalar(0));
}

Tensor glu_grad(const Tensor& grad, const Tensor& self, int64_t dim) {
  int64_t d = dim < 0 ? dim + self.dim() : dim, half = self.sizes()[d] / 2;
  Tensor gate = ops::sigmoid(ops::narrow(self, d, half, half)), first = grad * gate;
  return ops::cat(std::vector<Tensor>{first, first * ops::narrow(self, d, 0, half) * (Scalar(1) - gate)}, d);
}

Tensor dropout_grad(const Grads& grads, const Tensor& mask, double p, std::optional<bool> train) {
  if (!grads[0].defined()) return {};
  bool training = train.value_or(true);
  return ops::native_dropout_backward(grads[0], mask, !training ? 1.0 : p == 1.0 ? 0.0 : 1.0 / (1.0 - p));
}

Tensor pool_chosen(const Tensor& grad, const Tensor& indices, int64_t spatial) {
  DimVec flat(indices.sizes().slice(0, indices.dim() - spatial)), from(flat);
  flat.push_back(-1);
  from.push_back(-1);
  if (indices.numel() == 0) return ops::zeros(indices.sizes(), grad.dtype(), grad.device());
  return ops::reshape(ops::gather(ops::reshape(grad, from), -1, ops::reshape(indices, flat)), indices.sizes());
}

Tensor max_pool_grad(const Grads& grads, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
  if (!grads[0].defined()) return {};
  return ops::max_pool2d_with_indices_backward(grads[0], self, kernel, stride, padding, dilation, ceil_mode, indices);
}

Tensor max_pool3d_grad(const Grads& grads, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                       IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
  if (!grads[0].defined()) return {};
  return ops::max_pool3d_with_indices_backward(grads[0], self, kernel, stride, padding, dilation, ceil_mode, indices);
}

}  // namespace strata::formulas
