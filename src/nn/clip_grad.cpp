#include "strata/nn/clip_grad.h"

namespace strata::nn::utils {

namespace {
std::vector<Tensor> gradients(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> out;
  for (const Tensor& p : parameters)
    if (const Tensor g = p.grad(); g.defined()) out.push_back(g);
  return out;
}
}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  const NoGradGuard off;
  const std::vector<Tensor> grads = gradients(parameters);
  if (grads.empty()) return ops::zeros({});
  std::vector<Tensor> norms;
  for (const Tensor& g : grads)
    norms.push_back(ops::to(ops::linalg_vector_norm(g, norm_type), grads[0].device(), g.dtype()));
  const Tensor total = ops::linalg_vector_norm(ops::stack(norms), norm_type);
  STRATA_CHECK(!error_if_nonfinite || item<bool>(ops::isfinite(total)), "The total norm of order ", norm_type,
               " for gradients from `parameters` is non-finite, so it cannot be clipped");
  // Multiplying by 1 instead of asking whether to clip keeps the value on its device.
  const Tensor factor = ops::clamp(max_norm / (total + 1e-6), std::nullopt, Scalar(1.0));
  for (const Tensor& g : grads) ops::mul_(g, ops::to(factor, g.device(), factor.dtype()));
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  const NoGradGuard off;
  for (const Tensor& g : gradients(parameters)) ops::clamp_(g, Scalar(-clip_value), Scalar(clip_value));
}

}  // namespace strata::nn::utils
